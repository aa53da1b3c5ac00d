import type { AnswerColumn, ReadOptions } from './options.js';
import type { TimeFormat } from './times.js';

export type MappedColumn = AnswerColumn | 'choice' | 'seen' | 'right';

/**
 * Column of the file by column of the answer: alternatives are separated by `|`, joined columns by `+`, and `KC`
 * is the chosen knowledge component model.
 */
export type ColumnNames = Readonly<Partial<Record<MappedColumn, string>>>;

interface RowFilter {
  readonly column: string;
  readonly value: string;
  /** Null: always. */
  readonly option: 'firstAttemptsOnly' | 'originalsOnly' | null;
  /** Why the other rows are left out. */
  readonly reason: string;
}

export interface QuestionTable {
  readonly file: string;
  readonly id: string;
  readonly skills: string;
  readonly separator: string;
  /** Column with the right choice. */
  readonly key?: string;
  /** File of the skills' names and parents; only the lowest ones count. */
  readonly subjects?: string;
}

export interface LogFormat {
  readonly name: string;
  readonly title: string;
  /** Columns that identify the format. The first format with all of them applies. */
  readonly signature: readonly string[];
  readonly columns: ColumnNames;
  readonly timeFormat?: TimeFormat;
  readonly skillSeparator?: string;
  readonly encoding?: string;
  /** Response times per second; default 1. */
  readonly responseUnit?: number;
  readonly filters?: readonly RowFilter[];
  /** Rows with equal values of this column are one answer, with one skill per row. */
  readonly mergeBy?: string;
  readonly sortBy?: readonly string[];
  readonly questions?: QuestionTable;
  /** Another file with a column of the answers. */
  readonly join?: { readonly file: string; readonly id: string; readonly column: string };
  readonly notes?: readonly string[];
}

const dataShopColumns: ColumnNames = {
  user_id: 'Anon Student Id',
  skill_id: 'KC',
  item_id: 'Problem Name+Step Name',
};

const assistments = { encoding: 'windows-1252', skillSeparator: '' };
const originalsOnly: RowFilter = {
  ...{ column: 'original', value: '1', option: 'originalsOnly', reason: 'scaffolding question' },
};

export const skilltraceFormat: LogFormat = {
  name: 'skilltrace',
  title: 'Skilltrace CSV or NDJSON',
  signature: ['user_id', 'correct'],
  columns: {
    ...{ user_id: 'user_id', correct: 'correct', skill_id: 'skill_id', skill_ids: 'skill_ids', ts: 'ts' },
    ...{ item_id: 'item_id', order: 'order', response_time_s: 'response_time_s', fold: 'fold' },
    question_difficulty: 'question_difficulty',
  },
};

/** For any file whose columns the options name. */
export const customFormat: LogFormat = {
  ...{ name: 'custom', title: 'columns of --columns', signature: [], columns: {} },
};

export const logFormats: readonly LogFormat[] = [
  {
    name: 'skilltrace-export',
    title: 'export of the table attempts',
    signature: ['user_id', 'is_correct', 'skill_ids', 'occurred_at', 'learner_seq'],
    columns: {
      ...{ user_id: 'user_id', correct: 'is_correct', skill_ids: 'skill_ids', item_id: 'item_id' },
      ...{ order: 'learner_seq', ts: 'occurred_at', response_time_s: 'time_spent_seconds' },
      question_difficulty: 'question_difficulty',
    },
  },
  {
    name: 'datashop-transactions',
    title: 'DataShop transaction export',
    signature: ['Anon Student Id', 'Outcome', 'Time'],
    columns: {
      ...dataShopColumns,
      ...{ correct: 'Outcome', ts: 'Time', response_time_s: 'Duration (sec)' },
    },
    filters: [
      {
        ...{ column: 'Attempt At Step', value: '1', option: 'firstAttemptsOnly' },
        reason: 'not a first attempt',
      },
    ],
  },
  {
    name: 'datashop-steps',
    title: 'DataShop student-step rollup',
    signature: ['Anon Student Id', 'First Attempt'],
    columns: {
      ...dataShopColumns,
      ...{ correct: 'First Attempt', ts: 'First Transaction Time', response_time_s: 'Step Duration (sec)' },
    },
  },
  {
    name: 'kdd-cup-2010',
    title: 'KDD Cup 2010, and the Cognitive Tutor example of pyBKT',
    signature: ['Anon Student Id', 'Correct First Attempt'],
    columns: {
      ...dataShopColumns,
      ...{ correct: 'Correct First Attempt', ts: 'First Transaction Time' },
      response_time_s: 'Step Duration (sec)',
    },
  },
  {
    ...assistments,
    name: 'assistments-2009',
    title: 'ASSISTments 2009-2010 skill builder, and the example of pyBKT',
    signature: ['order_id', 'user_id', 'problem_id', 'correct'],
    columns: {
      ...{ user_id: 'user_id', correct: 'correct', skill_id: 'skill_name|skill_id', item_id: 'problem_id' },
      ...{ order: 'order_id', response_time_s: 'ms_first_response|ms_first_response_time' },
    },
    responseUnit: 1000,
    filters: [originalsOnly],
    mergeBy: 'order_id',
    sortBy: ['order_id'],
  },
  {
    ...assistments,
    name: 'assistments-2012',
    title: 'ASSISTments 2012-2013',
    signature: ['user_id', 'problem_id', 'skill', 'start_time', 'correct'],
    columns: {
      ...{ user_id: 'user_id', correct: 'correct', skill_id: 'skill', item_id: 'problem_id' },
      ...{ ts: 'start_time', response_time_s: 'ms_first_response' },
    },
    responseUnit: 1000,
    filters: [originalsOnly],
    sortBy: ['start_time'],
  },
  {
    ...assistments,
    name: 'assistments-2015',
    title: 'ASSISTments 2015',
    signature: ['user_id', 'log_id', 'sequence_id', 'correct'],
    columns: { user_id: 'user_id', correct: 'correct', skill_id: 'sequence_id', order: 'log_id' },
    sortBy: ['log_id'],
  },
  {
    ...assistments,
    name: 'assistments-2017',
    title: 'ASSISTments 2017 data mining competition',
    signature: ['studentId', 'skill', 'problemId', 'startTime', 'correct'],
    columns: {
      ...{ user_id: 'studentId', correct: 'correct', skill_id: 'skill', item_id: 'problemId' },
      ...{ ts: 'startTime', response_time_s: 'timeTaken' },
    },
    filters: [originalsOnly],
    sortBy: ['startTime'],
  },
  {
    name: 'ednet-kt1',
    title: 'EdNet KT1: folder of u*.csv, with questions.csv',
    signature: ['user_id', 'timestamp', 'question_id', 'user_answer'],
    columns: {
      ...{ user_id: 'user_id', item_id: 'question_id', choice: 'user_answer', ts: 'timestamp' },
      response_time_s: 'elapsed_time',
    },
    timeFormat: 'ms',
    responseUnit: 1000,
    questions: {
      ...{ file: 'questions.csv', id: 'question_id', skills: 'tags', separator: ';', key: 'correct_answer' },
    },
  },
  {
    name: 'riiid',
    title: 'Riiid AIEd challenge: train.csv, with questions.csv',
    signature: ['timestamp', 'user_id', 'content_id', 'content_type_id', 'answered_correctly'],
    columns: {
      ...{ user_id: 'user_id', item_id: 'content_id', correct: 'answered_correctly', ts: 'timestamp' },
    },
    timeFormat: 'ms',
    filters: [
      { column: 'content_type_id', value: '0', option: null, reason: 'lecture, which has no answer' },
    ],
    questions: { file: 'questions.csv', id: 'question_id', skills: 'tags', separator: ' ' },
    notes: [
      "Times count from each learner's first event. Pass --start DATE to choose the date of that event.",
      'prior_question_elapsed_time is not used: it belongs to earlier questions.',
    ],
  },
  {
    name: 'junyi-2015',
    title: 'Junyi Academy 2015 problem log',
    signature: ['user_id', 'exercise', 'problem_type', 'time_done', 'correct'],
    columns: {
      ...{ user_id: 'user_id', skill_id: 'exercise', item_id: 'exercise+problem_type', correct: 'correct' },
      ...{ ts: 'time_done', response_time_s: 'time_taken' },
    },
    timeFormat: 'us',
    sortBy: ['time_done'],
  },
  {
    name: 'junyi-2019',
    title: 'Junyi Academy 2018-2019: Log_Problem.csv',
    signature: ['timestamp_TW', 'uuid', 'ucid', 'upid', 'is_correct'],
    columns: {
      ...{ user_id: 'uuid', skill_id: 'ucid', item_id: 'upid', correct: 'is_correct', ts: 'timestamp_TW' },
      response_time_s: 'total_sec_taken',
    },
    sortBy: ['timestamp_TW', 'problem_number'],
  },
  {
    name: 'eedi-2020',
    title: 'Eedi, NeurIPS 2020 tasks 1 and 2: answers, with the metadata files',
    signature: ['QuestionId', 'UserId', 'AnswerId', 'IsCorrect'],
    columns: { user_id: 'UserId', item_id: 'QuestionId', correct: 'IsCorrect', ts: 'DateAnswered' },
    sortBy: ['DateAnswered', 'AnswerId'],
    questions: {
      ...{ file: 'question_metadata_task_1_2.csv', id: 'QuestionId', skills: 'SubjectId', separator: ',' },
      subjects: 'subject_metadata.csv',
    },
    join: { file: 'answer_metadata_task_1_2.csv', id: 'AnswerId', column: 'DateAnswered' },
  },
  {
    name: 'duolingo-hlr',
    title: 'Duolingo half-life regression: counts of answers per session',
    signature: ['user_id', 'lexeme_id', 'session_seen', 'session_correct', 'timestamp'],
    columns: {
      ...{ user_id: 'user_id', skill_id: 'lexeme_id', seen: 'session_seen', right: 'session_correct' },
      ts: 'timestamp',
    },
    timeFormat: 's',
    skillSeparator: '',
    sortBy: ['timestamp'],
    notes: [
      'The order of the answers within a session is unknown. Wrong answers are placed before right ones.',
    ],
  },
  skilltraceFormat,
];

const kcColumn = /^KC ?\((.+)\)$/;

export const listKcModels = (header: readonly string[]): string[] => [
  ...new Set(header.flatMap((name) => kcColumn.exec(name)?.[1] ?? [])),
];

export const detectFormat = (header: readonly string[]): LogFormat | null =>
  logFormats.find(({ signature }) => signature.every((name) => header.includes(name))) ?? null;

export interface ColumnMapping {
  /** Positions in the header; several columns are joined. */
  readonly positions: Readonly<Partial<Record<MappedColumn, readonly number[]>>>;
  /** The same with the names. */
  readonly names: Readonly<Record<string, string>>;
  /** Columns that the options or the format name, but the header lacks. */
  readonly missing: readonly string[];
  readonly warnings: readonly string[];
}

/** The options take precedence over the format. */
export function mapColumns(
  header: readonly string[],
  { columns, filters = [] }: LogFormat,
  options: Pick<ReadOptions, 'columns' | 'kc'>,
): ColumnMapping {
  const wanted = Object.entries({ ...columns, ...options.columns }) as [MappedColumn, string][];
  const kc = options.kc ?? listKcModels(header)[0] ?? null;
  const found = wanted.map(([column, text]) => [column, findColumns(header, text, kc)] as const);
  const isNamed = (column: MappedColumn): boolean => column in options.columns;
  const mapped = found.filter(([, places]) => places.length > 0);
  const positions = Object.fromEntries(mapped);
  const joinedNames = (places: readonly number[]) =>
    [...new Set(places.map((place) => header[place]))].join(' + ');
  return {
    positions,
    names: Object.fromEntries(mapped.map(([column, places]) => [column, joinedNames(places)])),
    missing: found.flatMap(([column, places]) =>
      places.length === 0 && isNamed(column) && options.columns[column as AnswerColumn] !== ''
        ? [`${options.columns[column as AnswerColumn]} (--columns ${column})`]
        : [],
    ),
    warnings: [
      ...warnOfModels(header, kc, options.kc),
      ...warnOfUnused(
        header,
        positions,
        filters.map(({ column }) => column),
      ),
    ],
  };
}

/** Empty if a column is missing. */
function findColumns(header: readonly string[], text: string, kc: string | null): number[] {
  if (text === 'KC') return findAll(header, (name) => kc !== null && kcColumn.exec(name)?.[1] === kc);
  if (header.includes(text)) return [header.indexOf(text)];
  for (const alternative of text.split('|')) {
    const places = alternative.split('+').map((name) => header.indexOf(name));
    if (!places.includes(-1)) return places;
  }
  return [];
}

const findAll = (header: readonly string[], matches: (name: string) => boolean): number[] =>
  header.flatMap((name, place) => (matches(name) ? [place] : []));

function warnOfModels(header: readonly string[], kc: string | null, given: string | null): string[] {
  const others = listKcModels(header).filter((name) => name !== kc);
  if (kc === null || given !== null || others.length === 0) return [];
  return [`The skills are those of KC model "${kc}". Pass --kc NAME for another one: ${others.join(', ')}`];
}

/** Names that suggest a column of the answers. */
const lookalikes: readonly (readonly [column: AnswerColumn, pattern: RegExp, what: string])[] = [
  ['user_id', /user|student|learner|pupil/i, 'identifies learners'],
  ['skill_id', /skill|\bkc\b|topic|concept|tags?$|lexeme/i, 'identifies skills'],
  ['correct', /correct|outcome|score|grade|result/i, 'contains the result'],
  ['item_id', /item|problem|question|exercise/i, 'identifies items'],
  ['ts', /time|date|stamp/i, 'contains times'],
  ['order', /order|^row|^seq|log_?id/i, 'numbers the answers'],
];

/** The file's columns that look like one of the answer, by column. */
export const findLookalikes = (header: readonly string[]) =>
  lookalikes.map(([column, pattern, what]) => ({
    ...{ column, what },
    names: header.filter((name) => pattern.test(name)),
  }));

const optionalColumns: readonly string[] = ['item_id', 'ts', 'order'];

/** Reports one unused column for each missing item, time and order. A time or an order suffices to sort. */
function warnOfUnused(
  header: readonly string[],
  positions: Readonly<Partial<Record<string, readonly number[]>>>,
  known: readonly string[],
): string[] {
  const used = new Set([
    ...Object.values(positions).flatMap((places) => places?.map((place) => header[place]) ?? []),
    ...known,
  ]);
  return findLookalikes(header.filter((name) => !used.has(name))).flatMap(
    ({ column, names: [name], what }) =>
      name === undefined ||
      !optionalColumns.includes(column) ||
      column in positions ||
      (column === 'order' && 'ts' in positions)
        ? []
        : [`Column "${name}" is not used. If it ${what}, pass --columns ${column}=${JSON.stringify(name)}`],
  );
}
