/** Writes JSON as text: building objects first takes several times as long. */
import type { adviseOnRange } from '../../domain/advice/range-advice.js';
import type { StudyAdvice } from '../../domain/advice/study-advice.js';
import { round1, round4, round6 } from '../../domain/base/common.js';
import {
  defaultForecastDays,
  type ForecastRequest,
  type GoalOutlook,
  type LearnerForecast,
  type PlanForecast,
  type PracticePlan,
} from '../../domain/score/learner-forecast.js';
import type { Scores } from '../../domain/score/scores.js';
import type { Practice } from '../../domain/tracing/activity.js';

type ForecastSettings = Pick<ForecastRequest, 'days' | 'level'>;

export function encodePrediction(
  forecast: LearnerForecast,
  advice: readonly StudyAdvice[],
  adviceUnavailableReason: string | null,
  rangeAdvice: ReturnType<typeof adviseOnRange>,
  { days, level }: ForecastSettings,
): string {
  const { current, in30Days, requested, goal, accuracy, measures, practice, reliability } = forecast;
  const requestedFields = days === defaultForecastDays ? '' : `,${encodePredicted(requested.scores, days)}`;
  return (
    `{${encodeCurrent(current)},${encodePredicted(in30Days, defaultForecastDays)}${requestedFields},` +
    `"confidence_intervals":${JSON.stringify(requested.intervals)},"goal_tracking":${encodeGoal(goal)},` +
    `"range_advice":${JSON.stringify(rangeAdvice)},` +
    `"expected_accuracy":${encodeAccuracy(accuracy)},` +
    `"recommendations":${JSON.stringify(advice.map(({ text }) => text))},` +
    `"recommendation_codes":[${advice.map(encodeCode).join()}],` +
    `"recommendations_reason":${JSON.stringify(adviceUnavailableReason)},` +
    `"forecast_days":${days},"confidence_level":${level},` +
    `"data_points":{"math":${round1(measures.math.answers)},"rw":${round1(measures.rw.answers)}},` +
    `"assumed_practice":{"math":${encodePractice(practice.math)},"rw":${encodePractice(practice.rw)}},` +
    `"reliability":{"math":${round4(reliability.math)},"rw":${round4(reliability.rw)}}}`
  );
}

const encodeCurrent = ({ math, rw, total }: Scores): string =>
  `"current_math":${math},"current_rw":${rw},"current_total":${total}`;

const encodePredicted = ({ math, rw, total }: Scores, days: number): string =>
  `"predicted_math_in_${days}_days":${math},"predicted_rw_in_${days}_days":${rw},` +
  `"predicted_total_in_${days}_days":${total}`;

const encodeAccuracy = ({ expected, interval, answers }: LearnerForecast['accuracy']): string =>
  `{"share":${round4(expected)},"low":${round4(interval.low)},"high":${round4(interval.high)},"answers":${answers}}`;

const encodePractice = ({ rate, activeDays }: Practice): string =>
  `{"answers_per_day":${round6(rate)},"active_days_14":${round1(activeDays)}}`;

const encodeCode = ({ code, skillId }: StudyAdvice): string =>
  `{"code":"${code}","skill_id":${JSON.stringify(skillId)}}`;

const encodeGoal = (goal: GoalOutlook): string =>
  JSON.stringify({
    target_score: goal.targetScore,
    target_date: goal.targetDate,
    is_set: goal.isSet,
    days_to_goal: goal.daysToGoal,
    progress_percent: goal.progressPercent,
    on_track: goal.onTrack,
    goal_probability: round4(goal.probability),
    status: goal.status,
  });

export function encodeWhatIf(
  userId: string,
  { current, planned, unplanned, goal, neededAnswersPerDay, neededInDays }: PlanForecast,
  { answersPerDay, skills }: PracticePlan,
  { days, level }: ForecastSettings,
): string {
  const skillIds = skills?.map(({ skillId }) => skillId) ?? null;
  return (
    `{"user_id":${JSON.stringify(userId)},` +
    `"plan":${JSON.stringify({ answers_per_day: answersPerDay, skills: skillIds, days })},` +
    `${encodeCurrent(current)},${encodePredicted(planned.scores, days)},` +
    `"confidence_intervals":${JSON.stringify(planned.intervals)},"confidence_level":${level},` +
    `"goal_tracking":${encodeGoal(goal)},"without_plan":{${encodePredicted(unplanned, days)}},` +
    `"needed_answers_per_day":${neededAnswersPerDay},"needed_within_days":${neededInDays}}`
  );
}
