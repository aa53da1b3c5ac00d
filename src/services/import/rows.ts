/** What a row of an imported file must be: the bounds of the API, with a file's looser spelling. */

import { occurredAtProblem, parseTime } from '../../contracts/events.js';
import { learningIdProblem } from '../../contracts/ids.js';
import type { TrackEvent } from '../../contracts/tasks.js';
import { keepRecent } from '../../store/redis/recent.js';

export const requiredColumns = ['user_id', 'skill_id', 'correct'] as const;
/** Columns that mean something to an import; all others are ignored. */
export const importColumns = [...requiredColumns, 'item_id', 'order', 'ts', 'response_time_s'] as const;

/** Columns of files of answers, whoever reads them. */
export type FileColumn = (typeof importColumns)[number] | 'fold' | 'question_difficulty';

/** A row as it was read: texts from CSV, JSON values from NDJSON. Undefined, null and '' are absence. */
export type RawFields = Readonly<Partial<Record<FileColumn, unknown>>>;

/** One row, or why it cannot be one. Lines count from 1 and grow from row to row. */
export interface RawRow {
  readonly line: number;
  readonly fields: RawFields | string;
}

export interface RowRules {
  readonly tenant: string;
  /** Added to a numeric `ts`, Unix milliseconds; 0 takes it for Unix seconds. */
  readonly startMs: number;
  /** Time of a row without `ts`, and the present against which times are checked: the same in a resumed run. */
  readonly importedAt: number;
}

const maxResponseSeconds = 86_400;
const decimal = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?$/i;

/** The reason why a row is rejected; `readRow` catches it. */
export class RowProblem extends Error {}

/** @returns what `read` makes of the fields, or what is wrong with them: the message of its RowProblem */
export function readRow<Value>({ fields }: RawRow, read: (fields: RawFields) => Value): Value | string {
  if (typeof fields === 'string') return fields;
  try {
    return read(fields);
  } catch (error) {
    if (error instanceof RowProblem) return error.message;
    throw error;
  }
}

/** The row as an event, with its `order`. @param receivedAt Unix milliseconds @throws RowProblem */
export function answerOf(fields: RawFields, line: number, rules: RowRules, receivedAt: number) {
  const userId = idOf('user_id', fields.user_id);
  const skillId = idOf('skill_id', fields.skill_id);
  if (userId === null) throw new RowProblem('user_id is missing');
  if (skillId === null) throw new RowProblem('skill_id is missing');
  const event: TrackEvent = {
    tenant: rules.tenant,
    userId,
    skillId,
    isCorrect: correctOf(fields.correct),
    timeSpentSeconds: numberIn('response_time_s', fields.response_time_s, [0, maxResponseSeconds]),
    confidenceScore: null,
    questionDifficulty: null,
    itemId: idOf('item_id', fields.item_id),
    eventId: null,
    occurredAt: timeOf(fields.ts, rules),
    occurredAtText: null,
    receivedAt,
    importLine: line,
  };
  return { event, order: numberIn('order', fields.order) };
}

export const isAbsent = (value: unknown): boolean => value === undefined || value === null || value === '';

/** A number in NDJSON is the id of its decimal digits. U+FFFD is what invalid UTF-8 is decoded to. */
function idOf(name: string, value: unknown): string | null {
  if (isAbsent(value)) return null;
  const text = typeof value === 'number' && Number.isSafeInteger(value) ? `${value}` : value;
  if (typeof text !== 'string') throw new RowProblem(`${name} ${shown(value)} must be a text`);
  if (text.includes('\uFFFD')) throw new RowProblem(`${name} is not valid UTF-8`);
  const problem = learningIdProblem(text);
  if (problem !== null) throw new RowProblem(`${name} ${shown(value)} ${problem}`);
  return text;
}

function correctOf(value: unknown): boolean {
  if (isAbsent(value)) throw new RowProblem('correct is missing');
  const text = String(value).trim().toLowerCase();
  const number = numberOf(text);
  if (number === 1 || text === 'true') return true;
  if (number === 0 || text === 'false') return false;
  throw new RowProblem(`correct ${shown(value)} must be 1, 0, true or false`);
}

/** Null where the value is absent. @param bounds both included @throws RowProblem */
export function numberIn(
  name: FileColumn,
  value: unknown,
  bounds?: readonly [low: number, high: number],
): number | null {
  if (isAbsent(value)) return null;
  const [low, high] = bounds ?? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  const number = numberOf(value);
  // -0 is a zero too, but the warehouse would be sent a sign.
  if (number !== null && number >= low && number <= high) return number + 0;
  const range = bounds ? ` from ${low} to ${high}` : '';
  throw new RowProblem(`${name} ${shown(value)} must be a number${range}`);
}

function timeOf(value: unknown, rules: RowRules): number {
  if (isAbsent(value)) return rules.importedAt;
  const seconds = numberOf(value);
  const ms = seconds === null ? parseTime(String(value).trim()) : rules.startMs + Math.round(seconds * 1000);
  if (ms === null) throw new RowProblem(`ts ${shown(value)} must be an RFC 3339 time or seconds`);
  const problem = occurredAtProblem(ms, rules.importedAt);
  if (problem !== null) throw new RowProblem(`ts ${shown(value)} ${problem}`);
  return ms;
}

/** Null for what is no finite number. */
export function numberOf(value: unknown): number | null {
  const text = typeof value === 'number' ? `${value}` : typeof value === 'string' ? value.trim() : '';
  const number = decimal.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(number) ? number : null;
}

const shownCharacters = 60;

/** The value as JSON, which escapes what a terminal would obey, cut to a bearable length. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= shownCharacters ? text : `${text.slice(0, shownCharacters)}...`;
}

/** Reports rows whose order is lower than that of their learner's row before. Remembers the `learners` seen last only. */
export function createBackwardsCounter(learners = 50_000) {
  const last = new Map<string, number>();
  return (userId: string, order: number | null): boolean => {
    if (order === null) return false;
    const before = last.get(userId);
    keepRecent(last, userId, order, learners);
    return before !== undefined && order < before;
  };
}
