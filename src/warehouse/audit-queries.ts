/** The statements of the audit; days are bound as {first_day} and {last_day}, times of arrival as {from} and {to}. */
import type { SumBounds } from '../services/audit/ports.js';

/** Rows that are told of the doubled ones; the rest is found once these are mended. */
const maxDoubled = 1000;

const id = '(outbox_ms, outbox_seq)';
/** The id of a row's partition among the parameters. */
const boundOf = (name: string): string =>
  `({${name}_ms:Array(UInt64)}[partition_id + 1], {${name}_seq:Array(UInt32)}[partition_id + 1])`;
const arrived = 'received_at >= {from:DateTime} AND received_at < {to:DateTime}';
export interface StoredRow {
  partition: number;
  tenant: string;
  day: number;
  answers: number;
}

/** Rows of versions that did not count what they accepted have no version of their learner. */
export const storedQuery = `
SELECT partition_id AS partition, tenant, toUInt32(toDate(received_at)) AS day, toUInt32(count()) AS answers
FROM attempts WHERE ${arrived} AND learner_version > 0 AND ${id} < ${boundOf('below')}
GROUP BY partition, tenant, day`;

export const doubledIdsQuery = `
SELECT partition_id AS partition, tenant, day, toUInt32(sum(n - 1)) AS surplus FROM (
  SELECT partition_id, outbox_ms, outbox_seq, any(tenant) AS tenant, toUInt32(toDate(any(received_at))) AS day, count() AS n
  FROM attempts WHERE ${arrived} GROUP BY partition_id, outbox_ms, outbox_seq HAVING n > 1
) GROUP BY partition, tenant, day ORDER BY day, tenant, partition LIMIT ${maxDoubled}`;

export const doubledNumbersQuery = `
SELECT partition, tenant, day, toUInt32(sum(n - 1)) AS surplus FROM (
  SELECT tenant, user_id, learner_seq, any(partition_id) AS partition, toUInt32(toDate(any(received_at))) AS day,
    uniqExact(outbox_ms, outbox_seq) AS n
  FROM attempts WHERE ${arrived} GROUP BY tenant, user_id, learner_seq HAVING count() > 1 AND n > 1
) GROUP BY partition, tenant, day ORDER BY day, tenant, partition LIMIT ${maxDoubled}`;

export interface RawRow {
  tenant: string;
  day: number;
  first_attempts: number;
  first_correct: number;
  second_attempts: number;
  second_correct: number;
}

const isFirst = `${id} < ${boundOf('first')}`;
const isSecond = `(${id} < ${boundOf('second')} OR ${id} > ${boundOf('last')})`;
const ofDays = (day: string): string => `toUInt32(${day}) BETWEEN {first_day:UInt32} AND {last_day:UInt32}`;

export const rawQuery = `
SELECT tenant, toUInt32(toDate(occurred_at)) AS day,
  toUInt32(countIf(${isFirst})) AS first_attempts, toUInt32(countIf(is_correct AND ${isFirst})) AS first_correct,
  toUInt32(countIf(${isSecond})) AS second_attempts, toUInt32(countIf(is_correct AND ${isSecond})) AS second_correct
FROM attempts WHERE ${arrived} AND ${ofDays('toDate(occurred_at)')}
GROUP BY tenant, day`;

export interface RollupRow extends SumBounds {
  tenant: string;
  day: number;
}

export const rollupQuery = (rollup: string): string => `
SELECT tenant, toUInt32(r.day) AS day, toUInt32(sum(r.attempts)) AS attempts, toUInt32(sum(r.correct)) AS correct
FROM ${rollup} AS r WHERE ${ofDays('r.day')} GROUP BY tenant, day`;
