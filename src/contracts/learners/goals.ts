import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { formatDay } from '../../domain/base/calendar.js';
import { formatDate } from '../../domain/base/common.js';
import type { GoalSetting } from '../../domain/score/goal.js';
import { optionalNullable, validate, validationError } from '../schema/validate.js';

const total = { minimum: 400, maximum: 1600, multipleOf: 10, description: 'Total score, in steps of 10.' };
export const TargetScore = Type.Integer(total);

export const GoalBody = Type.Object(
  {
    target_score: TargetScore,
    target_date: optionalNullable(Type.String({ description: 'Local day, YYYY-MM-DD, today or later.' })),
  },
  { examples: [{ target_score: 1300, target_date: null }] },
);
const goalBodyCheck = Compile(GoalBody);

/** @param today local day since 1970 @throws ApiError INVALID_REQUEST */
export function parseGoalBody(body: unknown, today: number): GoalSetting {
  const { target_score: targetScore, target_date } = validate(goalBodyCheck, body, 'goal');
  const targetDate = target_date ?? null;
  const message = targetDate === null ? null : findDateProblem(targetDate, formatDay(today));
  if (message === null) return { targetScore, targetDate };
  throw validationError('goal', { path: 'target_date', message });
}

function findDateProblem(text: string, today: string): string | null {
  if (!isValidDay(text)) return `must be a day, for example ${today}`;
  return text < today ? `must be today (${today}) or later` : null;
}

/** Rejects 30 February, which would be parsed as another day. */
function isValidDay(text: string): boolean {
  const ms = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  return !Number.isNaN(ms) && formatDate(ms) === text;
}
