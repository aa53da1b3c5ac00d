import { answerColumns } from './options.js';
import type { TimeFormat } from './times.js';

/**
 * `choice`: of a question with a key. `seen`, `right`: counts of several answers. `answer_id`: the same in all rows of an
 * answer. The last three are for filters.
 */
const mappedColumns = [
  ...answerColumns,
  ...(['choice', 'seen', 'right', 'answer_id', 'attempt', 'original', 'content_type'] as const),
] as const;
export type MappedColumn = (typeof mappedColumns)[number];

/**
 * Column of the file by column of the answer: alternatives are separated by `|`, joined columns by `+`, and `KC`
 * is the chosen knowledge component model.
 */
export type ColumnNames = Readonly<Partial<Record<MappedColumn, string>>>;

const columnStart = new RegExp(`,(?=(?:${mappedColumns.join('|')})=)`);

/** Parses `NAME=COLUMN,…`. Columns may contain commas. */
export const parseColumnList = (text: string): ColumnNames =>
  Object.fromEntries(
    text.split(columnStart).map((part) => {
      const [name = '', ...column] = part.split('=');
      return [name, column.join('=').replace(/^"(.*)"$/, '$1')];
    }),
  );

/** Only rows with this value count. */
interface RowFilter {
  readonly column: MappedColumn;
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
  readonly signature: readonly string[];
  readonly columns: ColumnNames;
  readonly timeFormat?: TimeFormat;
  readonly skillSeparator?: string;
  readonly encoding?: string;
  /** Response times per second; default 1. */
  readonly responseUnit?: number;
  readonly filter?: RowFilter;
  readonly sortBy?: readonly string[];
  readonly questions?: QuestionTable;
  /** Another file with a column of the answers. */
  readonly join?: { readonly file: string; readonly id: string; readonly column: string };
  readonly notes?: readonly string[];
}

/** @param columns as in --columns @param signature separated by commas */
const defineFormat = (
  name: string,
  title: string,
  signature: string,
  columns: string,
  others: Partial<LogFormat> = {},
): LogFormat => ({
  name,
  title,
  signature: signature.split(','),
  columns: parseColumnList(columns),
  ...others,
});

const dataShop = 'user_id=Anon Student Id,skill_id=KC,item_id=Problem Name+Step Name';
const firstTry = 'ts=First Transaction Time,response_time_s=Step Duration (sec)';
/** DataShop orders the steps of a learner by their end, and transactions by session. */
const stepOrder = { sortBy: ['First Transaction Time'] };
const assistments: Partial<LogFormat> = {
  ...{ encoding: 'windows-1252', skillSeparator: '' },
  filter: { column: 'original', value: '1', option: 'originalsOnly', reason: 'scaffolding question' },
};

const ednetQuestions = { file: 'questions.csv', id: 'question_id', skills: 'tags' };

/** The first format with all columns of its signature applies. */
export const logFormats: readonly LogFormat[] = [
  defineFormat(
    'skilltrace-export',
    'export of the table attempts',
    'user_id,is_correct,skill_ids,occurred_at,learner_seq',
    `user_id=user_id,correct=is_correct,skill_ids=skill_ids,item_id=item_id,order=learner_seq,ts=occurred_at,\
response_time_s=time_spent_seconds,question_difficulty=question_difficulty`,
  ),
  defineFormat(
    'datashop-transactions',
    'DataShop transaction export',
    'Anon Student Id,Outcome,Time',
    `${dataShop},correct=Outcome,ts=Time,response_time_s=Duration (sec),attempt=Attempt At Step`,
    {
      filter: { column: 'attempt', value: '1', option: 'firstAttemptsOnly', reason: 'not a first attempt' },
      sortBy: ['Time'],
    },
  ),
  defineFormat(
    'datashop-steps',
    'DataShop student-step rollup',
    'Anon Student Id,First Attempt',
    `${dataShop},correct=First Attempt,${firstTry}`,
    stepOrder,
  ),
  defineFormat(
    'kdd-cup-2010',
    'KDD Cup 2010, and the Cognitive Tutor example of pyBKT',
    'Anon Student Id,Correct First Attempt',
    `${dataShop},correct=Correct First Attempt,${firstTry}`,
    stepOrder,
  ),
  defineFormat(
    'assistments-2009',
    'ASSISTments 2009-2010 skill builder, and the example of pyBKT',
    'order_id,user_id,problem_id,correct',
    `user_id=user_id,correct=correct,skill_id=skill_name|skill_id,item_id=problem_id,order=order_id,\
response_time_s=ms_first_response|ms_first_response_time,original=original,answer_id=order_id`,
    { ...assistments, responseUnit: 1000, sortBy: ['order_id'] },
  ),
  defineFormat(
    'assistments-2012',
    'ASSISTments 2012-2013',
    'user_id,problem_id,skill,start_time,correct',
    'user_id=user_id,correct=correct,skill_id=skill,item_id=problem_id,ts=start_time,response_time_s=ms_first_response,original=original,answer_id=problem_log_id',
    { ...assistments, responseUnit: 1000, sortBy: ['start_time', 'problem_log_id'] },
  ),
  defineFormat(
    'assistments-2015',
    'ASSISTments 2015',
    'user_id,log_id,sequence_id,correct',
    'user_id=user_id,correct=correct,skill_id=sequence_id,order=log_id',
    { ...assistments, sortBy: ['log_id'] },
  ),
  defineFormat(
    'assistments-2017',
    'ASSISTments 2017 data mining competition',
    'studentId,skill,problemId,startTime,correct',
    'user_id=studentId,correct=correct,skill_id=skill,item_id=problemId,ts=startTime,response_time_s=timeTaken,original=original',
    { ...assistments, sortBy: ['startTime'] },
  ),
  defineFormat(
    'ednet-kt1',
    'EdNet KT1: folder of u*.csv, with questions.csv',
    'user_id,timestamp,question_id,user_answer',
    'user_id=user_id,item_id=question_id,choice=user_answer,ts=timestamp,response_time_s=elapsed_time',
    {
      ...{ timeFormat: 'ms', responseUnit: 1000 },
      questions: { ...ednetQuestions, separator: ';', key: 'correct_answer' },
    },
  ),
  defineFormat(
    'riiid',
    'Riiid AIEd challenge: train.csv, with questions.csv',
    'timestamp,user_id,content_id,content_type_id,answered_correctly',
    'user_id=user_id,item_id=content_id,correct=answered_correctly,ts=timestamp,content_type=content_type_id',
    {
      filter: { column: 'content_type', value: '0', option: null, reason: 'lecture, which has no answer' },
      timeFormat: 'ms',
      questions: { ...ednetQuestions, separator: ' ' },
      notes: [
        "Times count from each learner's first event. Pass --start DATE to choose the date of that event.",
        'prior_question_elapsed_time is not used: it belongs to earlier questions.',
      ],
    },
  ),
  defineFormat(
    'junyi-2015',
    'Junyi Academy 2015 problem log',
    'user_id,exercise,problem_type,time_done,correct',
    'user_id=user_id,skill_id=exercise,item_id=exercise+problem_type,correct=correct,ts=time_done,response_time_s=time_taken',
    { timeFormat: 'us', sortBy: ['time_done'] },
  ),
  defineFormat(
    'junyi-2019',
    'Junyi Academy 2018-2019: Log_Problem.csv',
    'timestamp_TW,uuid,ucid,upid,is_correct',
    'user_id=uuid,skill_id=ucid,item_id=upid,correct=is_correct,ts=timestamp_TW,response_time_s=total_sec_taken',
    { sortBy: ['timestamp_TW', 'problem_number'] },
  ),
  defineFormat(
    'eedi-2020',
    'Eedi, NeurIPS 2020: answers of a task, with the metadata files',
    'QuestionId,UserId,AnswerId,IsCorrect',
    'user_id=UserId,item_id=QuestionId,correct=IsCorrect,ts=DateAnswered',
    {
      sortBy: ['DateAnswered', 'AnswerId'],
      questions: {
        ...{ file: 'question_metadata_task_1_2.csv', id: 'QuestionId', skills: 'SubjectId', separator: ',' },
        subjects: 'subject_metadata.csv',
      },
      join: { file: 'answer_metadata_task_1_2.csv', id: 'AnswerId', column: 'DateAnswered' },
    },
  ),
  defineFormat(
    'duolingo-hlr',
    'Duolingo half-life regression: counts of answers per session',
    'user_id,lexeme_id,session_seen,session_correct,timestamp',
    'user_id=user_id,skill_id=lexeme_id,seen=session_seen,right=session_correct,ts=timestamp',
    {
      ...{ timeFormat: 's', skillSeparator: '', sortBy: ['timestamp'] },
      notes: [
        'The order of the answers within a session is unknown. Wrong answers are placed before right ones.',
      ],
    },
  ),
  defineFormat(
    'skilltrace',
    'Skilltrace CSV or NDJSON',
    'user_id,correct',
    answerColumns.map((column) => `${column}=${column}`).join(),
  ),
];

/** For other files. The options name the columns. */
export const customFormat = defineFormat('custom', 'columns of --columns', '', '');

export const detectFormat = (header: readonly string[]): LogFormat | null =>
  logFormats.find(({ signature }) => signature.every((name) => header.includes(name))) ?? null;
