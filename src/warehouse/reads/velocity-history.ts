/** A learner's daily sums, read back out of ClickHouse. */
import type { ClickHouseClient } from '@clickhouse/client';
import type { SkillDay } from '../../domain/learner/velocity.js';
import { selectManyRows } from '../clickhouse/client.js';
import type { ReadGuard } from '../clickhouse/read-guard.js';

/**
 * All days before the window are one row a skill, so that what is sent and kept does not grow with the history; the
 * table's key finds the learner's rows, one a day, at once. Answers of a clock that is ahead count today.
 */
const query = (ofSkill: string): string => `
SELECT
  skill_id AS skillId,
  toInt32(least(greatest(r.day, toDate({from:Int32} - 1)), toDate({today:Int32}))) AS day,
  toUInt32(sum(r.attempts)) AS attempts, toUInt32(sum(r.correct)) AS correct,
  toUInt32(uniqExactIf(r.day, r.correct > 0)) AS correctDays,
  max(r.last_answer).3 AS mastery,
  toFloat64(toUnixTimestamp64Milli(max(r.last_answer).1)) AS lastAttemptAt
FROM daily_learner_skill AS r
WHERE tenant = {tenant:String} AND user_id = {userId:String}${ofSkill}
GROUP BY skillId, day`;

/** Which daily sums of a learner are asked for. */
interface DaysQuery {
  readonly tenant: string;
  readonly userId: string;
  /** Null: all skills. */
  readonly skillId: string | null;
  /** UTC days since 1970: where the window starts, and today. */
  readonly from: number;
  readonly today: number;
}

/** A year of 270 skills on each day. */
const maxRows = 100_000;

const ofLearner = query('');
const ofSkill = query(' AND skill_id = {skillId:String}');

export type VelocityHistory = ReturnType<typeof createVelocityHistory>;

export const createVelocityHistory = (client: ClickHouseClient, guard: ReadGuard) => ({
  /**
   * One row for each skill and day of the window, and one for each skill, of the day before `from`, for all that was
   * earlier; in no order. Null where too many of the tenant are read already.
   *
   * @throws what ClickHouse reports, and where it does not answer in a few seconds
   */
  days: ({ skillId, ...wanted }: DaysQuery): Promise<SkillDay[] | null> =>
    guard(wanted.tenant, (signal) =>
      skillId === null
        ? selectManyRows<SkillDay>(client, ofLearner, signal, wanted, maxRows)
        : selectManyRows<SkillDay>(client, ofSkill, signal, { ...wanted, skillId }, maxRows),
    ),
});
