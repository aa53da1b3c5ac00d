import type { ClassMastery, Prediction } from '../../../../client/types.js';
import { isDatePast } from '../../../../domain/score/goal.js';

/** UTC days without an answer; minimum number of answers to judge a forecast. */
export const rule = { idleDays: 14, fewAnswers: 20 } as const;

export type Status = 'risk' | 'track' | 'idle' | 'few';

/** Most urgent first. */
export const statuses: Readonly<Record<Status, string>> = {
  risk: 'At risk',
  idle: 'Idle',
  few: 'Too few answers',
  track: 'On track',
};

export interface Standing {
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

type Answered = Pick<
  Extract<ClassMastery['results'][number], { readonly status: 200 }>['data'],
  'total_attempts' | 'last_attempt_at' | 'plateaus'
>;

export const standingOf = (
  answered: Answered,
  { goal_tracking: goal, assumed_practice: practice, current_total }: Prediction,
  nameOf: (skillId: string) => string,
): Standing => ({
  answers: answered.total_attempts,
  lastAnswerAt: answered.last_attempt_at,
  isOnTrack: goal.on_track,
  currentTotal: current_total,
  targetScore: goal.target_score,
  targetDate: goal.target_date,
  daysToGoal: goal.days_to_goal,
  answersPerDay: practice.math.answers_per_day + practice.rw.answers_per_day,
  plateaus: answered.plateaus.map(nameOf),
});

const dayOf = (time: number): number => Math.floor(time / 86_400_000);

/** UTC days since the last answer. @param now Unix milliseconds */
const idleDaysOf = ({ lastAnswerAt }: Pick<Standing, 'lastAnswerAt'>, now: number): number | null =>
  lastAnswerAt === null ? null : dayOf(now) - dayOf(Date.parse(lastAnswerAt));

/** Ignores the forecast of idle learners and beginners. @param now Unix milliseconds */
export function statusOf(standing: Standing, now: number): Status {
  const idleDays = idleDaysOf(standing, now);
  if (idleDays !== null && idleDays >= rule.idleDays) return 'idle';
  if (standing.answers < rule.fewAnswers) return 'few';
  return standing.isOnTrack ? 'track' : 'risk';
}

/** Null on track, unless the target date has passed. @param now Unix milliseconds */
export function reasonOf(standing: Standing, now: number): string | null {
  const status = statusOf(standing, now);
  if (status === 'track') return isDatePast(standing.targetDate, now) ? 'date passed, at the goal' : null;
  if (status === 'idle') return `no answer for ${idleDaysOf(standing, now)} days`;
  if (status === 'few') return `${standing.answers} of ${rule.fewAnswers} answers`;
  return [gapText(standing, now), paceText(standing), ...plateauTexts(standing)].join('; ');
}

function gapText({ currentTotal, targetScore, targetDate, daysToGoal }: Standing, now: number): string {
  const gap = targetScore - currentTotal;
  if (isDatePast(targetDate, now)) return gap > 0 ? `date passed, ${gap} points short` : 'date passed';
  if (gap <= 0) return 'there now, forecast to fall below the goal';
  if (daysToGoal !== null) return `at the goal in ${daysToGoal} days: too late, or not for long`;
  return `${gap} points to go`;
}

const paceText = ({ answersPerDay }: Standing): string =>
  answersPerDay < 0.1 ? 'hardly any practice' : `${answersPerDay.toFixed(1)} answers a day`;

function plateauTexts({ plateaus: [first, ...others] }: Standing): string[] {
  if (first === undefined) return [];
  return [`stuck on ${first}${others.length === 0 ? '' : `, ${others.length} more`}`];
}
