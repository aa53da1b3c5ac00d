/** Fits all skills of a tenant, drawn to the mean of its large skills (empirical Bayes). */

import {
  type AnswerLog,
  everyone,
  hasDifficulty,
  type Learners,
  learnersWhere,
} from '../../base/answer-log.js';
import {
  type BktParameters,
  defaultParameters,
  difficultyModel,
  fitModel,
  fitPriorMeans,
  priorStrengths,
} from '../../base/params.js';
import { mixBits } from '../../base/text-hash.js';
import type { ParameterSource } from '../../catalogue/tenant-model.js';
import { constrain, type FitRules, fitSkill, parametersBy, type SkillEstimate, skillTree } from './em.js';
import { sumLosses } from './trace.js';
import { type AnswerTrees, growTrees, type TreeOptions } from './trees.js';

export interface FitOptions extends FitRules {
  /** k of the difficulty's logit shift; 0 leaves difficulty out. */
  readonly difficultyScale: number;
  readonly warm?: readonly (BktParameters | undefined)[];
  /** Starts from the prior means too and keeps the better fit: for when much of the data is new. */
  readonly coldStart?: boolean;
}

export type FitRound = FitOptions & { readonly means: BktParameters };
export type BktFit = ReturnType<typeof fitOf>;
export type SkillFit = BktFit['skills'][number];

/** A round that moves no prior mean by more than `settled` is the last. */
const maxRounds = 4;
const settled = 0.005;

/** @param estimate fits all skills, in order, with a round's means: by `fitRange`, here or spread over threads */
export async function fitTrees(
  trees: AnswerTrees,
  options: FitOptions,
  estimate = async (round: FitRound): Promise<readonly SkillEstimate[]> =>
    fitRange(trees, 0, trees.learners.length, round),
): Promise<BktFit> {
  const iterations = new Uint32Array(trees.learners.length);
  let round: FitRound = { ...options, means: fitPriorMeans };
  for (let n = 1; ; n++) {
    const estimates = await estimate(round);
    for (const [skill, one] of estimates.entries())
      iterations[skill] = (iterations[skill] as number) + one.iterations;
    const means = tenantMeans(trees, estimates);
    if (n === maxRounds || means === null || distance(means, round.means) <= settled)
      return fitOf(trees, estimates, iterations, round);
    round = { ...round, means, warm: estimates.map(({ parameters }) => parameters), coldStart: false };
  }
}

/** Fits the skills `from` to `to` - 1. Skills with too few learners get the prior means. */
export function fitRange(trees: AnswerTrees, from: number, to: number, round: FitRound): SkillEstimate[] {
  const { means, warm = [], coldStart = false, difficultyScale } = round;
  return Array.from({ length: to - from }, (_, i) => {
    const skill = from + i;
    if (!isFitted(trees, skill)) return { parameters: means, objective: 0, iterations: 0 };
    const start = warm[skill];
    const starts = [start ?? means, ...(start !== undefined && coldStart ? [means] : [])];
    const tree = skillTree(trees, skill, difficultyScale);
    const fits = starts.map((one) => fitSkill(tree, one, means, round));
    const best = fits.reduce((a, b) => (b.objective > a.objective ? b : a));
    return { ...best, iterations: fits.reduce((sum, fit) => sum + fit.iterations, 0) };
  });
}

const isFitted = (trees: AnswerTrees, skill: number): boolean =>
  (trees.learners[skill] as number) >= fitModel.minLearners;

/** Means of the large skills; of all fitted ones while there are too few of those; null while there are too few of either. */
function tenantMeans(trees: AnswerTrees, estimates: readonly SkillEstimate[]): BktParameters | null {
  const { priorLearners, minLearners, minFittedSkills } = fitModel;
  for (const learners of [priorLearners, minLearners]) {
    const pool = estimates.filter((_, skill) => (trees.learners[skill] as number) >= learners);
    if (pool.length >= minFittedSkills) return meanOf(pool);
  }
  return null;
}

const meanOf = (estimates: readonly SkillEstimate[]): BktParameters =>
  parametersBy(
    (name) => estimates.reduce((sum, { parameters }) => sum + parameters[name], 0) / estimates.length,
  );

const distance = (a: BktParameters, b: BktParameters): number =>
  Math.max(...Object.values(parametersBy((name) => Math.abs(a[name] - b[name]))));

function fitOf(
  trees: AnswerTrees,
  estimates: readonly SkillEstimate[],
  iterations: Uint32Array,
  { means }: FitRound,
) {
  const fitted = estimates.filter((_, skill) => isFitted(trees, skill));
  // What skills without a fit of their own are served: the mean of the fitted ones; with too few of them, the defaults.
  const prior: { readonly parameters: BktParameters; readonly source: ParameterSource } =
    fitted.length < fitModel.minFittedSkills
      ? { parameters: defaultParameters, source: 'default' }
      : { parameters: constrain(meanOf(fitted)), source: 'prior' };
  const skills = estimates.map(({ parameters }, skill) => ({
    ...(isFitted(trees, skill) ? { parameters, source: 'fitted' as const } : prior),
    learners: trees.learners[skill] as number,
    observations: trees.observations[skill] as number,
    iterations: iterations[skill] as number,
    difficultyMean: trees.difficultyMean[skill] as number,
  }));
  return { skills, prior, means };
}

/** From the strongest to the weakest hold on a fit. */
const ruleCandidates: readonly FitOptions[] = [1, 1 / 2, 1 / 6, 1 / 20].map((share) => ({
  strengths: parametersBy((name) => share * priorStrengths[name]),
  difficultyScale: 0,
}));

/** The default comes first: to leave it takes evidence. */
const scaleCandidates: readonly number[] = [difficultyModel.scale, 0.25, 0.75, 0, 1];

/** Fits each candidate on four fifths of the learners, compares on the rest: strengths, then scale. */
export async function chooseFitOptions(
  log: AnswerLog,
  learners = everyone(log),
  { rapidBelow = [] }: TreeOptions = {},
): Promise<FitOptions> {
  const fitted = learnersWhere(log, (learner) => learners[learner] === 1 && !isHeldOut(learner));
  const heldOut = learnersWhere(log, (learner) => learners[learner] === 1 && isHeldOut(learner));
  const options = { rapidBelow };
  const rule = await preferred(log, heldOut, growTrees(log, fitted, options), ruleCandidates);
  if (!hasDifficulty(log)) return rule;
  const shifted = growTrees(log, fitted, { ...options, withDifficulty: true });
  const scales = scaleCandidates.map((difficultyScale) => ({ ...rule, difficultyScale }));
  return preferred(log, heldOut, shifted, scales);
}

/** A fixed fifth of the learners, picked by a hash of their index. */
export const isHeldOut = (learner: number): boolean =>
  (mixBits(learner + 1) >>> 0) / 2 ** 32 < fitModel.heldOutShare;

/** The first candidate that loses no more to the best one than chance may account for: one standard error. */
async function preferred(
  log: AnswerLog,
  heldOut: Learners,
  trees: AnswerTrees,
  candidates: readonly FitOptions[],
): Promise<FitOptions> {
  const trials: Trial[] = [];
  for (const candidate of candidates) trials.push(await tryOut(log, heldOut, trees, candidate));
  const best = trials.reduce((a, b) => (b.meanLoss < a.meanLoss ? b : a));
  return (trials.find((trial) => isNear(trial, best)) ?? best).candidate;
}

type Trial = Awaited<ReturnType<typeof tryOut>>;

async function tryOut(log: AnswerLog, heldOut: Learners, trees: AnswerTrees, candidate: FitOptions) {
  const { skills } = await fitTrees(trees, candidate);
  const model = { ...candidate, skills };
  const { losses, answers } = sumLosses(log, heldOut, model, heldOut.length, (_, learner) => learner);
  const total = answers.reduce((sum, count) => sum + count, 0);
  const meanLoss = losses.reduce((sum, loss) => sum + loss, 0) / Math.max(1, total);
  return { candidate, losses, answers, total, meanLoss };
}

/** Standard error of the mean difference with learners as clusters: answers of one learner go together. */
function isNear({ losses, answers, total, meanLoss }: Trial, best: Trial): boolean {
  const difference = meanLoss - best.meanLoss;
  let squares = 0;
  let learners = 0;
  for (const [learner, count] of answers.entries()) {
    if (count === 0) continue;
    learners++;
    squares += ((losses[learner] as number) - (best.losses[learner] as number) - difference * count) ** 2;
  }
  if (learners < 2) return true;
  return difference <= Math.sqrt((squares * learners) / (learners - 1)) / total;
}
