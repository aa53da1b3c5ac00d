import type { Forecast, ForecastRequest } from '../domain/forecast.js';
import { standardDays } from '../domain/forecast.js';
import type { Scores } from '../domain/score.js';

/** The prediction result as callers read it; fields for another horizon are named after its days. */
export function predictionResult(forecast: Forecast, { days, level }: ForecastRequest): object {
  const { current, in30Days, requested, goal } = forecast;
  return {
    current_math: current.math,
    current_rw: current.rw,
    current_total: current.total,
    ...predicted(in30Days, standardDays),
    ...(days === standardDays ? {} : predicted(requested.scores, days)),
    confidence_intervals: requested.intervals,
    goal_tracking: {
      target_score: goal.targetScore,
      days_to_goal: goal.daysToGoal,
      progress_percent: goal.progressPercent,
      on_track: goal.onTrack,
      goal_probability: goal.probability,
    },
    recommendations: [],
    forecast_days: days,
    confidence_level: level,
    data_points: forecast.dataPoints,
    reliability: forecast.reliability,
  };
}

const predicted = (scores: Scores, days: number): object => ({
  [`predicted_math_in_${days}_days`]: scores.math,
  [`predicted_rw_in_${days}_days`]: scores.rw,
  [`predicted_total_in_${days}_days`]: scores.total,
});
