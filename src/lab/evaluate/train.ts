/** Learns everything from the training log, by the fit that the service publishes with. */

import { type AnswerLog, everyone, type Learners } from '../../domain/base/answer-log.js';
import type { BktParameters } from '../../domain/base/params.js';
import { skillModelOf, unfittedModel } from '../../domain/catalogue/tenant-model.js';
import type { Candidate } from '../../domain/fit/bkt/choose.js';
import { fitTrees } from '../../domain/fit/bkt/fit.js';
import { itemModelAt } from '../../domain/fit/prediction/served.js';
import type { StageRunner } from '../../domain/fit/stages.js';
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
  const training = everyone(log);
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
  return {
    seen,
    stages: {
      threads: stages.threads,
      run: async (name, ...args) => {
        if (name === 'growTrees') from = performance.now();
        const result = await stages.run(name, ...args);
        if (name === 'fitRange') to = performance.now();
        if (typeof result !== 'object') return result;
        if ('difficultyScale' in result) seen.chosen = result;
        if (Array.isArray(result))
          for (const one of result) if ('iterations' in one) seen.iterations += one.iterations;
        return result;
      },
    },
  };
}

/** Plain BKT knows no difficulty: where the served model uses it, plain parameters are fitted apart. */
async function plainBkt(
  log: AnswerLog,
  training: Learners,
  skillIds: readonly string[],
  { model }: FittedModel,
  { chosen }: BktWatch,
  stages: StageRunner,
): Promise<BktParameters[]> {
  if (chosen === null || chosen.difficultyScale === 0)
    return skillIds.map((skillId) => skillModelOf(model, skillId).parameters);
  const rapidBelow = skillIds.map((skillId) => rapidThreshold(skillModelOf(model, skillId).times));
  const options = { ...chosen, difficultyScale: 0 };
  const trees = await stages.run('growTrees', log, training, { rapidBelow });
  const { skills } = await fitTrees(trees, options, (round) =>
    stages.run('fitRange', trees, 0, log.skills, round),
  );
  return skills.map(({ parameters }) => parameters);
}
