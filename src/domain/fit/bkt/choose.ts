/** Bounds, strength of the priors and scale of the difficulty, chosen on learners that the fit has not seen. */

import {
  type AnswerLog,
  everyone,
  hasDifficulty,
  type Learners,
  learnersWhere,
} from '../../base/answer-log.js';
import { difficultyModel, fitBounds, fitModel, priorStrengths } from '../../base/params.js';
import { parametersBy } from './em.js';
import { type FitOptions, fitTrees } from './fit.js';
import { sumLosses } from './trace.js';
import { type AnswerTrees, growTrees, type TreeOptions } from './trees.js';

/** From the strongest to the weakest hold on a fit. */
const ruleCandidates: readonly FitOptions[] = [
  { bounds: fitBounds.narrow, strengths: priorStrengths, difficultyScale: 0 },
  ...[1, 1 / 2, 1 / 6, 1 / 20].map((share) => ({
    bounds: fitBounds.wide,
    strengths: parametersBy((name) => share * priorStrengths[name]),
    difficultyScale: 0,
  })),
];

/** The default comes first: to leave it takes evidence. */
const scaleCandidates: readonly number[] = [difficultyModel.scale, 0.25, 0.75, 0, 1];

/**
 * Chooses how to fit: every candidate is fitted on four fifths of the learners and predicts the answers of the
 * others. First the bounds and strengths, then, where difficulties are supplied, their scale.
 */
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

/** A fixed fifth of the learners, picked by a hash of their index (the finaliser of MurmurHash3). */
export function isHeldOut(learner: number): boolean {
  let hash = learner + 1;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32 < fitModel.heldOutShare;
}

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
