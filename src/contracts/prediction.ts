import {
  type AccuracyOutlook,
  type ForecastRequest,
  type GoalOutlook,
  type LearnerForecast,
  standardDays,
} from '../domain/learner-forecast.js';
import { round4 } from '../domain/probability.js';
import type { Scores } from '../domain/score.js';
import type { StudyAdvice } from '../domain/study-advice.js';
import type { PracticePlan, WhatIf } from '../domain/what-if.js';

/** What the forecast was asked for. */
type Asked = Pick<ForecastRequest, 'days' | 'level'>;

/** The prediction result as callers read it; fields for another horizon are named after its days. */
export function predictionResult(
  forecast: LearnerForecast,
  advice: readonly StudyAdvice[],
  { days, level }: Asked,
): object {
  const { current, in30Days, requested, goal } = forecast;
  return {
    ...currentScores(current),
    ...predicted(in30Days, standardDays),
    ...(days === standardDays ? {} : predicted(requested.scores, days)),
    confidence_intervals: requested.intervals,
    goal_tracking: goalTracking(goal),
    expected_accuracy: expectedAccuracy(forecast.accuracy),
    recommendations: advice.map(({ text }) => text),
    recommendation_codes: advice.map(({ code, skillId }) => ({ code, skill_id: skillId })),
    forecast_days: days,
    confidence_level: level,
    data_points: forecast.dataPoints,
    reliability: { math: round4(forecast.reliability.math), rw: round4(forecast.reliability.rw) },
  };
}

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
  ...currentScores(current),
  ...predicted(planned.scores, days),
  confidence_intervals: planned.intervals,
  confidence_level: level,
  goal_tracking: goalTracking(goal),
  without_plan: predicted(unplanned, days),
  needed_answers_per_day: neededAnswersPerDay,
  needed_within_days: neededInDays,
});

const currentScores = ({ math, rw, total }: Scores): object => ({
  current_math: math,
  current_rw: rw,
  current_total: total,
});

const predicted = (scores: Scores, days: number): object => ({
  [`predicted_math_in_${days}_days`]: scores.math,
  [`predicted_rw_in_${days}_days`]: scores.rw,
  [`predicted_total_in_${days}_days`]: scores.total,
});

const expectedAccuracy = ({ expected, interval, answers }: AccuracyOutlook): object => ({
  share: round4(expected),
  low: round4(interval.low),
  high: round4(interval.high),
  answers,
});

const goalTracking = (goal: GoalOutlook): object => ({
  target_score: goal.targetScore,
  target_date: goal.targetDate,
  days_to_goal: goal.daysToGoal,
  progress_percent: goal.progressPercent,
  on_track: goal.onTrack,
  goal_probability: round4(goal.probability),
});
