/** Bounds, strength of the priors and scale of the difficulty, chosen on learners that the fit has not seen. */

import {
  type AnswerLog,
  everyone,
  hasDifficulty,
  type Learners,
  learnersWhere,
} from '../../base/answer-log.js';
import { answerLoss } from '../../base/metrics.js';
import { difficultyModel, fitBounds, fitModel, priorStrengths } from '../../base/params.js';
import { type FitRules, parametersBy } from './em.js';
import { fitTrees } from './fit.js';
import { traceLog } from './trace.js';
import { type AnswerTrees, growTrees, type TreeOptions } from './trees.js';

export interface Candidate extends FitRules {
  readonly difficultyScale: number;
}

/** From the strongest to the weakest hold on a fit. */
const ruleCandidates: readonly FitRules[] = [
  { bounds: fitBounds.narrow, strengths: priorStrengths },
  ...[1, 1 / 2, 1 / 6, 1 / 20].map((share) => ({
    bounds: fitBounds.wide,
    strengths: parametersBy((name) => share * priorStrengths[name]),
  })),
];

/** The default comes first: to leave it takes evidence. */
const scaleCandidates: readonly number[] = [difficultyModel.scale, 0.25, 0.75, 0, 1];

/**
 * Chooses how to fit: every candidate is fitted on four fifths of the learners and predicts the answers of the
 * others. First the bounds and strengths, then, where difficulties are supplied, their scale.
 *
 * @param learners who may be looked at: for an evaluation, those of the training folds only
 */
export async function chooseFitOptions(
  log: AnswerLog,
  learners = everyone(log),
  { rapidBelow = [] }: TreeOptions = {},
): Promise<Candidate> {
  const fitted = learnersWhere(log, (learner) => learners[learner] === 1 && !isHeldOut(learner));
  const heldOut = learnersWhere(log, (learner) => learners[learner] === 1 && isHeldOut(learner));
  const plain = growTrees(log, fitted, { rapidBelow });
  const rules = ruleCandidates.map((rule) => ({ ...rule, difficultyScale: 0 }));
  const rule = await preferred(log, heldOut, plain, rules);
  if (!hasDifficulty(log)) return rule;
  const shifted = growTrees(log, fitted, { rapidBelow, withDifficulty: true });
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

/** One candidate's log losses, summed by learner, with the learner's answers. */
interface Trial {
  readonly candidate: Candidate;
  readonly losses: Float64Array;
  readonly answers: Uint32Array;
}

/** The first candidate that loses no more to the best one than chance may account for: one standard error. */
async function preferred(
  log: AnswerLog,
  heldOut: Learners,
  trees: AnswerTrees,
  candidates: readonly Candidate[],
): Promise<Candidate> {
  const trials: Trial[] = [];
  for (const candidate of candidates) trials.push(await tryOut(log, heldOut, trees, candidate));
  const best = trials.reduce((a, b) => (meanLoss(b) < meanLoss(a) ? b : a));
  return (trials.find((trial) => isNear(trial, best)) ?? best).candidate;
}

async function tryOut(
  log: AnswerLog,
  heldOut: Learners,
  trees: AnswerTrees,
  candidate: Candidate,
): Promise<Trial> {
  const losses = new Float64Array(heldOut.length);
  const answers = new Uint32Array(heldOut.length);
  const { skills } = await fitTrees(trees, candidate);
  traceLog(log, heldOut, { ...candidate, skills }, (place, pCorrect, learner) => {
    losses[learner] = (losses[learner] as number) + answerLoss(pCorrect, log.correct[place] as number);
    answers[learner] = (answers[learner] as number) + 1;
  });
  return { candidate, losses, answers };
}

const sum = (values: Float64Array | Uint32Array): number => {
  let total = 0;
  for (const value of values) total += value;
  return total;
};

const meanLoss = ({ losses, answers }: Trial): number => sum(losses) / Math.max(1, sum(answers));

/** Standard error of the mean difference with learners as clusters: answers of one learner go together. */
function isNear(trial: Trial, best: Trial): boolean {
  const difference = meanLoss(trial) - meanLoss(best);
  let squares = 0;
  let learners = 0;
  for (const [learner, answers] of trial.answers.entries()) {
    if (answers === 0) continue;
    learners++;
    const own = (trial.losses[learner] as number) - (best.losses[learner] as number);
    squares += (own - difference * answers) ** 2;
  }
  if (learners < 2) return true;
  const error = Math.sqrt((squares * learners) / (learners - 1)) / sum(trial.answers);
  return difference <= error;
}
