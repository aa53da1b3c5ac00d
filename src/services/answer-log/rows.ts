import { createHash } from 'node:crypto';
import { findTimeProblem, maxQuestionSkills } from '../../contracts/answers/events.js';
import { findIdProblem } from '../../contracts/schema/ids.js';
import type { NonEmpty } from '../../domain/base/common.js';
import { distinct } from '../../lists.js';
import { setRecentlyUsed } from '../../store/redis/commands/recently-used.js';
import type { LogFormat, MappedColumn } from './formats.js';
import type { AnswerColumn, ReadOptions } from './options.js';
import { createTimeParser } from './times.js';
import { isAbsent, parseJson, parseNumber, parseNumberField, RowProblem } from './values.js';

/** Strings, or values from NDJSON. Undefined, null and '' mean absent. */
export type RawFields = Readonly<Partial<Record<MappedColumn, unknown>>>;

export interface FileAnswer {
  readonly userId: string;
  readonly skillIds: NonEmpty<string>;
  readonly isCorrect: boolean;
  readonly itemId: string | null;
  /** Unix milliseconds; null: not reported. */
  readonly at: number | null;
  readonly seconds: number | null;
  readonly order: number | null;
  readonly fold: number | null;
  /** Logits. */
  readonly difficulty: number | null;
}

/** What another file says of a question. */
export interface QuestionRow {
  readonly skillIds: readonly string[];
  /** The right choice; null: the log itself says whether an answer is right. */
  readonly key: string | null;
}

export interface ParserInput {
  readonly format: LogFormat;
  readonly options: ReadOptions;
  /** By item; null if the log needs no file of questions. */
  readonly questions: ReadonlyMap<string, QuestionRow> | null;
  /** Unix milliseconds. Later times are invalid. */
  readonly now: number;
}

const maxResponseSeconds = 86_400;
export const maxFold = 65_534;
/** As in DataShop's exports. */
export const skillSeparator = '~~';
const maxIdLength = 128;

/** Ids from other systems may exceed the limit of the API, and name a skill twice. */
export const isForeign = ({ name }: LogFormat): boolean => !name.startsWith('skilltrace');

type RowRules = ReturnType<typeof buildRules>;

function buildRules({ format, options, questions, now }: ParserInput) {
  const { timeFormat, timezone, start, minScore, decimal } = options;
  return {
    ...{ questions, now, minScore, decimal, isForeign: isForeign(format) },
    skillSeparator: options.skillSeparator ?? format.skillSeparator ?? skillSeparator,
    parseTime: createTimeParser(timeFormat ?? format.timeFormat ?? 'auto', timezone ?? 'UTC', start ?? 0),
    results: buildResults(options),
    responseUnit: format.responseUnit ?? 1,
  };
}

const defaultCorrect = ['1', 'true', 't', 'correct', 'y', 'yes'];
const defaultIncorrect = ['0', 'false', 'f', 'incorrect', 'wrong', 'n', 'no', 'hint'];

/** Lower-case values of `correct`. Given values take precedence, and replace the default ones of their side. */
function buildResults({ correctValues, incorrectValues }: ReadOptions): ReadonlyMap<string, boolean> {
  const entries = (values: readonly string[] | null, isCorrect: boolean) =>
    (values ?? []).map((value) => [value.trim().toLowerCase(), isCorrect] as const);
  return new Map([
    ...entries(correctValues === null ? defaultCorrect : null, true),
    ...entries(incorrectValues === null ? defaultIncorrect : null, false),
    ...entries(correctValues, true),
    ...entries(incorrectValues, false),
  ]);
}

/** @returns a parser of rows, which throws RowProblem */
export function createAnswerParser(input: ParserInput) {
  const rules = buildRules(input);
  const { questions, decimal } = rules;
  const parseSkills = createSkillParser(rules);
  const toNumber = (value: unknown): unknown =>
    decimal === ',' && typeof value === 'string' ? value.replace(',', '.') : value;
  const parseId = (name: AnswerColumn, value: unknown) => parseIdField(name, value, rules.isForeign);
  return (fields: RawFields): FileAnswer => {
    const userId = parseId('user_id', fields.user_id);
    if (userId === null) throw new RowProblem('user_id', 'is missing');
    const itemId = parseId('item_id', fields.item_id);
    const question = questions === null ? null : findQuestion(questions, itemId);
    return {
      userId,
      skillIds: parseSkills(question === null ? fields : { skill_ids: question.skillIds }),
      isCorrect: question?.key
        ? fields.choice === question.key
        : parseCorrect(toNumber(fields.correct), rules),
      itemId,
      at: parseTimestamp(fields.ts, rules),
      seconds: parseSeconds(toNumber(fields.response_time_s), rules),
      order: parseNumberField('order', toNumber(fields.order)),
      fold: parseFold(fields.fold),
      difficulty: parseNumberField('question_difficulty', toNumber(fields.question_difficulty), [-3, 3]),
    };
  };
}

function findQuestion(questions: ReadonlyMap<string, QuestionRow>, itemId: string | null): QuestionRow {
  const found = questions.get(itemId ?? '');
  if (found === undefined) throw new RowProblem('item_id', 'is not in the file of questions', itemId);
  if (found.skillIds.length > 0) return found;
  throw new RowProblem('item_id', 'has no skill in the file of questions', itemId);
}

const maxCachedSkills = 20_000;

/** A log repeats few values of `skill_id`. */
function createSkillParser({ skillSeparator, isForeign }: RowRules) {
  const known = new Map<string, NonEmpty<string>>();
  const split = (text: string): readonly string[] =>
    skillSeparator === '' ? [text] : text.split(skillSeparator);
  const parse = (name: 'skill_id' | 'skill_ids', value: unknown, parts: readonly unknown[]) => {
    const ids = parts.map((part) => parseIdField(name, part, isForeign));
    return checkSkills(name, value, isForeign ? distinct(ids.filter((id) => id !== null)) : ids);
  };
  return ({ skill_id: joined, skill_ids: list }: RawFields): NonEmpty<string> => {
    if (!isAbsent(joined) && !isAbsent(list))
      throw new RowProblem('skill_id and skill_ids', 'exclude each other');
    if (!isAbsent(list)) return parse('skill_ids', list, parseList(list));
    if (isAbsent(joined)) throw new RowProblem('skill_id', 'is missing');
    if (typeof joined !== 'string') return parse('skill_id', joined, [joined]);
    const found = known.get(joined);
    if (found !== undefined) return found;
    const ids = parse('skill_id', joined, split(joined));
    setRecentlyUsed(known, joined, ids, maxCachedSkills);
    return ids;
  };
}

function checkSkills(name: string, value: unknown, ids: readonly (string | null)[]): NonEmpty<string> {
  if (ids.length === 0) throw new RowProblem(name, 'is missing');
  if (ids.includes(null)) throw new RowProblem(name, 'has an empty id', value);
  if (ids.length > maxQuestionSkills)
    throw new RowProblem(name, `has more than ${maxQuestionSkills} skills`, value);
  if (new Set(ids).size < ids.length) throw new RowProblem(name, 'has a skill twice', value);
  return ids as readonly string[] as NonEmpty<string>;
}

/** A list, its JSON text, or its text in CSV exports of ClickHouse: ['a','b']. */
function parseList(list: unknown): readonly unknown[] {
  const parsed = typeof list === 'string' ? (parseJson(list) ?? parseClickhouseList(list)) : list;
  if (Array.isArray(parsed)) return parsed;
  throw new RowProblem('skill_ids', 'must be a JSON list of ids', list);
}

const clickhouseItem = String.raw`'((?:[^'\\]|\\.)*)'`;
const clickhouseList = new RegExp(String.raw`^\[${clickhouseItem}(,${clickhouseItem})*\]$`);

const parseClickhouseList = (text: string): string[] | null =>
  clickhouseList.test(text)
    ? [...text.matchAll(new RegExp(clickhouseItem, 'g'))].map(([, id = '']) => id.replace(/\\(.)/g, '$1'))
    : null;

/** NDJSON numbers become decimal digits. */
function parseIdField(name: string, value: unknown, isForeign: boolean): string | null {
  if (isAbsent(value)) return null;
  const text = typeof value === 'number' && Number.isSafeInteger(value) ? `${value}` : value;
  if (typeof text !== 'string') throw new RowProblem(name, 'must be a string', value);
  const id = isForeign ? shortenId(text.trim()) : text;
  if (isForeign && id === '') return null;
  const problem = findIdProblem(id);
  if (problem !== null) throw new RowProblem(name, problem, value);
  return id;
}

const hashLength = 16;

/** Different long ids stay different. */
function shortenId(text: string): string {
  if (text.length <= maxIdLength) return text;
  const hash = createHash('sha256').update(text).digest('hex').slice(0, hashLength);
  return `${text.slice(0, maxIdLength - hashLength - 1).replace(/[\uD800-\uDBFF]$/, '')}~${hash}`;
}

function parseCorrect(value: unknown, { results, minScore }: RowRules): boolean {
  if (isAbsent(value)) throw new RowProblem('correct', 'is missing');
  const text = String(value).trim().toLowerCase();
  const score = parseNumber(text);
  if (score !== null && minScore !== null) return score >= minScore;
  // 1.0 is the result 1.
  const found = results.get(text) ?? (score === null ? undefined : results.get(`${score + 0}`));
  if (found !== undefined) return found;
  throw new RowProblem('correct', `must be 1, 0, true or false; or pass ${adviseResult(text, score)}`, value);
}

function adviseResult(text: string, score: number | null): string {
  if (score !== null) return '--min-score for partial credit';
  return /^\d+,\d+$/.test(text) ? '--decimal ,' : '--correct-values and --incorrect-values';
}

function parseTimestamp(value: unknown, { parseTime, now }: RowRules): number | null {
  if (isAbsent(value)) return null;
  const ms = parseTime(value);
  if (ms === null)
    throw new RowProblem(
      'ts',
      'must be a number, RFC 3339 or YYYY-MM-DD hh:mm:ss; or pass --time-format mdy or dmy',
      value,
    );
  const problem = findTimeProblem(ms, now);
  if (problem !== null) throw new RowProblem('ts', problem, value);
  return ms;
}

/** Logs of other systems contain negative times, and times of several days. */
function parseSeconds(value: unknown, { responseUnit, isForeign }: RowRules): number | null {
  if (!isForeign) return parseNumberField('response_time_s', value, [0, maxResponseSeconds]);
  const seconds = (parseNumber(value) ?? Number.NaN) / responseUnit;
  return seconds >= 0 && seconds <= maxResponseSeconds ? seconds : null;
}

function parseFold(value: unknown): number | null {
  const fold = parseNumberField('fold', value, [0, maxFold]);
  if (fold === null || Number.isInteger(fold)) return fold;
  throw new RowProblem('fold', 'must be an integer', value);
}
