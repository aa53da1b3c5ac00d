/** Learns everything from the training log, by the fit that the service publishes with. */

import type { AnswerLog } from '../../domain/base/answer-log.js';
import type { BktParameters } from '../../domain/base/params.js';
import { skillModelOf, unfittedModel } from '../../domain/catalogue/tenant-model.js';
import type { Candidate } from '../../domain/fit/bkt/choose.js';
import { fitRounds } from '../../domain/fit/bkt/fit.js';
import { itemModelAt } from '../../domain/fit/prediction.js';
import type { StageName, StageResults, StageRunner, Training } from '../../domain/fit/stages.js';
import { type FittedModel, fitTenant } from '../../domain/fit/tenant.js';
import { rapidThreshold } from '../../domain/tracing/rapid.js';
import type { TrainedModels } from './predict.js';
import type { ServedModel } from './served.js';

export interface FitFigures {
  /** Of the BKT fit with the preparation of its data; of everything that is fitted and chosen. */
  readonly seconds: number;
  readonly servedSeconds: number;
  /** EM iterations of all skills together. */
  readonly iterations: number;
  /** Answers that were fitted on. */
  readonly observations: number;
}

export interface Trained {
  readonly models: TrainedModels;
  readonly figures: FitFigures;
}

/** @param onStep called when a step begins, for a progress line */
export async function trainModels(
  log: AnswerLog,
  stages: StageRunner,
  onStep: (step: string) => void = () => undefined,
): Promise<Trained> {
  const since = performance.now();
  const watch = watchBkt(stages);
  // The fit of a service judges by learners whom it leaves out; here the test learners are those.
  const training = new Uint8Array(new SharedArrayBuffer(log.starts.length - 1)).fill(1);
  const skillIds = Array.from({ length: log.skills }, (_, skill) => String(skill));
  const input = { log, skillIds, training, current: unfittedModel, version: 1, fittedAt: epoch };
  const fitted = await fitTenant(input, watch.stages, onStep);
  const servedSeconds = (performance.now() - since) / 1000;
  const bkt = await plainBkt(log, training, skillIds, fitted, watch.seen, stages);
  const { iterations } = watch.seen;
  return {
    models: { bkt, served: { model: fitted.model, skillIds, itemOf: itemsOf(fitted) } },
    figures: { seconds: watch.seen.seconds(), servedSeconds, iterations, observations: log.correct.length },
  };
}

function itemsOf({ items }: FittedModel): ServedModel['itemOf'] {
  if (items === null) return () => null;
  return (item) => (items.sums.answers[item] === 0 ? null : itemModelAt(items, item));
}

/** The time of an evaluation changes nothing in it. */
const epoch = new Date(0).toISOString();

/** The BKT part of a fit, watched from its stages. */
interface BktWatch {
  chosen: Candidate | null;
  iterations: number;
  /** From the beginning of the trees to the end of the last skill. */
  seconds(): number;
}

function watchBkt(stages: StageRunner): { readonly stages: StageRunner; readonly seen: BktWatch } {
  let [from, to] = [0, 0];
  const seen: BktWatch = { chosen: null, iterations: 0, seconds: () => (to - from) / 1000 };
  const note = (result: StageResults[StageName]): void => {
    if (typeof result !== 'object') return;
    if ('chosen' in result) seen.chosen = result.chosen;
    if (!Array.isArray(result)) return;
    for (const one of result) if ('iterations' in one) seen.iterations += one.iterations;
  };
  return {
    seen,
    stages: {
      threads: stages.threads,
      run: async (name, ...args) => {
        if (name === 'grow') from = performance.now();
        const result = await stages.run(name, ...args);
        if (name === 'fitRange') to = performance.now();
        note(result);
        return result;
      },
    },
  };
}

/** Plain BKT knows no difficulty: where the served model uses it, plain parameters are fitted apart. */
async function plainBkt(
  log: AnswerLog,
  training: Training,
  skillIds: readonly string[],
  { model }: FittedModel,
  { chosen }: BktWatch,
  stages: StageRunner,
): Promise<BktParameters[]> {
  if (chosen === null || chosen.difficultyScale === 0)
    return skillIds.map((skillId) => skillModelOf(model, skillId).parameters);
  const rapidBelow = skillIds.map((skillId) => rapidThreshold(skillModelOf(model, skillId).times));
  const options = { ...chosen, difficultyScale: 0 };
  const trees = await stages.run('grow', log, training, rapidBelow, false);
  const rounds = fitRounds(trees, options);
  let round = rounds.next();
  while (!round.done) {
    round = rounds.next(await stages.run('fitRange', trees, 0, log.skills, round.value, options));
  }
  return round.value.skills.map(({ parameters }) => parameters);
}
