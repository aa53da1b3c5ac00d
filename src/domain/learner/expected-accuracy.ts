import { computeFeatures, selectTerms } from '../answer/answer-conditions.js';
import { sigmoid } from '../base/common.js';
import type { TenantModel } from '../catalogue/tenant-model.js';
import { logOddsWithoutItem } from '../prediction/prediction-model.js';
import { hashQuestionKeys } from '../tracing/course.js';
import { hasSteadyMastery, isAccuracySufficient, type LearnerState } from '../tracing/learner-states.js';
import { expectedRangeConstants } from './learner-constants.js';
import type { SkillView } from './skill-view.js';

/** A question with unknown item and difficulty. The next call overwrites `row`. */
export function buildAverageQuestion(
  view: SkillView,
  learner: LearnerState,
  model: TenantModel,
  now: number,
) {
  const question = { occurredAt: now, questionDifficulty: null };
  const keys = hashQuestionKeys([view.skillId], null);
  const asked = { skills: [view.model] as const, combined: view.model };
  const row = computeFeatures(asked, 0, { keys, learner, skills: [view.state], item: null }, question);
  return { terms: selectTerms(model, view.model, null), row };
}

/** Share correct on average questions, with an 80 % range. @param now Unix milliseconds */
export function computeExpectedAccuracy(
  view: SkillView,
  learner: LearnerState,
  model: TenantModel,
  now: number,
) {
  const { terms, row } = buildAverageQuestion(view, learner, model, now);
  return computeExpectedRange(logOddsWithoutItem(model.prediction, terms, row, 0), view.state.attempts);
}

/** @param logOdds on an average question */
export function computeExpectedRange(logOdds: number, attempts: number) {
  const { z, variance, perAnswer, priorAnswers } = expectedRangeConstants;
  const reach = z * Math.sqrt(variance + perAnswer / (attempts + priorAnswers));
  return { expected: sigmoid(logOdds), low: sigmoid(logOdds - reach), high: sigmoid(logOdds + reach) };
}

export interface SkillContext {
  readonly learner: LearnerState;
  readonly model: TenantModel;
  readonly now: number;
}

export const isMastered = (view: SkillView, { learner, model, now }: SkillContext): boolean =>
  isMasteredAt(view, () => computeExpectedAccuracy(view, learner, model, now).expected);

/** For callers that know the expected accuracy. */
export const isMasteredAt = ({ state, mastery, model }: SkillView, expected: () => number): boolean =>
  hasSteadyMastery(state, mastery) && isAccuracySufficient(expected(), model.parameters);
