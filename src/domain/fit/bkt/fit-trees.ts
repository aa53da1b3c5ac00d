import {
  type AnswerLog,
  hasDifficulty,
  type LearnerSelection,
  selectAllLearners,
  selectLearners,
} from '../../base/answer-log.js';
import { type BktParameters, defaultParameters, difficultyConstants } from '../../base/bkt-parameters.js';
import { fitConstants, fitPriorMeans, priorStrengths } from '../../base/fit-constants.js';
import { mixBits } from '../../base/text-hash.js';
import type { ParameterSource } from '../../catalogue/tenant-model.js';
import { type AnswerTrees, growTrees, type TreeOptions } from './answer-trees.js';
import {
  buildSkillTree,
  constrainParameters,
  type FitRules,
  fitSkill,
  mapParameters,
  type SkillEstimate,
} from './expectation-maximization.js';
import { sumLosses } from './trace-log.js';

export interface BktFitOptions extends FitRules {
  /** 0 ignores difficulty. */
  readonly difficultyScale: number;
  readonly warm?: readonly (BktParameters | undefined)[];
  /** Also fits from the means, and takes the better fit. */
  readonly coldStart?: boolean;
}

export type FitRound = BktFitOptions & { readonly means: BktParameters };
export type BktFit = ReturnType<typeof buildFit>;
export type SkillFit = BktFit['skills'][number];

const maxRounds = 4;
const meansTolerance = 0.005;

export async function fitTrees(
  trees: AnswerTrees,
  options: BktFitOptions,
  estimate = async (round: FitRound): Promise<readonly SkillEstimate[]> =>
    fitSkillRange(trees, 0, trees.learners.length, round),
): Promise<BktFit> {
  const iterations = new Uint32Array(trees.learners.length);
  let round: FitRound = { ...options, means: fitPriorMeans };
  for (let n = 1; ; n++) {
    const estimates = await estimate(round);
    for (const [skill, one] of estimates.entries())
      iterations[skill] = (iterations[skill] as number) + one.iterations;
    const means = computeTenantMeans(trees, estimates);
    if (n === maxRounds || means === null || computeDistance(means, round.means) <= meansTolerance)
      return buildFit(trees, estimates, iterations, round);
    round = { ...round, means, warm: estimates.map(({ parameters }) => parameters), coldStart: false };
  }
}

export function fitSkillRange(
  trees: AnswerTrees,
  from: number,
  to: number,
  round: FitRound,
): SkillEstimate[] {
  const { means, warm = [], coldStart = false, difficultyScale } = round;
  return Array.from({ length: to - from }, (_, i) => {
    const skill = from + i;
    if (!isFitted(trees, skill)) return { parameters: means, objective: 0, iterations: 0 };
    const start = warm[skill];
    const starts = [start ?? means, ...(start !== undefined && coldStart ? [means] : [])];
    const tree = buildSkillTree(trees, skill, difficultyScale);
    const fits = starts.map((one) => fitSkill(tree, one, means, round));
    const best = fits.reduce((a, b) => (b.objective > a.objective ? b : a));
    return { ...best, iterations: fits.reduce((sum, fit) => sum + fit.iterations, 0) };
  });
}

const isFitted = (trees: AnswerTrees, skill: number): boolean =>
  (trees.learners[skill] as number) >= fitConstants.minLearners;

/** Mean of the large skills, else of all fitted ones; null if too few. */
function computeTenantMeans(trees: AnswerTrees, estimates: readonly SkillEstimate[]): BktParameters | null {
  const { priorLearners, minLearners, minFittedSkills } = fitConstants;
  for (const learners of [priorLearners, minLearners]) {
    const pool = estimates.filter((_, skill) => (trees.learners[skill] as number) >= learners);
    if (pool.length >= minFittedSkills) return averageParameters(pool);
  }
  return null;
}

const averageParameters = (estimates: readonly SkillEstimate[]): BktParameters =>
  mapParameters(
    (name) => estimates.reduce((sum, { parameters }) => sum + parameters[name], 0) / estimates.length,
  );

const computeDistance = (a: BktParameters, b: BktParameters): number =>
  Math.max(...Object.values(mapParameters((name) => Math.abs(a[name] - b[name]))));

function buildFit(
  trees: AnswerTrees,
  estimates: readonly SkillEstimate[],
  iterations: Uint32Array,
  { means }: FitRound,
) {
  const fitted = estimates.filter((_, skill) => isFitted(trees, skill));
  const prior: { readonly parameters: BktParameters; readonly source: ParameterSource } =
    fitted.length < fitConstants.minFittedSkills
      ? { parameters: defaultParameters, source: 'default' }
      : { parameters: constrainParameters(averageParameters(fitted)), source: 'prior' };
  const skills = estimates.map(({ parameters }, skill) => ({
    ...(isFitted(trees, skill) ? { parameters, source: 'fitted' as const } : prior),
    learners: trees.learners[skill] as number,
    observations: trees.observations[skill] as number,
    iterations: iterations[skill] as number,
    difficultyMean: trees.difficultyMean[skill] as number,
  }));
  return { skills, prior, means };
}

const strengthCandidates: readonly BktFitOptions[] = [1, 1 / 2, 1 / 6, 1 / 20].map((share) => ({
  strengths: mapParameters((name) => share * priorStrengths[name]),
  difficultyScale: 0,
}));

/** The default comes first, because other values need evidence. */
const scaleCandidates: readonly number[] = [difficultyConstants.scale, 0.25, 0.75, 0, 1];

/**
 * Chooses prior strengths, then the difficulty scale: fits four fifths of `learners` and judges on the rest. This
 * split is inside the training learners.
 */
export async function chooseFitOptions(
  log: AnswerLog,
  learners = selectAllLearners(log),
  options: Omit<TreeOptions, 'withDifficulty'> = {},
): Promise<BktFitOptions> {
  const fitted = selectLearners(log, (learner) => learners[learner] === 1 && !isHeldOut(learner));
  const heldOut = selectLearners(log, (learner) => learners[learner] === 1 && isHeldOut(learner));
  const rule = await choosePreferred(log, heldOut, growTrees(log, fitted, options), strengthCandidates);
  if (!hasDifficulty(log)) return rule;
  const shifted = growTrees(log, fitted, { ...options, withDifficulty: true });
  const scales = scaleCandidates.map((difficultyScale) => ({ ...rule, difficultyScale }));
  return choosePreferred(log, heldOut, shifted, scales);
}

export const isHeldOut = (learner: number): boolean =>
  (mixBits(learner + 1) >>> 0) / 2 ** 32 < fitConstants.heldOutShare;

/** The first within one standard error of the best. */
async function choosePreferred(
  log: AnswerLog,
  heldOut: LearnerSelection,
  trees: AnswerTrees,
  candidates: readonly BktFitOptions[],
): Promise<BktFitOptions> {
  const trials: Trial[] = [];
  for (const candidate of candidates) trials.push(await evaluateCandidate(log, heldOut, trees, candidate));
  const best = trials.reduce((a, b) => (b.meanLoss < a.meanLoss ? b : a));
  return (trials.find((trial) => isWithinError(trial, best)) ?? best).candidate;
}

type Trial = Awaited<ReturnType<typeof evaluateCandidate>>;

async function evaluateCandidate(
  log: AnswerLog,
  heldOut: LearnerSelection,
  trees: AnswerTrees,
  candidate: BktFitOptions,
) {
  const { skills } = await fitTrees(trees, candidate);
  const model = { ...candidate, skills };
  const { losses, answers } = sumLosses(log, heldOut, model, heldOut.length, (_, learner) => [learner]);
  const total = answers.reduce((sum, count) => sum + count, 0);
  const meanLoss = losses.reduce((sum, loss) => sum + loss, 0) / Math.max(1, total);
  return { candidate, losses, answers, total, meanLoss };
}

/** Standard error of the mean difference, clustered by learner. */
function isWithinError({ losses, answers, total, meanLoss }: Trial, best: Trial): boolean {
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
