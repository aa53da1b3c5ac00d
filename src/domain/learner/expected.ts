import { featuresOf, termsOf } from '../answer/conditions.js';
import { sigmoid } from '../base/common.js';
import type { TenantModel } from '../catalogue/tenant-model.js';
import { logOddsWithoutItem } from '../prediction/model.js';
import { askedOf } from '../tracing/course.js';
import { hasSteadyMastery, isAccurate, type LearnerState } from '../tracing/states.js';
import { expectedModel } from './learner-constants.js';
import type { SkillView } from './skill-view.js';

/** A question with unknown item and difficulty. The next call overwrites `row`. */
export function averageQuestion(view: SkillView, learner: LearnerState, model: TenantModel, now: number) {
  const question = { occurredAt: now, questionDifficulty: null };
  const asked = askedOf(view.skillId, null);
  const row = featuresOf(view.model, 0, { asked, learner, skill: view.state, item: null }, question);
  return { terms: termsOf(model, view.model, null), row };
}

/** Share correct on average questions, with an 80 % range. @param now Unix milliseconds */
export function expectedAccuracy(view: SkillView, learner: LearnerState, model: TenantModel, now: number) {
  const { terms, row } = averageQuestion(view, learner, model, now);
  return expectedRange(logOddsWithoutItem(model.prediction, terms, row, 0), view.state.attempts);
}

/** @param logOdds on an average question */
export function expectedRange(logOdds: number, attempts: number) {
  const { z, variance, perAnswer, priorAnswers } = expectedModel;
  const reach = z * Math.sqrt(variance + perAnswer / (attempts + priorAnswers));
  return { expected: sigmoid(logOdds), low: sigmoid(logOdds - reach), high: sigmoid(logOdds + reach) };
}

export interface SkillContext {
  readonly learner: LearnerState;
  readonly model: TenantModel;
  readonly now: number;
}

export const isMastered = (view: SkillView, { learner, model, now }: SkillContext): boolean =>
  hasSteadyMastery(view.state, view.mastery) &&
  isAccurate(expectedAccuracy(view, learner, model, now).expected, view.model.parameters);
