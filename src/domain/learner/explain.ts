/** Explains a skill: the parts of one answer's change of mastery, and the terms of the probability of a right answer. */

import { featuresOf, termsOf } from '../answer/conditions.js';
import type { BktParameters } from '../base/params.js';
import { round4 } from '../base/probability.js';
import type { SkillModel, TenantModel } from '../catalogue/tenant-model.js';
import { rowWidth } from '../prediction/features.js';
import { explain, predict, type Term } from '../prediction/model.js';
import { traceAnswer } from '../tracing/bkt.js';
import type { LearnerState, SkillState } from '../tracing/states.js';

/** A counted answer: what its update took, and what came of it, unrounded. */
export interface CountedAnswer {
  readonly isCorrect: boolean;
  /** In force when it was counted. */
  readonly parameters: BktParameters;
  readonly difficultyShift: number;
  /** After forgetting. */
  readonly masteryBefore: number;
  readonly masteryAfter: number;
}

/** Mastery at the four stations of an answer, and the steps between them; probabilities of 4 decimals. */
export interface StepParts {
  /** After the answer before, or the prior before the first one; null where that is not known. */
  readonly previous: number | null;
  /** After forgetting. */
  readonly before: number;
  /** Given the answer, before learning; null where the answer's own figures do not lead to `after`. */
  readonly posterior: number | null;
  readonly after: number;
  /** From `previous` to `before`: 0 or below. */
  readonly forgetting: number | null;
  /** From `before` to `posterior`: what the answer says. */
  readonly evidence: number | null;
  /** From `posterior` to `after`: what the attempt taught, less what the guard of wrong answers and the bounds cut off. */
  readonly learning: number | null;
}

/**
 * The parts of an answer, computed again from its own figures. Steps are differences of the rounded stations: previous +
 * forgetting + evidence + learning is `after` to the last digit, and evidence + learning the velocity that the answer
 * returned. A station that does not lead to the next is null: a defect of what was stored, which no step may hide.
 *
 * @param previous mastery after the skill's answer before; the prior before the first; null: not known
 */
export function partsOf(answer: CountedAnswer, previous: number | null): StepParts {
  const { parameters, masteryBefore, masteryAfter, isCorrect, difficultyShift } = answer;
  const step = traceAnswer(parameters, masteryBefore, isCorrect, { difficultyShift });
  const leadsOn = Math.abs(step.masteryAfter - masteryAfter) <= tolerance;
  const before = round4(masteryBefore);
  const after = round4(masteryAfter);
  const posterior = leadsOn ? round4(step.posterior) : null;
  const start =
    previous !== null && isForgotten(previous, masteryBefore, parameters) ? round4(previous) : null;
  return {
    previous: start,
    before,
    posterior,
    after,
    forgetting: start === null ? null : round4(before - start),
    evidence: posterior === null ? null : round4(posterior - before),
    learning: posterior === null ? null : round4(after - posterior),
  };
}

/** Figures agree within this: the same operations on the same doubles, short of another version's rounding. */
const tolerance = 1e-9;

/** Forgetting leads towards the prior, never past it, and leaves alone what is below it. */
const isForgotten = (previous: number, before: number, { pInit }: BktParameters): boolean =>
  before <= previous + tolerance && before >= Math.min(previous, pInit) - tolerance;

/** What the next answer on a skill would make of its mastery, for a question of usual difficulty. */
export const nextMastery = (
  parameters: BktParameters,
  mastery: number,
): { readonly ifCorrect: number; readonly ifWrong: number } => ({
  ifCorrect: traceAnswer(parameters, mastery, true).masteryAfter,
  ifWrong: traceAnswer(parameters, mastery, false).masteryAfter,
});

/** A learner's states as they stand, and the model in force for the skill. */
export interface PredictionSubject {
  readonly tenantModel: TenantModel;
  readonly model: SkillModel;
  readonly learner: LearnerState;
  readonly skill: SkillState;
  /** Unix milliseconds. */
  readonly now: number;
}

/** The probability served now for a question of which nothing is known, and the terms whose sum is its log-odds. */
export function explainPrediction({ tenantModel, model, learner, skill, now }: PredictionSubject): {
  readonly pCorrect: number;
  readonly terms: readonly Term[];
} {
  const { prediction } = tenantModel;
  const question = { occurredAt: now, questionDifficulty: null };
  const row = featuresOf(model, 0, { learner, skill, item: null }, question, new Float64Array(rowWidth));
  const terms = termsOf(tenantModel, model, null);
  return { pCorrect: predict(prediction, terms, row), terms: explain(prediction, terms, row) };
}
