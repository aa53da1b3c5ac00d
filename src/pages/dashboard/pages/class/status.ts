import type { ClassMastery, Prediction } from '../../../../client/types.js';
import { isDatePast } from '../../../../domain/score/goal.js';

/** UTC days without an answer; minimum number of answers to judge a forecast. */
export const statusRule = { idleDays: 14, fewAnswers: 20 } as const;

export type Status = 'risk' | 'track' | 'idle' | 'few';

/** Most urgent first. */
export const statusTexts: Readonly<Record<Status, string>> = {
  risk: 'At risk',
  idle: 'Idle',
  few: 'Too few answers',
  track: 'On track',
};

export interface StatusInput {
  readonly answers: number;
  /** RFC 3339; null without an answer. */
  readonly lastAnswerAt: string | null;
  readonly isOnTrack: boolean;
  readonly currentTotal: number;
  readonly targetScore: number;
  /** UTC day; null without a date. */
  readonly targetDate: string | null;
  /** Null if the forecast does not reach the target within a year. */
  readonly daysToGoal: number | null;
  /** Assumed by the forecast for both sections. */
  readonly answersPerDay: number;
  readonly plateaus: readonly string[];
}

type AnswerTotals = Pick<
  Extract<ClassMastery['results'][number], { readonly status: 200 }>['data'],
  'total_attempts' | 'last_attempt_at' | 'plateaus'
>;

export const buildStatusInput = (
  answerTotals: AnswerTotals,
  { goal_tracking: goal, assumed_practice: practice, current_total }: Prediction,
  getSkillName: (skillId: string) => string,
): StatusInput => ({
  answers: answerTotals.total_attempts,
  lastAnswerAt: answerTotals.last_attempt_at,
  isOnTrack: goal.on_track,
  currentTotal: current_total,
  targetScore: goal.target_score,
  targetDate: goal.target_date,
  daysToGoal: goal.days_to_goal,
  answersPerDay: practice.math.answers_per_day + practice.rw.answers_per_day,
  plateaus: answerTotals.plateaus.map(getSkillName),
});

const toDayNumber = (time: number): number => Math.floor(time / 86_400_000);

/** UTC days since the last answer. @param now Unix milliseconds */
const countIdleDays = ({ lastAnswerAt }: Pick<StatusInput, 'lastAnswerAt'>, now: number): number | null =>
  lastAnswerAt === null ? null : toDayNumber(now) - toDayNumber(Date.parse(lastAnswerAt));

/** Ignores the forecast of idle learners and beginners. @param now Unix milliseconds */
export function computeStatus(input: StatusInput, now: number): Status {
  const idleDays = countIdleDays(input, now);
  if (idleDays !== null && idleDays >= statusRule.idleDays) return 'idle';
  if (input.answers < statusRule.fewAnswers) return 'few';
  return input.isOnTrack ? 'track' : 'risk';
}

/** Null on track, unless the target date has passed. @param now Unix milliseconds */
export function explainStatus(input: StatusInput, now: number): string | null {
  const status = computeStatus(input, now);
  if (status === 'track')
    return isDatePast(input.targetDate, now) ? 'goal date passed, score meets the goal' : null;
  if (status === 'idle') return `no answer for ${countIdleDays(input, now)} days`;
  if (status === 'few') return `${input.answers} of ${statusRule.fewAnswers} answers`;
  return [describeGap(input, now), describePace(input), ...describePlateaus(input)].join('; ');
}

function describeGap(
  { currentTotal, targetScore, targetDate, daysToGoal }: StatusInput,
  now: number,
): string {
  const gap = targetScore - currentTotal;
  if (isDatePast(targetDate, now))
    return gap > 0 ? `goal date passed, ${gap} points below the goal` : 'goal date passed';
  if (gap <= 0) return 'score meets the goal now, but the forecast falls below it';
  if (daysToGoal !== null)
    return `forecast meets the goal in ${daysToGoal} days: too late or only temporarily`;
  return `${gap} points below the goal`;
}

const describePace = ({ answersPerDay }: StatusInput): string =>
  answersPerDay < 0.1 ? 'almost no practice' : `${answersPerDay.toFixed(1)} answers per day`;

function describePlateaus({ plateaus: [first, ...others] }: StatusInput): string[] {
  if (first === undefined) return [];
  return [`plateau on ${first}${others.length === 0 ? '' : ` and ${others.length} more`}`];
}
