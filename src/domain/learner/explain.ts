/** Takes what is told of a skill apart: one answer's change of mastery, and the probability of a right answer. */

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

/** Mastery at the four stations of one answer, each a probability. */
export interface Stations {
  /** After the answer before, or the prior before the first one; null where that is not known. */
  readonly previous: number | null;
  /** After forgetting. */
  readonly before: number;
  /** Given the answer, before learning; null where the answer's own figures do not lead to `after`. */
  readonly posterior: number | null;
  readonly after: number;
}

/** Figures agree within this: the same operations on the same doubles, short of another version's rounding. */
const tolerance = 1e-9;

/**
 * The stations of an answer, computed again from its own figures. One that does not lead to the next is null: that
 * is a defect of what was stored, and no difference may hide it.
 *
 * @param previous mastery after the skill's answer before; the prior before the first; null: not known
 */
export function stationsOf(answer: CountedAnswer, previous: number | null): Stations {
  const { parameters, masteryBefore: before, masteryAfter: after, isCorrect, difficultyShift } = answer;
  const step = traceAnswer(parameters, before, isCorrect, { difficultyShift });
  return {
    previous: previous !== null && isForgotten(previous, before, parameters) ? previous : null,
    before,
    posterior: Math.abs(step.masteryAfter - after) <= tolerance ? step.posterior : null,
    after,
  };
}

/** Forgetting leads towards the prior, never past it, and leaves alone what is below it. */
const isForgotten = (previous: number, before: number, { pInit }: BktParameters): boolean =>
  before <= previous + tolerance && before >= Math.min(previous, pInit) - tolerance;

/** Stations as they are shown, and the steps between them. */
export interface Parts extends Stations {
  /** From `previous` to `before`: 0 or below. */
  readonly forgetting: number | null;
  /** From `before` to `posterior`: what the answer says. */
  readonly evidence: number | null;
  /**
   * From `posterior` to `after`: what the attempt taught, with what the guard of wrong answers and the bounds of
   * mastery cut off.
   */
  readonly learning: number | null;
}

/**
 * Rounds the stations to 4 decimals and takes the differences of what is shown: so previous + forgetting +
 * evidence + learning is `after` to the last digit, and evidence + learning the velocity that the answer returned.
 */
export function partsOf(stations: Stations): Parts {
  const [previous, before, posterior, after] = [
    shown(stations.previous),
    round4(stations.before),
    shown(stations.posterior),
    round4(stations.after),
  ];
  return {
    previous,
    before,
    posterior,
    after,
    forgetting: previous === null ? null : round4(before - previous),
    evidence: posterior === null ? null : round4(posterior - before),
    learning: posterior === null ? null : round4(after - posterior),
  };
}

const shown = (mastery: number | null): number | null => (mastery === null ? null : round4(mastery));

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

/**
 * The probability that would be served now for a question of which nothing is known, and the terms whose sum is its
 * log-odds.
 */
export function explainPrediction(subject: PredictionSubject): {
  readonly pCorrect: number;
  readonly terms: readonly Term[];
} {
  const { model, learner, skill, now } = subject;
  const { prediction } = subject.tenantModel;
  const question = { occurredAt: now, questionDifficulty: null };
  const row = featuresOf(model, 0, { learner, skill, item: null }, question, new Float64Array(rowWidth));
  const terms = termsOf(subject.tenantModel, model, null);
  return { pCorrect: predict(prediction, terms, row), terms: explain(prediction, terms, row) };
}
