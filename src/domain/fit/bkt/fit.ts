/**
 * Fits of all skills of a tenant in two levels: skills are drawn to the mean of the tenant's large skills, and
 * that mean is refreshed round by round (empirical Bayes).
 */

import type { AnswerLog, LearnerFilter } from '../../base/answer-log.js';
import { type BktParameters, defaultParameters, fitModel, fitPriorMeans } from '../../base/params.js';
import type { ParameterSource } from '../../catalogue/tenant-model.js';
import { constrain, type FitRules, fitSkill, type SkillEstimate } from './em.js';
import { newWorkspace, type SkillTree, skillTree, type Workspace } from './filter.js';
import { type AnswerTrees, growTrees, type TreeOptions } from './trees.js';

export interface FitOptions extends FitRules {
  /** k of the difficulty's logit shift; 0 leaves difficulty out. */
  readonly difficultyScale: number;
  /** Parameters to start from, by skill: those in force. */
  readonly warm?: readonly (BktParameters | undefined)[];
  /** Starts from the prior means too and keeps the better fit: for when much of the data is new. */
  readonly coldStart?: boolean;
}

/** Skills to fit now, all with the same prior means: from the second round on from where the last one ended. */
export interface FitRound {
  readonly means: BktParameters;
  readonly warm: readonly (BktParameters | undefined)[];
  readonly coldStart: boolean;
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
  readonly prior: { readonly parameters: BktParameters; readonly source: ParameterSource };
  /** Means that the skills were drawn to in the last round. */
  readonly means: BktParameters;
  readonly totals: {
    readonly iterations: number;
    readonly observations: number;
    /** Sum of observations times iterations: what the work grows with. */
    readonly observationIterations: number;
  };
}

/** Fits every skill on the answers of these learners, in this thread. */
export function fitBkt(
  log: AnswerLog,
  learners: LearnerFilter,
  options: FitOptions & Pick<TreeOptions, 'rapidBelow'>,
): BktFit {
  const trees = growTrees(log, learners, { ...options, withDifficulty: options.difficultyScale > 0 });
  return fitTrees(trees, options);
}

export function fitTrees(trees: AnswerTrees, options: FitOptions): BktFit {
  const rounds = fitRounds(trees, options);
  let round = rounds.next();
  while (!round.done) round = rounds.next(fitRange(trees, 0, trees.learners.length, round.value, options));
  return round.value;
}

/** Rounds of the prior means; a round that moves none of them by more than `settled` is the last. */
const mostRounds = 4;
const settled = 0.005;

/**
 * The rounds of a fit, without the work: yields what to fit with and takes the estimates of all skills in order,
 * so that the caller may spread `fitRange` over threads.
 */
export function* fitRounds(
  trees: AnswerTrees,
  options: FitOptions,
): Generator<FitRound, BktFit, readonly SkillEstimate[]> {
  const iterations = new Uint32Array(trees.learners.length);
  let means = fitPriorMeans;
  let warm = options.warm ?? [];
  let estimates: readonly SkillEstimate[] = [];
  for (let round = 0; round < mostRounds; round++) {
    estimates = yield { means, warm, coldStart: round === 0 && options.coldStart === true };
    for (const [skill, estimate] of estimates.entries())
      iterations[skill] = (iterations[skill] as number) + estimate.iterations;
    const next = tenantMeans(trees, estimates);
    if (next === null || distance(next, means) <= settled) break;
    warm = estimates.map(({ parameters }) => parameters);
    means = next;
  }
  return assemble(trees, estimates, iterations, means, options);
}

/**
 * Fits the skills from `from` to `to` - 1; a thread may do so on shared trees.
 *
 * @returns one estimate per skill; for a skill with too few learners to be served a fit, the prior means
 */
export function fitRange(
  trees: AnswerTrees,
  from: number,
  to: number,
  round: FitRound,
  options: FitOptions,
): SkillEstimate[] {
  const work = newWorkspace(largestTree(trees, from, to));
  return Array.from({ length: to - from }, (_, i) => {
    const skill = from + i;
    if (!isFitted(trees, skill)) return { parameters: round.means, objective: 0, iterations: 0 };
    const tree = skillTree(trees, skill, options.difficultyScale);
    return fitFromStarts(tree, startsOf(round, skill), round.means, options, work);
  });
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

const isFitted = (trees: AnswerTrees, skill: number): boolean =>
  (trees.learners[skill] as number) >= fitModel.minLearners;

function largestTree({ starts }: AnswerTrees, from: number, to: number): number {
  let most = 0;
  for (let skill = from; skill < to; skill++)
    most = Math.max(most, (starts[skill + 1] as number) - (starts[skill] as number));
  return most;
}

function startsOf({ means, warm, coldStart }: FitRound, skill: number): BktParameters[] {
  const start = warm[skill];
  if (start === undefined) return [means];
  return coldStart ? [start, means] : [start];
}

function fitFromStarts(
  tree: SkillTree,
  starts: readonly BktParameters[],
  means: BktParameters,
  rules: FitRules,
  work: Workspace,
): SkillEstimate {
  const fits = starts.map((start) => fitSkill(tree, start, means, rules, work));
  const best = fits.reduce((a, b) => (b.objective > a.objective ? b : a));
  return { ...best, iterations: fits.reduce((sum, fit) => sum + fit.iterations, 0) };
}

function meanOf(estimates: readonly SkillEstimate[]): BktParameters {
  const mean = (name: keyof BktParameters): number =>
    estimates.reduce((sum, { parameters }) => sum + parameters[name], 0) / estimates.length;
  return { pInit: mean('pInit'), pLearn: mean('pLearn'), pGuess: mean('pGuess'), pSlip: mean('pSlip') };
}

const distance = (a: BktParameters, b: BktParameters): number =>
  Math.max(
    Math.abs(a.pInit - b.pInit),
    Math.abs(a.pLearn - b.pLearn),
    Math.abs(a.pGuess - b.pGuess),
    Math.abs(a.pSlip - b.pSlip),
  );

function assemble(
  trees: AnswerTrees,
  estimates: readonly SkillEstimate[],
  iterations: Uint32Array,
  means: BktParameters,
  options: FitOptions,
): BktFit {
  const prior = servedPrior(
    estimates.filter((_, skill) => isFitted(trees, skill)),
    options,
  );
  const skills = estimates.map(({ parameters }, skill) => ({
    ...(isFitted(trees, skill) ? { parameters, source: 'fitted' as const } : prior),
    learners: trees.learners[skill] as number,
    observations: trees.observations[skill] as number,
    iterations: iterations[skill] as number,
    difficultyMean: trees.difficultyMean[skill] as number,
  }));
  return { skills, prior, means, totals: totalsOf(skills) };
}

/** The mean of all fitted skills; with too few of them, the defaults. */
function servedPrior(fitted: readonly SkillEstimate[], { bounds }: FitOptions): BktFit['prior'] {
  return fitted.length < fitModel.minFittedSkills
    ? { parameters: defaultParameters, source: 'default' }
    : { parameters: constrain(meanOf(fitted), bounds), source: 'prior' };
}

function totalsOf(skills: readonly SkillFit[]): BktFit['totals'] {
  let iterations = 0;
  let observations = 0;
  let observationIterations = 0;
  for (const skill of skills) {
    iterations += skill.iterations;
    observations += skill.observations;
    observationIterations += skill.iterations * skill.observations;
  }
  return { iterations, observations, observationIterations };
}
