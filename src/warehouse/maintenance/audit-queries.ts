/** The statements of the audit; days are bound as {first_day} and {last_day}, times of arrival as {from} and {to}. */
import type { DoubledNumber, SumBounds } from '../../services/audit/ports.js';
import { archivedDays, archivedThrough, isArchived, keptRows } from '../schema/archive.js';
import { countedRows } from '../schema/attempts.js';

/** Rows that are told of the doubled ones; the rest is found once these are mended. */
const maxDoubled = 1000;
/** Each is one answer; those of learners who were just erased are among them. */
const maxDoubledNumbers = 20_000;

const id = '(outbox_ms, outbox_seq)';
/** The id of a row's partition among the parameters. */
const boundOf = (name: string): string =>
  `({${name}_ms:Array(UInt64)}[partition_id + 1], {${name}_seq:Array(UInt64)}[partition_id + 1])`;
/**
 * Both sides of one type: a part whose times all lie in the last millisecond before a bound of whole seconds is skipped
 * by the engine as if it lay behind it (seen with 26.7).
 */
const arrived = "received_at >= {from:DateTime64(3, 'UTC')} AND received_at < {to:DateTime64(3, 'UTC')}";
export interface StoredRow {
  partition: number;
  tenant: string;
  day: number;
  below: number;
  among: number;
}

export const storedQuery = `
SELECT partition_id AS partition, tenant, toUInt32(toDate(received_at)) AS day,
  toUInt32(countIf(${id} < ${boundOf('frontier')})) AS below,
  toUInt32(countIf(${id} BETWEEN ${boundOf('frontier')} AND ${boundOf('last')})) AS among
FROM attempts WHERE ${arrived} AND ${countedRows} AND has({partitions:Array(UInt16)}, partition_id)
GROUP BY partition, tenant, day`;

export const doubledIdsQuery = `
SELECT partition_id AS partition, tenant, day, toUInt32(sum(n - 1)) AS surplus FROM (
  SELECT partition_id, outbox_ms, outbox_seq, any(tenant) AS tenant, toUInt32(toDate(any(received_at))) AS day, count() AS n
  FROM attempts WHERE ${arrived} GROUP BY partition_id, outbox_ms, outbox_seq HAVING n > 1
) GROUP BY partition, tenant, day ORDER BY day, tenant, partition LIMIT ${maxDoubled}`;

/** Learner by learner, for Redis knows which of them were erased. */
export const doubledNumbersQuery = `
SELECT tenant, user_id AS userId, any(partition_id) AS partition, toUInt32(toDate(any(received_at))) AS day,
  groupUniqArray((toFloat64(outbox_ms), toFloat64(outbox_seq))) AS ids
FROM attempts WHERE ${arrived} GROUP BY tenant, user_id, learner_seq HAVING count() > 1 AND length(ids) > 1
ORDER BY day, tenant, partition LIMIT ${maxDoubledNumbers}`;

export interface DoubledNumberRow extends Omit<DoubledNumber, 'ids'> {
  readonly ids: readonly (readonly [ms: number, seq: number])[];
}

export interface RawRow extends SumBounds {
  tenant: string;
  day: number;
  certain_attempts: number;
  certain_correct: number;
}

const ofDays = (day: string): string => `toUInt32(${day}) BETWEEN {first_day:UInt32} AND {last_day:UInt32}`;
const hasLeft = `${id} < ${boundOf('frontier')}`;

/** What is archived has left the outbox long ago. */
export const rawQuery = `
SELECT tenant, day, toUInt32(sum(certain_n)) AS certain_attempts, toUInt32(sum(certain_right)) AS certain_correct,
  toUInt32(sum(n)) AS attempts, toUInt32(sum(right)) AS correct
FROM (
  SELECT tenant, toUInt32(toDate(occurred_at)) AS day, countIf(${hasLeft}) AS certain_n,
    countIf(is_correct AND ${hasLeft}) AS certain_right, count() AS n, sum(is_correct) AS right
  FROM attempts WHERE ${arrived} AND ${keptRows} AND ${ofDays('toDate(occurred_at)')} GROUP BY tenant, day
  UNION ALL
  SELECT a.tenant AS tenant, toUInt32(a.day) AS day, sum(a.attempts) AS certain_n, sum(a.correct) AS certain_right,
    certain_n AS n, certain_right AS right
  FROM ${archivedDays} WHERE ${isArchived} AND ${ofDays('a.day')} GROUP BY tenant, day
) GROUP BY tenant, day`;

export interface RollupRow extends SumBounds {
  tenant: string;
  day: number;
}

export const rollupQuery = (rollup: string): string => `
SELECT tenant, toUInt32(r.day) AS day, toUInt32(sum(r.attempts)) AS attempts, toUInt32(sum(r.correct)) AS correct
FROM ${rollup} AS r WHERE ${ofDays('r.day')} GROUP BY tenant, day`;

export const archivedQuery = `SELECT toUInt32(${archivedThrough}) AS month`;
