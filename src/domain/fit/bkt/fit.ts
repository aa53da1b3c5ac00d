/** Fits of all skills of a tenant: drawn to the mean of its large skills, which each round refreshes (empirical Bayes). */

import { type BktParameters, defaultParameters, fitModel, fitPriorMeans } from '../../base/params.js';
import type { ParameterSource } from '../../catalogue/tenant-model.js';
import { constrain, type FitRules, fitSkill, parametersBy, type SkillEstimate } from './em.js';
import { newWorkspace, skillTree } from './filter.js';
import type { AnswerTrees } from './trees.js';

export interface FitOptions extends FitRules {
  /** k of the difficulty's logit shift; 0 leaves difficulty out. */
  readonly difficultyScale: number;
  /** Parameters to start from, by skill: those in force. */
  readonly warm?: readonly (BktParameters | undefined)[];
  /** Starts from the prior means too and keeps the better fit: for when much of the data is new. */
  readonly coldStart?: boolean;
}

/** What all skills are fitted with in one round: from the second on they start where the last one ended. */
export interface FitRound extends FitOptions {
  readonly means: BktParameters;
}

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

/**
 * Fits the skills from `from` to `to` - 1; a thread may do so on shared trees.
 * @returns one estimate per skill; for a skill with too few learners to be served a fit, the prior means
 */
export function fitRange(trees: AnswerTrees, from: number, to: number, round: FitRound): SkillEstimate[] {
  const { means, warm = [], coldStart = false, difficultyScale } = round;
  return Array.from({ length: to - from }, (_, i) => {
    const skill = from + i;
    if (!isFitted(trees, skill)) return { parameters: means, objective: 0, iterations: 0 };
    const start = warm[skill];
    const starts = [start ?? means, ...(start !== undefined && coldStart ? [means] : [])];
    const tree = skillTree(trees, skill, difficultyScale);
    const work = newWorkspace(tree.size);
    const fits = starts.map((one) => fitSkill(tree, one, means, round, work));
    const best = fits.reduce((a, b) => (b.objective > a.objective ? b : a));
    return { ...best, iterations: fits.reduce((sum, fit) => sum + fit.iterations, 0) };
  });
}

const isFitted = (trees: AnswerTrees, skill: number): boolean =>
  (trees.learners[skill] as number) >= fitModel.minLearners;

/**
 * Means of the large skills; of all fitted ones while there are too few of those, for noisier means cost less than
 * means that are not the tenant's own. Null while there are too few of either.
 */
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
  { means, bounds }: FitRound,
) {
  const fitted = estimates.filter((_, skill) => isFitted(trees, skill));
  // What skills without a fit of their own are served: the mean of the fitted ones; with too few of them, the defaults.
  const prior: { readonly parameters: BktParameters; readonly source: ParameterSource } =
    fitted.length < fitModel.minFittedSkills
      ? { parameters: defaultParameters, source: 'default' }
      : { parameters: constrain(meanOf(fitted), bounds), source: 'prior' };
  const skills = estimates.map(({ parameters }, skill) => ({
    ...(isFitted(trees, skill) ? { parameters, source: 'fitted' as const } : prior),
    learners: trees.learners[skill] as number,
    observations: trees.observations[skill] as number,
    /** Of EM, over all rounds and starts. */
    iterations: iterations[skill] as number,
    difficultyMean: trees.difficultyMean[skill] as number,
  }));
  return { skills, prior, means };
}
