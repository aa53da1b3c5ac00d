import type { ClickHouseClient } from '@clickhouse/client';
import type { Limiter } from '../../concurrency.js';
import { type AttemptRow, decodeAttemptRow, type SkillFigures } from '../../contracts/answers/attempt-row.js';
import type { LearnerId } from '../../contracts/learners/learner-name.js';
import type { SkillConditions } from '../../domain/answer/answer-conditions.js';
import { mapNonEmpty } from '../../domain/base/common.js';
import type { CountedAnswer } from '../../domain/learner/explanation.js';
import type { SkillDay } from '../../domain/learner/velocity.js';
import { createReadDeadline, selectManyRows, selectNumber, selectText } from '../clickhouse/client.js';
import { askedSkillCondition } from '../schema/attempt-tables.js';
import { archivedCondition, archiveSource, retainedCondition, unpackAnswer } from '../schema/rollups.js';
import { encodedColumns, splitLines } from './stored-rows.js';

/** Null if too many reads of the tenant are running. @throws errors of the read */
export type ReadGuard = <Result>(
  tenant: string,
  read: (signal: AbortSignal) => Promise<Result>,
) => Promise<Result | null>;

export const createReadGuard =
  (limit: Limiter): ReadGuard =>
  <Result>(tenant: string, read: (signal: AbortSignal) => Promise<Result>) =>
    limit<Result | null>(
      tenant,
      () => read(createReadDeadline()),
      () => null,
    );

export interface StoredAttempt extends CountedAnswer {
  readonly occurredAt: number;
  /** Counts answers on all skills. */
  readonly learnerSeq: number;
  readonly questionDifficulty: number | null;
  readonly pCorrect: number;
  readonly parametersVersion: number;
  readonly otherSkills: readonly string[];
  /** Earlier answers that are not stored. */
  readonly missingBefore: number;
}

export interface AttemptQuery extends LearnerId {
  readonly skillId: string;
  /** `learner_seq` of the last answer that counts. */
  readonly upTo: number;
  readonly atMost: number;
}

/**
 * `learner_seq` has no gaps: its difference from the row number is the number of missing rows. If rows share
 * a number, the last counts; the others belong to an erased history.
 */
const selectAttempts = `
SELECT a.missing_before, count() OVER (), ${encodedColumns}
FROM (
  SELECT *, toUInt32(learner_seq - row_number() OVER (ORDER BY learner_seq)) AS missing_before
  FROM (
    SELECT * FROM attempts
    WHERE ${retainedCondition} AND tenant = {tenant:String} AND user_id = {userId:String} AND learner_seq <= {upTo:UInt32}
    ORDER BY learner_seq, outbox_ms DESC, outbox_seq DESC LIMIT 1 BY learner_seq
  )
) AS a
WHERE ${askedSkillCondition}
ORDER BY learner_seq DESC
LIMIT {atMost:UInt32}`;

const countArchived = `
SELECT toUInt32(sum(a.attempts)) AS answers FROM ${archiveSource}
WHERE ${archivedCondition} AND a.tenant = {tenant:String} AND a.user_id = {userId:String} AND a.skill_id = {skillId:String}`;

function decodeAttempt(line: string, skillId: string) {
  const [missing = '', stored = ''] = line.split('\t', 2);
  const row = decodeAttemptRow(line.slice(missing.length + stored.length + 2));
  return { attempt: toAttempt(row, skillId, Number(missing)), stored: Number(stored) };
}

function toAttempt(
  { event, figures, conditions }: AttemptRow,
  skillId: string,
  missingBefore: number,
): StoredAttempt {
  const asked = event.skillIds.indexOf(skillId);
  const skills = mapNonEmpty(conditions.skills, ({ parameters }, i) => ({
    parameters,
    mastery: figures.skills[i]?.masteryBefore as number,
  }));
  const { masteryBefore, masteryAfter } = figures.skills[asked] as SkillFigures;
  const { parameters, version } = conditions.skills[asked] as SkillConditions;
  return {
    ...{ isCorrect: event.isCorrect, occurredAt: event.occurredAt, learnerSeq: figures.learnerSeq },
    ...{ questionDifficulty: event.questionDifficulty, difficultyShift: conditions.difficultyShift },
    ...{ masteryBefore, masteryAfter, parameters, parametersVersion: version, pCorrect: conditions.pCorrect },
    ...{ others: skills.toSpliced(asked, 1), otherSkills: event.skillIds.toSpliced(asked, 1), missingBefore },
  };
}

interface DaysQuery extends LearnerId {
  /** Null: all skills. */
  readonly skillId: string | null;
  /** Local days since 1970. */
  readonly from: number;
  readonly today: number;
}

const lastAnswer = unpackAnswer('max(r.last_answer)');

/** Enough for 270 skills on each day of a year. */
const maxRows = 100_000;

/** Answers that a fast clock dates in the future count today. */
const buildDaysQuery = (skillId: string | null): string => {
  const countOnce = (column: string): string =>
    `toUInt32(sum(r.${column}${skillId === null ? ` - r.further_${column}` : ''}))`;
  return `
SELECT
  skill_id AS skillId,
  toInt32(least(greatest(r.day, toDate({from:Int32} - 1)), toDate({today:Int32}))) AS day,
  toUInt32(sum(r.attempts)) AS attempts, ${countOnce('attempts')} AS answers, ${countOnce('correct')} AS correct,
  toUInt32(uniqExactIf(r.day, r.correct > 0)) AS correctDays,
  ${lastAnswer.mastery} AS mastery,
  1000 * toFloat64(toUnixTimestamp(${lastAnswer.at})) AS lastAttemptAt
FROM learner_sums AS r
WHERE tenant = {tenant:String} AND kind = 'day' AND user_id = {userId:String}${skillId === null ? '' : ' AND skill_id = {skillId:String}'}
GROUP BY skillId, day
LIMIT ${maxRows + 1}`;
};

export type SkillHistory = ReturnType<typeof createSkillHistory>;

export const createSkillHistory = (client: ClickHouseClient, guard: ReadGuard) => ({
  /** The newest answers, oldest first. `stored` and `archived` count all answers on the skill. */
  fetchAttempts: (params: AttemptQuery) =>
    guard(params.tenant, async (signal) => {
      // In sequence: the limit counts connections.
      const lines = splitLines(await selectText(client, selectAttempts, { params, signal }));
      const rows = lines.map((line) => decodeAttempt(line, params.skillId));
      const archived = await selectNumber(client, countArchived, { params, signal });
      return {
        attempts: rows.reverse().map(({ attempt }) => attempt),
        stored: rows[0]?.stored ?? 0,
        archived,
      };
    }),

  /** One row per skill combines the days before `from`, to limit the result. */
  fetchDays: ({ skillId, ...learner }: DaysQuery): Promise<SkillDay[] | null> =>
    guard(learner.tenant, async (signal) => {
      const params = skillId === null ? learner : { ...learner, skillId };
      const rows = await selectManyRows<SkillDay>(client, buildDaysQuery(skillId), { params, signal });
      if (rows.length > maxRows)
        throw new Error(`the learner has more than ${maxRows} rows of skills and days`);
      return rows;
    }),
});
