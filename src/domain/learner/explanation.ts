import type { BktParameters } from '../base/bkt-parameters.js';
import { round4 } from '../base/common.js';
import type { TenantModel } from '../catalogue/tenant-model.js';
import type { FeatureRow } from '../prediction/features.js';
import { explainPrediction, type Term } from '../prediction/prediction-model.js';
import { formatTerm } from '../prediction/term-texts.js';
import { type SkillMastery, traceAnswer, traceQuestion } from '../tracing/bkt.js';
import type { LearnerState } from '../tracing/learner-states.js';
import { buildAverageQuestion } from './expected-accuracy.js';
import type { SkillView } from './skill-view.js';

export interface CountedAnswer {
  readonly isCorrect: boolean;
  readonly parameters: BktParameters;
  readonly difficultyShift: number;
  /** After forgetting. */
  readonly masteryBefore: number;
  readonly masteryAfter: number;
  /** Other skills of the question, before the answer. */
  readonly others: readonly SkillMastery[];
}

/**
 * Previous + forgetting + evidence + learning equals `after` exactly. Fields are null if the stored values do
 * not follow from each other. @param previous mastery after the previous answer
 */
export function splitMasteryChange(answer: CountedAnswer, previous: number | null) {
  const { parameters, masteryBefore, masteryAfter, isCorrect, difficultyShift, others } = answer;
  const skills = [{ parameters, mastery: masteryBefore }, ...others] as const;
  const [step] = traceQuestion(skills, isCorrect, difficultyShift);
  const isReproduced = Math.abs(step.masteryAfter - masteryAfter) <= tolerance;
  const before = round4(masteryBefore);
  const after = round4(masteryAfter);
  const posterior = isReproduced ? round4(step.posterior) : null;
  const start =
    previous !== null && isForgettingStep(previous, masteryBefore, parameters) ? round4(previous) : null;
  return {
    previous: start,
    before,
    posterior,
    after,
    forgetting: start === null ? null : round4(before - start),
    evidence: posterior === null ? null : round4(posterior - before),
    /** Includes forgetting at the attempt. */
    learning: posterior === null ? null : round4(after - posterior),
  };
}

const tolerance = 1e-9;

/** Forgetting moves mastery towards pInit and never past it. */
const isForgettingStep = (previous: number, before: number, { pInit }: BktParameters): boolean =>
  before <= previous + tolerance && before >= Math.min(previous, pInit) - tolerance;

export const predictNextMastery = (parameters: BktParameters, mastery: number) => ({
  ifCorrect: traceAnswer(parameters, mastery, true).masteryAfter,
  ifWrong: traceAnswer(parameters, mastery, false).masteryAfter,
});

/** The rounded terms add up to `logOdds` exactly. */
export function explainExpected(view: SkillView, learner: LearnerState, model: TenantModel, now: number) {
  const { terms, row } = buildAverageQuestion(view, learner, model, now);
  return formatTerms(explainPrediction(model.prediction, terms, row), row);
}

export function formatTerms(terms: readonly Term[], row: FeatureRow) {
  const rounded = terms.map(({ name, logits }) => ({ name, logits: round4(logits) }));
  return {
    logOdds: round4(rounded.reduce((sum, { logits }) => sum + logits, 0)),
    terms: rounded.map((term) => ({ ...term, text: formatTerm(term, row) })),
  };
}
