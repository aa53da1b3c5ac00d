import type { StudyAdvice } from '../domain/advice/study-advice.js';
import { round1, round4, round6 } from '../domain/base/common.js';
import type { GoalOutlook } from '../domain/score/goal.js';
import {
  type ForecastRequest,
  type LearnerForecast,
  type PracticePlan,
  standardDays,
  type WhatIf,
} from '../domain/score/learner-forecast.js';
import type { Interval, ScoreForecast, Scores } from '../domain/score/score.js';
import type { Practice } from '../domain/tracing/daily.js';

/** What the forecast was asked for. */
type Asked = Pick<ForecastRequest, 'days' | 'level'>;

/**
 * JSON of the prediction result as callers read it; fields for another horizon are named after its days. It is written
 * out, for making an object of it first takes several times as long.
 *
 * @param reason why there is no advice; null where there is some
 */
export function predictionJson(
  forecast: LearnerForecast,
  advice: readonly StudyAdvice[],
  reason: string | null,
  { days, level }: Asked,
): string {
  const { current, in30Days, requested, goal, accuracy, measures, practice, reliability } = forecast;
  const other = days === standardDays ? '' : `,${predictedFields(requested.scores, days)}`;
  return (
    `{"current_math":${current.math},"current_rw":${current.rw},"current_total":${current.total},` +
    `${predictedFields(in30Days, standardDays)}${other},` +
    `"confidence_intervals":${intervalsJson(requested.intervals)},"goal_tracking":${JSON.stringify(goalTracking(goal))},` +
    `"expected_accuracy":${accuracyJson(accuracy)},` +
    `"recommendations":${JSON.stringify(advice.map(({ text }) => text))},` +
    `"recommendation_codes":[${advice.map(codeJson).join(',')}],` +
    `"recommendations_reason":${JSON.stringify(reason)},` +
    `"forecast_days":${days},"confidence_level":${level},` +
    `"data_points":{"math":${measures.math.answers},"rw":${measures.rw.answers}},` +
    `"assumed_practice":{"math":${practiceJson(practice.math)},"rw":${practiceJson(practice.rw)}},` +
    `"reliability":{"math":${round4(reliability.math)},"rw":${round4(reliability.rw)}}}`
  );
}

const predictedFields = ({ math, rw, total }: Scores, days: number): string =>
  `"predicted_math_in_${days}_days":${math},"predicted_rw_in_${days}_days":${rw},` +
  `"predicted_total_in_${days}_days":${total}`;

const intervalsJson = ({ math, rw, total }: ScoreForecast['intervals']): string =>
  `{"math":${intervalJson(math)},"rw":${intervalJson(rw)},"total":${intervalJson(total)}}`;

const intervalJson = ({ low, high }: Interval): string => `{"low":${low},"high":${high}}`;

const accuracyJson = ({ expected, interval, answers }: LearnerForecast['accuracy']): string =>
  `{"share":${round4(expected)},"low":${round4(interval.low)},"high":${round4(interval.high)},"answers":${answers}}`;

const practiceJson = ({ rate, activeDays }: Practice): string =>
  `{"answers_per_day":${round6(rate)},"active_days_14":${round1(activeDays)}}`;

const codeJson = ({ code, skillId }: StudyAdvice): string =>
  `{"code":"${code}","skill_id":${JSON.stringify(skillId)}}`;

/** The forecast under a plan. */
export const whatIfResult = (
  userId: string,
  { current, planned, unplanned, goal, neededAnswersPerDay, neededInDays }: WhatIf,
  { answersPerDay, skills }: PracticePlan,
  { days, level }: Asked,
): object => ({
  user_id: userId,
  plan: {
    answers_per_day: answersPerDay,
    skills: skills === null ? null : skills.map(({ skillId }) => skillId),
    days,
  },
  current_math: current.math,
  current_rw: current.rw,
  current_total: current.total,
  ...predicted(planned.scores, days),
  confidence_intervals: planned.intervals,
  confidence_level: level,
  goal_tracking: goalTracking(goal),
  without_plan: predicted(unplanned, days),
  needed_answers_per_day: neededAnswersPerDay,
  needed_within_days: neededInDays,
});

const predicted = (scores: Scores, days: number): object => ({
  [`predicted_math_in_${days}_days`]: scores.math,
  [`predicted_rw_in_${days}_days`]: scores.rw,
  [`predicted_total_in_${days}_days`]: scores.total,
});

const goalTracking = (goal: GoalOutlook): object => ({
  target_score: goal.targetScore,
  target_date: goal.targetDate,
  days_to_goal: goal.daysToGoal,
  progress_percent: goal.progressPercent,
  on_track: goal.onTrack,
  goal_probability: round4(goal.probability),
});
