/** An encoded attempt row, read by the names of its columns: what is told of a stored answer, wherever it is stored. */
import { encodeText, rowColumns } from './attempt-row.js';

export type RowColumn = (typeof rowColumns)[number];

/** Times are Unix milliseconds; null is what was not reported, or what a row of an earlier version does not have. */
export type AttemptFields = Readonly<Record<RowColumn, string | number | null>>;

const texts: ReadonlySet<RowColumn> = new Set([
  'tenant',
  'user_id',
  'skill_id',
  'item_id',
  'event_id',
  'parameters_source',
  'recommendation_code',
  'section',
]);
const times: ReadonlySet<RowColumn> = new Set(['occurred_at', 'received_at']);

/** @param row as `encodeAttemptRow` made it, or as ClickHouse gives the same columns with times as Unix seconds */
export function readAttemptRow(row: string): AttemptFields {
  const values = row.split('\t');
  const fields = rowColumns.map((column, i) => [column, fieldOf(column, values[i])]);
  return Object.fromEntries(fields) as AttemptFields;
}

function fieldOf(column: RowColumn, value: string | undefined): string | number | null {
  if (value === undefined || value === '\\N') return null;
  if (texts.has(column)) return value === '' ? null : value.replace(escaped, '$1');
  return times.has(column) ? Math.round(Number(value) * 1000) : Number(value);
}

/** Ids hold no control characters, so what follows a backslash stands for itself; ClickHouse writes quotes that way too. */
const escaped = /\\(.)/g;

/** What every row of a learner begins with, and no other row does. */
export const rowPrefix = (tenant: string, userId: string): string => `${tenant}\t${encodeText(userId)}\t`;
