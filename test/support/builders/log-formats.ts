/**
 * Small answer logs in the formats of public data sets, written from their descriptions: DataShop's help on exports, the pages of
 * KDD Cup 2010 and of ASSISTments, the READMEs of EdNet, Junyi Academy, Duolingo and pyBKT, the page of Riiid on Kaggle, and the
 * guide of the NeurIPS 2020 education challenge.
 */
import type { LogFiles } from '../commands/answer-logs.js';

export type ExpectedAnswer = readonly [
  user: string,
  skills: readonly string[],
  correct: 0 | 1,
  item: string | null,
  time: string | null,
  seconds: number | null,
];

export interface FormatExample {
  readonly title: string;
  /** Name that detection reports. */
  readonly format: string;
  readonly files: LogFiles;
  /** Path to open. */
  readonly open: string;
  readonly answers: readonly ExpectedAnswer[];
  /** Rows by reason. */
  readonly leftOut?: Readonly<Record<string, number>>;
  readonly warnings?: readonly RegExp[];
}

const quoteField = (field: string, delimiter: string): string =>
  field.includes(delimiter) || /["\r\n]|^[ \t]|[ \t]$/.test(field)
    ? `"${field.replaceAll('"', '""')}"`
    : field;

/** RFC 4180. Spaces at the ends of a field are data only within quotes. */
export const csv = (rows: readonly (readonly string[])[], delimiter = ',', lineEnd = '\n'): string =>
  rows.map((row) => row.map((field) => quoteField(field, delimiter)).join(delimiter) + lineEnd).join('');

/** Tab-separated, in which quotes are text. */
const tsv = (rows: readonly (readonly string[])[]): string =>
  rows.map((row) => `${row.join('\t')}\n`).join('');

/** Rows with a header. Columns without a value are empty. */
const table = (header: readonly string[], ...rows: readonly Readonly<Record<string, string>>[]) => [
  header,
  ...rows.map((row) => header.map((name) => row[name] ?? '')),
];

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');

const ownHeader = 'user_id,skill_id,correct,item_id,ts,response_time_s,order,fold,question_difficulty'.split(
  ',',
);
const ownAnswers: readonly ExpectedAnswer[] = [
  ['ada', ['fractions'], 1, 'q "1", a', '2026-05-31T10:00:00.000Z', 41.5],
  ['ada', ['fractions', 'ratios'], 0, null, '2026-05-31T12:01:10.250Z', null],
];

const own: readonly FormatExample[] = [
  {
    title: 'CSV of Skilltrace',
    format: 'skilltrace',
    files: {
      'answers.csv': csv([
        ownHeader,
        ['ada', 'fractions', '1', 'q "1", a', '2026-05-31T12:00:00+02:00', '41.5', '1', '2', '-0.5'],
        ['ada', 'fractions~~ratios', 'false', '', '1780228870.25', '', '2', '', ''],
      ]),
    },
    open: 'answers.csv',
    answers: ownAnswers,
  },
  {
    title: 'NDJSON of Skilltrace with different columns per row',
    format: 'skilltrace',
    files: {
      'answers.ndjson': [
        { user_id: 'ada', skill_id: 'fractions', correct: true, item_id: 'q "1", a', response_time_s: 41.5 },
        { user_id: 'ada', skill_ids: ['fractions', 'ratios'], correct: 0, ts: 1_780_228_870.25 },
      ]
        .map((row, i) => `${JSON.stringify(i === 0 ? { ...row, ts: '2026-05-31T10:00:00Z' } : row)}\n`)
        .join(''),
    },
    open: 'answers.ndjson',
    answers: ownAnswers,
  },
];

const transactionHeader = [
  ...[
    'Row',
    'Sample Name',
    'Transaction Id',
    'Anon Student Id',
    'Session Id',
    'Time',
    'Time Zone',
    'Duration (sec)',
  ],
  ...['Student Response Type', 'Tutor Response Type', 'Level (Unit)', 'Problem Name', 'Step Name'],
  ...['Attempt At Step', 'Outcome', 'KC (Default)', 'KC Category (Default)', 'KC (Default)', 'KC (Fine)'],
];

/** Exports are in order of session and time. */
const transactions = tsv([
  transactionHeader,
  ...[
    ['b', '2005-09-09 12:00:05.5', '5.5', 'P1', 'x = "1"', '1', 'INCORRECT', 'add', '', '', 'add-1'],
    ['b', '2005-09-09 12:00:09.0', '3.5', 'P1', 'x = "1"', '2', 'CORRECT', 'add', '', '', 'add-1'],
    ['b', '2005-09-09 12:01:00.0', '.', 'P1', 'y', '1', 'HINT', 'add', '', 'carry', 'add-2'],
    ['b', '2005-09-09 12:02:00.0', '1', 'P1', '', '', '', '', '', '', ''],
    ['a', '2005-09-08 08:00:00.0', '700', 'P2', 'z', '1', 'CORRECT', 'carry', '', '', 'carry-1'],
  ].map(([session = '', time = '', seconds = '', ...rest], i) => [
    ...[`${i + 1}`, 'All Data', `t${i}`, 'Stu_1', session, time, 'US/Eastern', seconds],
    ...['ATTEMPT', 'RESULT', 'U1', ...rest],
  ]),
]);

const stepHeader = (outcome: string): string[] => [
  ...[
    'Row',
    'Anon Student Id',
    'Problem Hierarchy',
    'Problem Name',
    'Problem View',
    'Step Name',
    'Step Start Time',
  ],
  ...['First Transaction Time', 'Correct Transaction Time', 'Step End Time', 'Step Duration (sec)'],
  ...['Correct Step Duration (sec)', 'Error Step Duration (sec)', outcome, 'Incorrects', 'Hints', 'Corrects'],
];

/** Exports are in order of learner and last or correct transaction. Here the second step ends first. */
const steps = (header: readonly string[], kc: string, [right, wrong]: readonly [string, string]) => {
  const outcome = header.find((name) => name.endsWith('First Attempt')) ?? '';
  const row = (step: string, first: string, seconds: string, result: string, kcs: string) => ({
    ...{ 'Anon Student Id': 'Stu_1', 'Problem Name': 'P1', 'Problem View': '1', 'Step Name': step },
    ...{ 'First Transaction Time': first, 'Step Duration (sec)': seconds, [outcome]: result, [kc]: kcs },
  });
  return table(
    header,
    row('y', '2006-10-26 09:53:41.0', '11', right, 'add~~carry'),
    row('x', '2006-10-26 09:52:30.0', '92.5', wrong, 'add'),
    row('none', '2006-10-26 09:54:00.0', '1', right, ''),
  );
};
const stepAnswers: readonly ExpectedAnswer[] = [
  ['Stu_1', ['add'], 0, 'P1/x', '2006-10-26T09:52:30.000Z', 92.5],
  ['Stu_1', ['add', 'carry'], 1, 'P1/y', '2006-10-26T09:53:41.000Z', 11],
];

function kddCup(title: string, open: string, write: typeof tsv, model: string): FormatExample {
  const kc = `KC(${model})`;
  const header = [...stepHeader('Correct First Attempt'), kc, `Opportunity(${model})`];
  return {
    ...{ title, format: 'kdd-cup-2010', open, answers: stepAnswers, leftOut: { 'skill_id is missing': 1 } },
    files: { [open]: write(steps(header, kc, ['1', '0'])) },
  };
}

const dataShop: readonly FormatExample[] = [
  {
    title: 'DataShop transactions, with two skills of a step in two columns',
    format: 'datashop-transactions',
    files: { 'ds1_tx_All_Data.txt': transactions },
    open: 'ds1_tx_All_Data.txt',
    answers: [
      ['Stu_1', ['carry'], 1, 'P2/z', '2005-09-08T08:00:00.000Z', 700],
      ['Stu_1', ['add'], 0, 'P1/x = "1"', '2005-09-09T12:00:05.500Z', 5.5],
      ['Stu_1', ['add'], 1, 'P1/x = "1"', '2005-09-09T12:00:09.000Z', 3.5],
      ['Stu_1', ['add', 'carry'], 0, 'P1/y', '2005-09-09T12:01:00.000Z', null],
    ],
    leftOut: { 'skill_id is missing': 1 },
    warnings: [/The skills come from KC model "Default"\. Pass --kc NAME for another one: Fine/],
  },
  {
    title: 'DataShop student-step rollup',
    format: 'datashop-steps',
    files: {
      'ds1_student_step_All_Data.txt': tsv(
        steps([...stepHeader('First Attempt'), 'KC (Default)'], 'KC (Default)', ['correct', 'hint']),
      ),
    },
    open: 'ds1_student_step_All_Data.txt',
    answers: stepAnswers,
    leftOut: { 'skill_id is missing': 1 },
  },
  kddCup('KDD Cup 2010', 'algebra_train.txt', tsv, 'SubSkills'),
  kddCup('Cognitive Tutor example of pyBKT', 'ct.csv', csv, 'Default'),
];

const header2009 = (
  'order_id,assignment_id,user_id,assistment_id,problem_id,original,correct,attempt_count,ms_first_response,tutor_mode,' +
  'answer_type,sequence_id,student_class_id,position,type,base_sequence_id,skill_id,skill_name,teacher_id,school_id,' +
  'hint_count,hint_total,overlap_time,template_id,answer_id,answer_text,first_action,bottom_hint,opportunity,' +
  'opportunity_original'
).split(',');

function row2009(order: string, user: string, problem: string, correct: string, skill: string, ms = '12345') {
  const original = problem === '52' ? '0' : '1';
  const fixed = { type: 'MasterySection', tutor_mode: 'tutor', answer_text: '1,5' };
  const ids = { order_id: order, user_id: user, problem_id: problem, original };
  return { ...fixed, ...ids, correct, skill_name: skill, ms_first_response: ms };
}

/** The rows of one answer with two skills are apart, as in files that are in order of the skill. */
export const assistments2009 = latin1(
  csv(
    table(
      header2009,
      row2009('300', '7', '53', '0', 'Écart, mean'),
      row2009('100', '7', '51', '1', 'Mean'),
      row2009('200', '7', '52', '1', 'Mean', '-5'),
      row2009('100', '8', '51', '0', 'Mean'),
      row2009('300', '7', '53', '0', 'Mode'),
      row2009('400', '7', '54', '1', ''),
    ),
  ),
);

const assistments: readonly FormatExample[] = [
  {
    title: 'ASSISTments 2009, and the example of pyBKT',
    format: 'assistments-2009',
    files: { 'skill_builder_data.csv': assistments2009 },
    open: 'skill_builder_data.csv',
    answers: [
      ['7', ['Mean'], 1, '51', null, 12.345],
      ['8', ['Mean'], 0, '51', null, 12.345],
      ['7', ['Mean'], 1, '52', null, null],
      ['7', ['Écart, mean', 'Mode'], 0, '53', null, 12.345],
    ],
    leftOut: { 'skill_id is missing': 1 },
  },
  {
    title: 'ASSISTments 2012, with the skills of an answer in two rows',
    format: 'assistments-2012',
    files: {
      '2012-2013-data-with-predictions-4-final.csv': latin1(
        csv(
          table(
            (
              'problem_log_id,skill,problem_id,user_id,assignment_id,assistment_id,start_time,end_time,problem_type,' +
              'original,correct,bottom_hint,hint_count,actions,attempt_count,ms_first_response,tutor_mode,sequence_id,' +
              'student_class_id,position,type,base_sequence_id,skill_id,teacher_id,school_id,overlap_time'
            ).split(','),
            ...[
              ['12', 'Mode', '1', '2012-09-28 15:11:27.000', '1'],
              ['11', 'Mean', '0', '2012-09-28 15:11:27.000', '0'],
              ['12', 'Mean', '1', '2012-09-28 15:11:27.000', '1'],
              ['10', 'Mean', '1', '2012-09-28 15:10:00', '0.25'],
            ].map(([log = '', skill = '', original = '', time = '', correct = '']) => ({
              ...{
                problem_log_id: log,
                skill,
                skill_id: '9',
                original,
                start_time: time,
                end_time: time,
                correct,
              },
              ...{ user_id: '7', problem_id: `p${log}`, ms_first_response: '2500' },
            })),
          ),
        ),
      ),
    },
    open: '2012-2013-data-with-predictions-4-final.csv',
    answers: [
      ['7', ['Mean'], 0, 'p11', '2012-09-28T15:11:27.000Z', 2.5],
      ['7', ['Mode', 'Mean'], 1, 'p12', '2012-09-28T15:11:27.000Z', 2.5],
    ],
    leftOut: { 'correct must be 1, 0, true or false; or pass --min-score for partial credit': 1 },
  },
  {
    title: 'ASSISTments 2015',
    format: 'assistments-2015',
    files: {
      '2015_100_skill_builders_main_problems.csv': csv([
        ['user_id', 'log_id', 'sequence_id', 'correct'],
        ['50121', '167478036', '7014', '0.0'],
        ['50121', '167478035', '7014', '1.0'],
      ]),
    },
    open: '2015_100_skill_builders_main_problems.csv',
    answers: [
      ['50121', ['7014'], 1, null, null, null],
      ['50121', ['7014'], 0, null, null, null],
    ],
  },
  {
    title: 'ASSISTments 2017',
    format: 'assistments-2017',
    files: {
      'anonymized_full_release_competition_dataset.csv': csv(
        table(
          (
            'studentId,MiddleSchoolId,InferredGender,SY ASSISTments Usage,AveKnow,AveCorrect,NumActions,skill,problemId,' +
            'problemType,assignmentId,assistmentId,startTime,endTime,timeTaken,correct,original,hint,hintCount,scaffold,' +
            'attemptCount,timeSinceSkill,actionId'
          ).split(','),
          ...[
            ['properties-of-figures', '1096470350', '0', '93'],
            ['properties-of-figures', '1096470301', '1', '49.5'],
          ].map(([skill = '', startTime = '', correct = '', timeTaken = '']) => ({
            ...{
              studentId: '8',
              skill,
              startTime,
              correct,
              timeTaken,
              problemId: '104051118',
              original: '1',
            },
          })),
        ),
      ),
    },
    open: 'anonymized_full_release_competition_dataset.csv',
    answers: [
      ['8', ['properties-of-figures'], 1, '104051118', '2004-09-29T15:05:01.000Z', 49.5],
      ['8', ['properties-of-figures'], 0, '104051118', '2004-09-29T15:05:50.000Z', 93],
    ],
  },
];

const questionHeader = [
  'question_id',
  'bundle_id',
  'explanation_id',
  'correct_answer',
  'part',
  'tags',
  'deployed_at',
];
const kt1Header = ['timestamp', 'solving_id', 'question_id', 'user_answer', 'elapsed_time'];

const santa: readonly FormatExample[] = [
  {
    title: 'EdNet KT1, one file per learner',
    format: 'ednet-kt1',
    files: {
      'KT1/u1.csv': csv([
        kt1Header,
        ['1565332027449', '1', 'q1', 'b', '45000'],
        ['1565332057492', '2', 'q2', '', '24000'],
      ]),
      'KT1/u2.csv': csv([kt1Header, ['1565332100000', '1', 'q1', 'a', '500']], ',', '\r\n'),
      'KT1/u10.csv': csv([kt1Header, ['1565332200000', '1', 'q3', 'a', '500']]),
      'KT1/notes.txt': 'no answers',
      'contents/questions.csv': csv([
        questionHeader,
        ['q1', 'b1', 'e1', 'b', '1', '1;2;179', '1558093217098'],
        ['q2', 'b2', 'e2', 'a', '1', '15', '1558093219720'],
        ['q3', 'b3', 'e3', 'a', '1', '-1', '1558093222784'],
      ]),
    },
    open: 'KT1',
    answers: [
      ['u1', ['1', '2', '179'], 1, 'q1', '2019-08-09T06:27:07.449Z', 45],
      ['u1', ['15'], 0, 'q2', '2019-08-09T06:27:37.492Z', 24],
      ['u2', ['1', '2', '179'], 0, 'q1', '2019-08-09T06:28:20.000Z', 0.5],
    ],
    leftOut: { 'item_id has no skill in the file of questions': 1 },
  },
  {
    title: 'Riiid, with lectures',
    format: 'riiid',
    files: {
      'train.csv': csv(
        table(
          (
            'row_id,timestamp,user_id,content_id,content_type_id,task_container_id,user_answer,answered_correctly,' +
            'prior_question_elapsed_time,prior_question_had_explanation'
          ).split(','),
          ...[
            ['0', '5692', '0', '1'],
            ['56943', '2', '1', '-1'],
            ['118363', '128', '0', '0'],
          ].map(([timestamp = '', content_id = '', content_type_id = '', answered_correctly = '']) => ({
            ...{ timestamp, user_id: '115', content_id, content_type_id, answered_correctly },
            prior_question_elapsed_time: '37000.0',
          })),
        ),
      ),
      'questions.csv': csv([
        ['question_id', 'bundle_id', 'correct_answer', 'part', 'tags'],
        ['5692', '5692', '3', '5', '151'],
        ['128', '128', '0', '1', '131 149 92'],
      ]),
    },
    open: 'train.csv',
    answers: [
      ['115', ['151'], 1, '5692', '1970-01-01T00:00:00.000Z', null],
      ['115', ['131', '149', '92'], 0, '128', '1970-01-01T00:01:58.363Z', null],
    ],
    leftOut: { 'lecture, which has no answer': 1 },
    warnings: [/Pass --start DATE/, /prior_question_elapsed_time is not used/],
  },
];

const junyi: readonly FormatExample[] = [
  {
    title: 'Junyi Academy 2015',
    format: 'junyi-2015',
    files: {
      'junyi_ProblemLog_original.csv': csv(
        table(
          (
            'user_id,exercise,problem_type,problem_number,topic_mode,suggested,review_mode,time_done,time_taken,' +
            'time_taken_attempts,correct,count_attempts,hint_used,count_hints,hint_time_taken_list,earned_proficiency,' +
            'points_earned'
          ).split(','),
          ...[
            ['1420714810324490', 'false', '0'],
            ['1420714800000000', 'true', '15'],
          ].map(([time_done = '', correct = '', time_taken = '']) => ({
            ...{ user_id: '12884', exercise: 'time_terminology', problem_type: 'analog', time_done, correct },
            ...{ time_taken, time_taken_attempts: '8&7' },
          })),
        ),
      ),
    },
    open: 'junyi_ProblemLog_original.csv',
    answers: [
      ['12884', ['time_terminology'], 1, 'time_terminology/analog', '2015-01-08T11:00:00.000Z', 15],
      ['12884', ['time_terminology'], 0, 'time_terminology/analog', '2015-01-08T11:00:10.324Z', 0],
    ],
  },
  {
    title: 'Junyi Academy 2018-2019, with times of a quarter hour',
    format: 'junyi-2019',
    files: {
      'Log_Problem.csv': csv([
        (
          'timestamp_TW,uuid,ucid,upid,problem_number,exercise_problem_repeat_session,is_correct,total_sec_taken,' +
          'total_attempt_cnt,used_hint_cnt,is_hint_used,is_downgrade,is_upgrade,level'
        ).split(','),
        [
          '2019-06-05 23:00:00 UTC',
          'U=',
          'c1',
          'p10',
          '10',
          '1',
          'True',
          '12',
          '1',
          '0',
          'False',
          '',
          '',
          '0',
        ],
        ['2019-06-05 23:00:00 UTC', 'U=', 'c1', 'p2', '2', '1', 'False', '8', '2', '0', 'False', '', '', '0'],
      ]),
    },
    open: 'Log_Problem.csv',
    answers: [
      ['U=', ['c1'], 0, 'p2', '2019-06-05T23:00:00.000Z', 8],
      ['U=', ['c1'], 1, 'p10', '2019-06-05T23:00:00.000Z', 12],
    ],
  },
];

const eediFiles: LogFiles = Object.fromEntries(
  // Both tasks count answers and questions from 0.
  (
    [
      ['1_2', '[3, 71, 98]', '2019'],
      ['3_4', '[3, 71, 99]', '2020'],
    ] as const
  ).flatMap(([task, subjects, year]) => [
    [
      `train_data/train_task_${task}.csv`,
      csv([
        ['QuestionId', 'UserId', 'AnswerId', 'IsCorrect', 'CorrectAnswer', 'AnswerValue'],
        ['0', '9', '1', '0', '2', '1'],
        ['0', '9', '0', '1', '2', '2'],
      ]),
    ],
    [
      `metadata/answer_metadata_task_${task}.csv`,
      csv([
        ['AnswerId', 'DateAnswered', 'Confidence', 'GroupId', 'QuizId', 'SchemeOfWorkId'],
        ['0', `${year}-02-03 10:36:00.000`, '75.0', '1', '2', ''],
        ['1', `${year}-02-04 10:36:00.000`, '', '1', '2', ''],
      ]),
    ],
    [
      `metadata/question_metadata_task_${task}.csv`,
      csv([
        ['QuestionId', 'SubjectId'],
        ['0', subjects],
      ]),
    ],
  ]),
);
const subjects = csv([
  ['SubjectId', 'Name', 'ParentId', 'Level'],
  ['3', 'Maths', 'NULL', '0'],
  ['71', 'Geometry and Measure', '3', '1'],
  ['98', 'Angles, basic', '71', '2'],
  ['99', 'Perimeter', '71', '2'],
]);

const eedi = (task: string, skill: string, year: string): FormatExample => ({
  title: `Eedi task ${task}, with the metadata of all tasks`,
  format: 'eedi-2020',
  files: { ...eediFiles, 'metadata/subject_metadata.csv': subjects },
  open: `train_data/train_task_${task}.csv`,
  answers: [
    ['9', [skill], 1, '0', `${year}-02-03T10:36:00.000Z`, null],
    ['9', [skill], 0, '0', `${year}-02-04T10:36:00.000Z`, null],
  ],
});

const duolingo: FormatExample = {
  title: 'Duolingo, with counts per session',
  format: 'duolingo-hlr',
  files: {
    'learning_traces.csv': csv(
      table(
        (
          'p_recall,timestamp,delta,user_id,learning_language,ui_language,lexeme_id,lexeme_string,history_seen,' +
          'history_correct,session_seen,session_correct'
        ).split(','),
        ...[
          ['1362082032', '2', '2', 'ser~~v'],
          ['1362076081', '3', '1', '76390c'],
        ].map(([timestamp = '', session_seen = '', session_correct = '', lexeme_id = '']) => ({
          ...{ timestamp, user_id: 'u:FO', lexeme_id, lexeme_string: 'lernt/lernen<vblex>' },
          ...{ history_seen: '6', history_correct: '4', session_seen, session_correct },
        })),
      ),
    ),
  },
  open: 'learning_traces.csv',
  answers: [
    ...([0, 0, 1] as const).map(
      (correct): ExpectedAnswer => ['u:FO', ['76390c'], correct, null, '2013-02-28T18:28:01.000Z', null],
    ),
    ...([1, 1] as const).map(
      (correct): ExpectedAnswer => ['u:FO', ['ser~~v'], correct, null, '2013-02-28T20:07:12.000Z', null],
    ),
  ],
  warnings: [/Wrong answers are placed before right ones/],
};

export const formatExamples: readonly FormatExample[] = [
  ...own,
  ...dataShop,
  ...assistments,
  ...santa,
  ...junyi,
  eedi('1_2', 'Angles, basic', '2019'),
  eedi('3_4', 'Perimeter', '2020'),
  duolingo,
];
