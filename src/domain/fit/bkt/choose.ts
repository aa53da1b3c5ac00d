/** Bounds, strength of the priors and scale of the difficulty, chosen on learners that the fit has not seen. */

import type { AnswerLog, LearnerFilter } from '../../base/answer-log.js';
import { difficultyModel, fitBounds, type PriorStrengths, priorStrengths } from '../../base/params.js';
import type { FitRules } from './em.js';
import { fitTrees } from './fit.js';
import { isHeldOut, lossOf, traceLog } from './held-out.js';
import { type AnswerTrees, growTrees, type TreeOptions } from './trees.js';

export interface Candidate extends FitRules {
  readonly difficultyScale: number;
}

/** What was chosen, and the mean held-out log loss of all that were tried. */
export interface FitChoice {
  readonly chosen: Candidate;
  readonly tried: readonly { readonly candidate: Candidate; readonly logLoss: number }[];
}

const scaled = (share: number): PriorStrengths => ({
  pInit: share * priorStrengths.pInit,
  pLearn: share * priorStrengths.pLearn,
  pGuess: share * priorStrengths.pGuess,
  pSlip: share * priorStrengths.pSlip,
});

/** From the strongest to the weakest hold on a fit. */
const ruleCandidates: readonly FitRules[] = [
  { bounds: fitBounds.narrow, strengths: priorStrengths },
  ...[1, 1 / 2, 1 / 6, 1 / 20].map((share) => ({ bounds: fitBounds.wide, strengths: scaled(share) })),
];

/** The default comes first: to leave it takes evidence. */
const scaleCandidates: readonly number[] = [difficultyModel.scale, 0.25, 0.75, 0, 1];

/**
 * Chooses how to fit: every candidate is fitted on four fifths of the learners and foretells the answers of the
 * others. First the bounds and strengths, then, where difficulties are supplied, their scale.
 *
 * @param learners who may be looked at: for an evaluation, those of the training folds only
 */
export function chooseFitOptions(
  log: AnswerLog,
  learners: LearnerFilter,
  options: Pick<TreeOptions, 'rapidBelow'> = {},
): FitChoice {
  const fitted = (learner: number): boolean => learners(learner) && !isHeldOut(learner);
  const heldOut = (learner: number): boolean => learners(learner) && isHeldOut(learner);
  const plain = growTrees(log, fitted, options);
  const rules = ruleCandidates.map((rule) => ({ ...rule, difficultyScale: 0 }));
  const byRule = tryAll(log, heldOut, plain, rules);
  const rule = preferred(byRule);
  if (!log.difficulty.some((b) => !Number.isNaN(b))) return choiceOf(rule, byRule);
  const shifted = growTrees(log, fitted, { ...options, withDifficulty: true });
  const scales = scaleCandidates.map((difficultyScale) => ({ ...rule.candidate, difficultyScale }));
  const byScale = tryAll(log, heldOut, shifted, scales);
  return choiceOf(preferred(byScale), [...byRule, ...byScale]);
}

/** One candidate's log losses, summed by learner, with the learner's answers. */
interface Trial {
  readonly candidate: Candidate;
  readonly losses: Float64Array;
  readonly answers: Uint32Array;
}

function tryAll(
  log: AnswerLog,
  heldOut: LearnerFilter,
  trees: AnswerTrees,
  candidates: readonly Candidate[],
): Trial[] {
  return candidates.map((candidate) => {
    const losses = new Float64Array(log.starts.length - 1);
    const answers = new Uint32Array(losses.length);
    const model = { ...candidate, skills: fitTrees(trees, candidate).skills };
    traceLog(log, heldOut, model, (place, pCorrect, learner) => {
      losses[learner] = (losses[learner] as number) + lossOf(pCorrect, log.correct[place] as number);
      answers[learner] = (answers[learner] as number) + 1;
    });
    return { candidate, losses, answers };
  });
}

/** The first trial that loses no more to the best one than chance may account for: one standard error. */
function preferred(trials: readonly Trial[]): Trial {
  const best = trials.reduce((a, b) => (meanLoss(b) < meanLoss(a) ? b : a));
  return trials.find((trial) => isNear(trial, best)) ?? best;
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

const choiceOf = ({ candidate }: Trial, trials: readonly Trial[]): FitChoice => ({
  chosen: candidate,
  tried: trials.map((trial) => ({ candidate: trial.candidate, logLoss: meanLoss(trial) })),
});
