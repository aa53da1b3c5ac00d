import { findTimeProblem, maxQuestionSkills, parseTime } from '../../contracts/answers/events.js';
import type { TrackEvent } from '../../contracts/answers/track-task.js';
import { findIdProblem } from '../../contracts/schema/ids.js';
import type { NonEmpty } from '../../domain/base/common.js';
import { setRecentlyUsed } from '../../store/redis/commands/recently-used.js';

export const requiredColumns = ['user_id', 'correct'] as const;
/** A file needs one of them. */
export const skillColumns = ['skill_id', 'skill_ids'] as const;
export const importColumns = [
  ...requiredColumns,
  ...skillColumns,
  'item_id',
  'order',
  'ts',
  'response_time_s',
] as const;

export type FileColumn = (typeof importColumns)[number] | 'fold' | 'question_difficulty';

/** Strings from CSV, values from NDJSON. Undefined, null and '' mean absent. */
export type RawFields = Readonly<Partial<Record<FileColumn, unknown>>>;

/** `line`: from 1, increasing. `fields`: a row, or why it is unreadable. */
export interface RawRow {
  readonly line: number;
  readonly fields: RawFields | string;
}

export interface RowRules {
  readonly tenant: string;
  /** Unix milliseconds added to a numeric `ts`; with 0, `ts` is in Unix seconds. */
  readonly startMs: number;
  /** Time of rows without `ts`, and now for validation. Unchanged in a resumed run. */
  readonly importedAt: number;
}

const maxResponseSeconds = 86_400;
const decimalPattern = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?$/i;

export class RowProblem extends Error {}

export function parseRow<Value>({ fields }: RawRow, parse: (fields: RawFields) => Value): Value | string {
  if (typeof fields === 'string') return fields;
  try {
    return parse(fields);
  } catch (error) {
    if (error instanceof RowProblem) return error.message;
    throw error;
  }
}

/** @param receivedAt Unix milliseconds @throws RowProblem */
export function parseAnswer(fields: RawFields, line: number, rules: RowRules, receivedAt: number) {
  const userId = parseId('user_id', fields.user_id);
  if (userId === null) throw new RowProblem('user_id is missing');
  const event: TrackEvent = {
    tenant: rules.tenant,
    userId,
    skillIds: parseSkillIds(fields),
    listsSkills: false,
    isCorrect: parseCorrect(fields.correct),
    timeSpentSeconds: parseNumberField('response_time_s', fields.response_time_s, [0, maxResponseSeconds]),
    confidenceScore: null,
    questionDifficulty: null,
    itemId: parseId('item_id', fields.item_id),
    eventId: null,
    occurredAt: parseTimestamp(fields.ts, rules),
    occurredAtText: null,
    receivedAt,
    importLine: line,
  };
  return { event, order: parseNumberField('order', fields.order) };
}

/** As in DataShop's exports. */
export const skillSeparator = '~~';

function parseSkillIds({ skill_id: joined, skill_ids: list }: RawFields): NonEmpty<string> {
  if (!isAbsent(joined) && !isAbsent(list)) throw new RowProblem('skill_id and skill_ids exclude each other');
  const [name, value, ids] = isAbsent(list)
    ? (['skill_id', joined, splitSkills(joined)] as const)
    : (['skill_ids', list, parseList(list)] as const);
  const reject = (problem: string) => new RowProblem(`${name} ${formatValue(value)} ${problem}`);
  const [first, ...others] = ids.map((id) => parseId(name, id));
  if (first === undefined) throw new RowProblem(`${name} is missing`);
  const skillIds = [first, ...others] as const;
  if (!skillIds.every((id) => id !== null)) throw reject('has an empty id');
  if (ids.length > maxQuestionSkills) throw reject(`has more than ${maxQuestionSkills} skills`);
  if (new Set(skillIds).size < ids.length) throw reject('has a skill twice');
  return skillIds as NonEmpty<string>;
}

function splitSkills(joined: unknown): readonly unknown[] {
  if (isAbsent(joined)) return [];
  return typeof joined === 'string' ? joined.split(skillSeparator) : [joined];
}

/** In CSV, a list is a JSON text. */
function parseList(list: unknown): readonly unknown[] {
  const parsed = typeof list === 'string' ? parseJson(list) : list;
  if (Array.isArray(parsed)) return parsed;
  throw new RowProblem(`skill_ids ${formatValue(list)} must be a JSON list of ids`);
}

/** Null if invalid. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

export const isAbsent = (value: unknown): boolean => value === undefined || value === null || value === '';

/** NDJSON numbers become decimal digits. Invalid UTF-8 arrives as U+FFFD. */
function parseId(name: string, value: unknown): string | null {
  if (isAbsent(value)) return null;
  const text = typeof value === 'number' && Number.isSafeInteger(value) ? `${value}` : value;
  if (typeof text !== 'string') throw new RowProblem(`${name} ${formatValue(value)} must be a string`);
  if (text.includes('\uFFFD')) throw new RowProblem(`${name} is not valid UTF-8`);
  const problem = findIdProblem(text);
  if (problem !== null) throw new RowProblem(`${name} ${formatValue(value)} ${problem}`);
  return text;
}

function parseCorrect(value: unknown): boolean {
  if (isAbsent(value)) throw new RowProblem('correct is missing');
  const text = String(value).trim().toLowerCase();
  const number = parseNumber(text);
  if (number === 1 || text === 'true') return true;
  if (number === 0 || text === 'false') return false;
  throw new RowProblem(`correct ${formatValue(value)} must be 1, 0, true or false`);
}

/** Null if absent. @param bounds inclusive @throws RowProblem */
export function parseNumberField(
  name: FileColumn,
  value: unknown,
  bounds?: readonly [low: number, high: number],
): number | null {
  if (isAbsent(value)) return null;
  const [low, high] = bounds ?? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  const number = parseNumber(value);
  // Turns -0 into 0: ClickHouse would store the sign.
  if (number !== null && number >= low && number <= high) return number + 0;
  const range = bounds ? ` from ${low} to ${high}` : '';
  throw new RowProblem(`${name} ${formatValue(value)} must be a number${range}`);
}

function parseTimestamp(value: unknown, rules: RowRules): number {
  if (isAbsent(value)) return rules.importedAt;
  const seconds = parseNumber(value);
  const ms = seconds === null ? parseTime(String(value).trim()) : rules.startMs + Math.round(seconds * 1000);
  if (ms === null)
    throw new RowProblem(`ts ${formatValue(value)} must be an RFC 3339 time or a number of seconds`);
  const problem = findTimeProblem(ms, rules.importedAt);
  if (problem !== null) throw new RowProblem(`ts ${formatValue(value)} ${problem}`);
  return ms;
}

export function parseNumber(value: unknown): number | null {
  const text = typeof value === 'number' ? `${value}` : typeof value === 'string' ? value.trim() : '';
  const number = decimalPattern.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(number) ? number : null;
}

const maxValueCharacters = 60;

/** Shortened JSON, which escapes terminal codes. */
export function formatValue(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= maxValueCharacters ? text : `${text.slice(0, maxValueCharacters)}...`;
}

/** @returns true for a lower order than the learner's previous row */
export function createOrderCheck(maxLearners = 50_000) {
  const last = new Map<string, number>();
  return (userId: string, order: number | null): boolean => {
    if (order === null) return false;
    const before = last.get(userId);
    setRecentlyUsed(last, userId, order, maxLearners);
    return before !== undefined && order < before;
  };
}
