/**
 * The fit of one tenant, in order: solution times, options and parameters of BKT, then the judgement on learners
 * whom the fit has not seen. What is published is what was judged: the fit on four fifths of the learners. A fit on
 * all of them would be a little better on average and could be worse without anybody noticing.
 */

import { defaultParameters, fitBounds, fitModel } from '../base/params.js';
import { splitEvenly } from '../base/ranges.js';
import type { TenantModel } from '../catalogue/tenant-model.js';
import type { SkillTimes } from '../tracing/pace.js';
import { rapidThreshold } from '../tracing/rapid.js';
import type { Candidate } from './bkt/choose.js';
import { type BktFit, fitRounds } from './bkt/fit.js';
import type { LossComparison } from './bkt/held-out.js';
import type { AnswerTrees } from './bkt/trees.js';
import {
  type GuardedSkills,
  type GuardInput,
  guardSkills,
  poolLosses,
  tracedAlike,
  tracedBy,
} from './guard.js';
import { type FittedItems, fitServed, type PredictionFit, type PredictionInput } from './prediction.js';
import type { Comparison, FitReport, SkillReport } from './report.js';
import type { StageRunner, Training } from './stages.js';

export interface FitInput extends PredictionInput, GuardInput {
  /** Model in force, which the new one has to hold its own against. */
  readonly current: TenantModel;
  readonly skillIds: readonly string[];
}

export interface FittedModel {
  readonly model: TenantModel;
  /** null: the items of the model in force go on. */
  readonly items: FittedItems | null;
  /** Whether anything in the model is to be published. */
  readonly changed: boolean;
  readonly report: Omit<FitReport, 'sampledOneIn' | 'seconds'>;
}

/** @param hashes one number per learner, evenly over 0 to 2^32 - 1 and the same in every fit */
export function holdOut(hashes: Uint32Array): Training {
  const training = new Uint8Array(new SharedArrayBuffer(hashes.length));
  for (const [learner, hash] of hashes.entries())
    training[learner] = hash / 2 ** 32 < fitModel.heldOutShare ? 0 : 1;
  return training;
}

/** @param onStep told what begins, for a progress line */
export async function fitTenant(
  input: FitInput,
  stages: StageRunner,
  onStep: (step: string) => void = () => undefined,
): Promise<FittedModel> {
  const { log, training } = input;
  onStep('solution times');
  const times = await stages.run('measureTimes', log);
  const rapidBelow = times.map(rapidThreshold);
  onStep('options of the fit');
  const { chosen } = await stages.run('choose', log, training, rapidBelow);
  onStep('parameters of the skills');
  const trees = await stages.run('grow', log, training, rapidBelow, chosen.difficultyScale > 0);
  const fit = await fitSkills(input, trees, chosen, stages, onStep);
  onStep('judgement');
  const { guarded, base, losses } = await judgeParameters(input, fit, chosen, times, stages);
  const served = await fitServed(input, base, stages, onStep);
  const isNew = guarded.skills.some(({ report }) => report.published);
  return {
    model: { ...served.model, version: input.version, fittedAt: input.fittedAt },
    items: served.items,
    changed: served.report.published || (served.parametersHold && isNew) || served.accuracy.published,
    report: reportOf(input, guarded, losses, served),
  };
}

interface JudgedParameters {
  readonly guarded: GuardedSkills;
  /** The current model with the parameters that passed. */
  readonly base: TenantModel;
  /** What passed against what is in force, by skill. */
  readonly losses: readonly LossComparison[];
}

async function judgeParameters(
  input: FitInput,
  fit: BktFit,
  chosen: Candidate,
  times: readonly SkillTimes[],
  stages: StageRunner,
): Promise<JudgedParameters> {
  const { log, training, current, skillIds } = input;
  const candidate = { skills: fit.skills, difficultyScale: chosen.difficultyScale, bounds: chosen.bounds };
  const before = tracedBy(current, skillIds);
  const prior = tracedAlike(candidate, fit.prior.parameters);
  const priorBefore = tracedAlike(before, current.prior ?? defaultParameters);
  const guarded = guardSkills(input, fit, {
    losses: await stages.run('compareBkt', log, training, candidate, before),
    cold: poolLosses(await stages.run('compareBkt', log, training, prior, priorBefore)),
    times,
  });
  const base = assemble(input, chosen, guarded);
  const losses = await stages.run('compareBkt', log, training, tracedBy(base, skillIds), before);
  return { guarded, base, losses };
}

async function fitSkills(
  { skillIds, current }: FitInput,
  trees: AnswerTrees,
  options: Candidate,
  stages: StageRunner,
  onStep: (step: string) => void,
): Promise<BktFit> {
  const warm = skillIds.map((skillId) => current.skills.get(skillId)?.parameters);
  const ranges = splitEvenly(trees.starts, stages.threads);
  const rounds = fitRounds(trees, { ...options, warm, coldStart: true });
  let round = rounds.next();
  for (let n = 1; !round.done; n++) {
    const { value } = round;
    let done = 0;
    const fitOne = async ([from, to]: (typeof ranges)[number]) => {
      const estimates = await stages.run('fitRange', trees, from, to, value, options);
      done += to - from;
      onStep(`parameters of the skills, round ${n}, ${done} of ${skillIds.length}`);
      return estimates;
    };
    round = rounds.next((await Promise.all(ranges.map(fitOne))).flat());
  }
  return round.value;
}

/** Skills that had no answer in this fit stay as they were. */
function assemble(
  { version, fittedAt, current }: FitInput,
  chosen: Candidate,
  { skills, prior }: GuardedSkills,
): TenantModel {
  const all = new Map(current.skills);
  for (const { skillId, model } of skills) all.set(skillId, model);
  return {
    version,
    fittedAt,
    prior,
    prediction: current.prediction,
    abilityOffset: current.abilityOffset,
    difficultyScale: chosen.difficultyScale,
    bounds: chosen.bounds.pGuess.high === fitBounds.narrow.pGuess.high ? 'narrow' : 'wide',
    skills: all,
    accuracy: current.accuracy,
    catalogue: current.catalogue,
  };
}

function reportOf(
  { log, training }: FitInput,
  { skills }: GuardedSkills,
  losses: readonly LossComparison[],
  { parametersHold, report: served, accuracy }: PredictionFit,
): FittedModel['report'] {
  return {
    answers: log.skill.length,
    learners: training.length,
    heldOutLearners: training.reduce((held, trains) => held + (trains === 0 ? 1 : 0), 0),
    skills: skills.map(({ report }) => (parametersHold ? report : withdrawn(report))),
    bkt: overall(losses),
    served,
    accuracy,
  };
}

/** Parameters that are better by themselves and not for the served probability. */
const withdrawn = (report: SkillReport): SkillReport =>
  report.published
    ? { ...report, published: false, reason: 'the served probability is worse with the new parameters' }
    : report;

function overall(losses: readonly LossComparison[]): Comparison {
  const { answers, current, candidate } = poolLosses(losses);
  return {
    answers,
    oldLogLoss: answers === 0 ? null : current,
    newLogLoss: answers === 0 ? null : candidate,
  };
}
