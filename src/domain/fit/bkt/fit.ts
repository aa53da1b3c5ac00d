/**
 * Fits of all skills of a tenant in two levels: skills are drawn to the mean of the tenant's large skills, and
 * that mean is refreshed round by round (empirical Bayes).
 */

import { type BktParameters, defaultParameters, fitModel, fitPriorMeans } from '../../base/params.js';
import type { ParameterSource } from '../../catalogue/tenant-model.js';
import { constrain, type FitRules, fitSkill, parametersBy, type SkillEstimate } from './em.js';
import { newWorkspace, type SkillTree, skillTree, type Workspace } from './filter.js';
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

export interface SkillFit {
  readonly parameters: BktParameters;
  readonly source: ParameterSource;
  readonly learners: number;
  readonly observations: number;
  /** EM iterations over all rounds and starts. */
  readonly iterations: number;
  /** Mean of the supplied question difficulties, which fits and updates take off; 0 where none was supplied. */
  readonly difficultyMean: number;
}

export interface BktFit {
  readonly skills: readonly SkillFit[];
  /** What skills without a fit of their own are served. */
  readonly prior: Pick<SkillFit, 'parameters' | 'source'>;
  /** Means that the skills were drawn to in the last round. */
  readonly means: BktParameters;
}

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
 *
 * @returns one estimate per skill; for a skill with too few learners to be served a fit, the prior means
 */
export function fitRange(trees: AnswerTrees, from: number, to: number, round: FitRound): SkillEstimate[] {
  const skills = Array.from({ length: to - from }, (_, i) => from + i);
  const work = newWorkspace(skills.reduce((most, skill) => Math.max(most, sizeOf(trees, skill)), 0));
  return skills.map((skill) =>
    isFitted(trees, skill)
      ? fitFromStarts(skillTree(trees, skill, round.difficultyScale), startsOf(round, skill), round, work)
      : { parameters: round.means, objective: 0, iterations: 0 },
  );
}

const sizeOf = ({ starts }: AnswerTrees, skill: number): number =>
  (starts[skill + 1] as number) - (starts[skill] as number);

const isFitted = (trees: AnswerTrees, skill: number): boolean =>
  (trees.learners[skill] as number) >= fitModel.minLearners;

function startsOf({ means, warm, coldStart }: FitRound, skill: number): BktParameters[] {
  const start = warm?.[skill];
  if (start === undefined) return [means];
  return coldStart ? [start, means] : [start];
}

function fitFromStarts(
  tree: SkillTree,
  starts: readonly BktParameters[],
  round: FitRound,
  work: Workspace,
): SkillEstimate {
  const fits = starts.map((start) => fitSkill(tree, start, round.means, round, work));
  const best = fits.reduce((a, b) => (b.objective > a.objective ? b : a));
  return { ...best, iterations: fits.reduce((sum, fit) => sum + fit.iterations, 0) };
}

/**
 * Means of the large skills; of all fitted ones while there are too few of those, for the pull to means that are
 * not the tenant's own costs more than noisier means do. Null while there are too few of either.
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
): BktFit {
  const fitted = estimates.filter((_, skill) => isFitted(trees, skill));
  // The mean of all fitted skills; with too few of them, the defaults.
  const prior: BktFit['prior'] =
    fitted.length < fitModel.minFittedSkills
      ? { parameters: defaultParameters, source: 'default' }
      : { parameters: constrain(meanOf(fitted), bounds), source: 'prior' };
  const skills = estimates.map(({ parameters }, skill) => ({
    ...(isFitted(trees, skill) ? { parameters, source: 'fitted' as const } : prior),
    learners: trees.learners[skill] as number,
    observations: trees.observations[skill] as number,
    iterations: iterations[skill] as number,
    difficultyMean: trees.difficultyMean[skill] as number,
  }));
  return { skills, prior, means };
}
