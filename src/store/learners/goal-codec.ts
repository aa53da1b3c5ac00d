/** A goal as it stands in the learner's hash: JSON, which an older process refuses when its version is newer. */
import { createHash } from 'node:crypto';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import type { StoredGoal } from '../../domain/score/goal.js';

/** Field of the goal in the learner hash. */
export const goalField = 'G';

/** Without a target score: the goal was taken away. */
const Stored = Type.Object({
  v: Type.Literal(1),
  updatedAt: Type.Integer({ minimum: 0 }),
  targetScore: Type.Union([Type.Integer(), Type.Null()]),
  targetDate: Type.Union([Type.String(), Type.Null()]),
});
const storedCheck = Compile(Stored);

/** Null where there is none, or none any more. @throws Error for what this version of the service cannot read */
export function decodeGoal(value: string | undefined | null): StoredGoal | null {
  if (value === undefined || value === null) return null;
  const { targetScore, targetDate, updatedAt } = parse(value);
  return targetScore === null ? null : { targetScore, targetDate, updatedAt };
}

/** When the goal was last set or taken away, Unix milliseconds. */
export const changedAt = (value: string): number => parse(value).updatedAt;

function parse(value: string) {
  const stored: unknown = JSON.parse(value);
  if (storedCheck.Check(stored)) return stored;
  throw new Error('the stored goal is not known to this version');
}

/** A goal, or that it was taken away. */
interface GoalFields {
  readonly targetScore: number | null;
  readonly targetDate: string | null;
}

/** The whole stored value; the script makes the same. */
export const encodeGoal = ({
  updatedAt,
  targetScore,
  targetDate,
}: GoalFields & Pick<StoredGoal, 'updatedAt'>): string =>
  `{"v":1,"updatedAt":${updatedAt},${encodeAfterTime({ targetScore, targetDate })}`;

/** The stored value after `updatedAt`, which the script decides. */
export const encodeAfterTime = ({ targetScore, targetDate }: GoalFields): string =>
  JSON.stringify({ targetScore, targetDate }).slice(1);

export const noGoal = { targetScore: null, targetDate: null } as const;

/** Tag of a stored value; the script makes the same. */
export const tagOfGoal = (value: string): string => createHash('sha1').update(value).digest('hex');
