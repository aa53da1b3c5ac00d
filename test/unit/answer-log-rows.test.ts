/** Rules of answer logs that need no file. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { customFormat, logFormats } from '../../src/services/answer-log/formats.js';
import { createRowReader, type LogRow } from '../../src/services/answer-log/log-rows.js';
import { mapColumns } from '../../src/services/answer-log/map-columns.js';
import { createRowMerger } from '../../src/services/answer-log/merge.js';
import { buildWarnings, createProfile } from '../../src/services/answer-log/profile.js';
import type { FileAnswer, RawFields } from '../../src/services/answer-log/rows.js';
import { createTimeParser, type TimeFormat } from '../../src/services/answer-log/times.js';
import { parseReadOptions } from '../support/commands/answer-logs.js';

const now = Date.UTC(2026, 4, 31, 12);
const findFormat = (wanted: string) => logFormats.find(({ name }) => name === wanted) ?? assert.fail();
const skilltraceFormat = findFormat('skilltrace');
const valid = { user_id: 'u', skill_id: 's', correct: '1' };

/** Reads one row. The columns have the names of Skilltrace. */
function readRow(fields: RawFields, argv: readonly string[] = [], format = skilltraceFormat): LogRow[] {
  const options = parseReadOptions(...argv);
  const header = Object.keys(fields);
  const mapping = mapColumns(header, { ...format, columns: skilltraceFormat.columns }, options);
  const reader = createRowReader({ format, mapping, options, questions: null, now });
  const values: Record<string, unknown> = fields;
  return reader.read(
    7,
    reader.places.map((place) => values[header[place] ?? '']),
  );
}

function readAnswer(fields: RawFields, ...argv: readonly string[]): FileAnswer {
  const [row] = readRow({ ...valid, ...fields }, argv);
  assert.ok(row?.answer, row?.answer === null ? row.message : 'no row');
  return row.answer;
}

const absent = { itemId: null, at: null, seconds: null, order: null, fold: null, difficulty: null };

test('A row becomes an answer', () => {
  const fields = { item_id: 'i', response_time_s: '12.75', ts: '1000.5', order: '-0', fold: '3' };
  assert.deepEqual(readAnswer({ ...fields, question_difficulty: '-3' }), {
    ...{ userId: 'u', skillIds: ['s'], isCorrect: true, itemId: 'i' },
    ...{ at: 1_000_500, seconds: 12.75, order: 0, fold: 3, difficulty: -3 },
  });
});

test('Skills are joined or a list', () => {
  const several: readonly [fields: RawFields, skillIds: readonly string[]][] = [
    [{ skill_id: 'b~~a' }, ['b', 'a']],
    [{ skill_id: '', skill_ids: '["b","a~~c", 7]' }, ['b', 'a~~c', '7']],
    [{ skill_id: null, skill_ids: ['b'] }, ['b']],
    [{ skill_id: '', skill_ids: String.raw`['b','it\'s \\']` }, ['b', "it's \\"]],
  ];
  for (const [fields, skillIds] of several) assert.deepEqual(readAnswer(fields).skillIds, skillIds);
  assert.deepEqual(readAnswer({ skill_id: 'a;b~~c' }, '--skill-separator', ';').skillIds, ['a', 'b~~c']);
  assert.deepEqual(readAnswer({ skill_id: 'a~~b' }, '--skill-separator', '').skillIds, ['a~~b']);
});

test('Empty, null and missing fields are absent', () => {
  for (const value of ['', null, undefined]) {
    const fields = { item_id: value, response_time_s: value, ts: value, order: value, fold: value };
    assert.deepEqual(readAnswer(fields), { userId: 'u', skillIds: ['s'], isCorrect: true, ...absent });
  }
});

test('Results have common spellings, or the options list them', () => {
  for (const correct of ['1', '1.0', 'true', 'TRUE', ' 1 ', 1, true, 'T', 'Correct', 'y', 'YES'])
    assert.equal(readAnswer({ correct }).isCorrect, true, `${correct}`);
  for (const correct of [
    '0',
    '0.0',
    '-0',
    'false',
    'False',
    0,
    false,
    'f',
    'INCORRECT',
    'wrong',
    'n',
    'no',
    'Hint',
  ])
    assert.equal(readAnswer({ correct }).isCorrect, false, `${correct}`);
  const values = ['--correct-values', 'OK, richtig', '--incorrect-values', 'BUG'];
  assert.equal(readAnswer({ correct: 'Richtig' }, ...values).isCorrect, true);
  assert.equal(readAnswer({ correct: 'bug' }, ...values).isCorrect, false);
  assert.match(problemOf({ correct: '1' }, ...values), /^correct "1" must be/);
  assert.equal(readAnswer({ correct: '0' }, '--correct-values', 'OK').isCorrect, false);
  assert.deepEqual(
    ['0.59', '0.6', '1', '100', '0'].map(
      (correct) => readAnswer({ correct }, '--min-score', '0.6').isCorrect,
    ),
    [false, true, true, true, false],
  );
  assert.equal(readAnswer({ correct: '0,7' }, '--min-score', '0.6', '--decimal', ',').isCorrect, true);
  assert.equal(readAnswer({ correct: '1' }, '--min-score', '60').isCorrect, false, 'a scale from 0 to 100');
});

test('Numbers have a decimal point or comma', () => {
  const fields = { response_time_s: '12,75', order: '1,5', question_difficulty: '-0,5' };
  const { seconds, order, difficulty } = readAnswer(fields, '--decimal', ',');
  assert.deepEqual([seconds, order, difficulty], [12.75, 1.5, -0.5]);
  assert.match(problemOf(fields), /^response_time_s "12,75" must be a number from 0 to 86400$/);
});

test('Times are numbers of a unit, RFC 3339, ISO 8601 without a zone, or have the year last', () => {
  const noon = Date.UTC(2026, 2, 4, 12);
  const hour = 3_600_000;
  const times: readonly [text: string | number, at: number | null, format?: TimeFormat, zone?: string][] = [
    ['2026-03-04T12:00:00Z', noon],
    ['2026-03-04t14:00:00+02:00', noon],
    ['2026-03-04 12:00:00 UTC', noon],
    ['2026-03-04 12:00:00.0', noon],
    ['2026-03-04 14:00:00+02', noon],
    ['2026-3-4 12:00', noon],
    ['2026/03/04 12:00:00', noon],
    ['2026-03-04', noon - 12 * hour],
    [' 2026-03-04 12:00:00 ', noon],
    ['2026-03-04T12:00:00', noon - hour, 'auto', 'Europe/Berlin'],
    ['2026-07-04T12:00:00', Date.UTC(2026, 6, 4, 10), 'auto', 'Europe/Berlin'],
    ['2026-03-04T12:00:00Z', noon, 'auto', 'Europe/Berlin'],
    ['2026-03-29T03:30:00', Date.UTC(2026, 2, 29, 1, 30), 'auto', 'Europe/Berlin'],
    [noon / 1000, noon],
    [`${noon / 1000 + 0.25}`, noon + 250],
    [noon, noon],
    [noon * 1000, noon],
    [90, 90_000],
    [90, 90, 'ms'],
    [noon, noon, 'ms'],
    ['1500', 2, 'us'],
    [noon / 1000, noon, 's'],
    ['04.03.2026 12:00', noon],
    ['4.3.2026', noon - 12 * hour],
    ['4.3.2026 12:00', Date.UTC(2026, 3, 3, 12), 'mdy'],
    ['3/4/2026 12:00:00 PM', noon, 'mdy'],
    ['3/4/2026 12:00:00 am', noon - 12 * hour, 'mdy'],
    ['03/04/2026, 12:00', noon, 'mdy'],
    ['04/03/2026 12:00', noon, 'dmy'],
    ['04-03-2026T12:00:00Z', noon, 'dmy'],
    ['3/4/2026', null],
    ['13/14/2026', null, 'mdy'],
    ['2026-02-30', null],
    ['2026-00-10', null],
    ['31.04.2026', null],
    ['2026-03-04 24:01', null],
    ['2026-03-04 12:60', null],
    ['12:00', null],
    ['yesterday', null],
  ];
  for (const [text, at, format = 'auto', zone = 'UTC'] of times)
    assert.equal(createTimeParser(format, zone, 0)(text), at, `${text} ${format} ${zone}`);
  const start = Date.UTC(2005, 7, 1);
  for (const [ts, at] of [
    ['86400.25', start + 86_400_250],
    ['1e3', start + 1_000_000],
    ['2005-08-01T00:00:01Z', start + 1000],
  ] as const)
    assert.equal(readAnswer({ ts }, '--start', '2005-08-01').at, at, ts);
});

function problemOf(fields: RawFields, ...argv: readonly string[]): string {
  const [row] = readRow({ ...valid, ...fields }, argv);
  assert.ok(row?.answer === null, JSON.stringify(fields));
  assert.equal(row.line, 7);
  assert.ok(!row.isFiltered);
  return row.message;
}

test('A rejected row names the column and the value', () => {
  const invalid: [RawFields, RegExp][] = [
    [{ user_id: '' }, /^user_id is missing$/],
    [{ skill_id: null }, /^skill_id is missing$/],
    [{ skill_id: 'a~~' }, /^skill_id "a~~" has an empty id$/],
    [{ skill_id: 'a~~b~~a' }, /^skill_id "a~~b~~a" has a skill twice$/],
    [
      { skill_id: 'abcdefghijk'.split('').join('~~') },
      /^skill_id "a~~b~~c~~d~~e~~f~~g~~h~~i~~j~~k" has more than 10 skills$/,
    ],
    [{ skill_ids: ['a'] }, /^skill_id and skill_ids exclude each other$/],
    [{ skill_id: '', skill_ids: [] }, /^skill_ids is missing$/],
    [{ skill_id: '', skill_ids: 'a,b' }, /^skill_ids "a,b" must be a JSON list of ids$/],
    [{ skill_id: '', skill_ids: "['a',b]" }, /must be a JSON list of ids$/],
    [{ skill_id: '', skill_ids: { a: 1 } }, /^skill_ids \{"a":1\} must be a JSON list of ids$/],
    [{ skill_id: '', skill_ids: ['a', null] }, /^skill_ids \["a",null\] has an empty id$/],
    [{ user_id: 'a\tb' }, /^user_id "a\\tb" must be 1 to 128/],
    [{ user_id: 'a'.repeat(129) }, /^user_id .{60,70}\.\.\. must be 1 to 128/],
    [{ skill_id: 'a\uD800' }, /^skill_id/],
    [{ user_id: { a: 1 } }, /^user_id .* must be a string/],
    [{ user_id: 1.5 }, /^user_id 1.5 must be a string/],
    [{ correct: '' }, /^correct is missing$/],
    [
      { correct: 'maybe' },
      /^correct "maybe" must be 1, 0, true or false; or pass --correct-values and --incorrect-values$/,
    ],
    [{ correct: '0.5' }, /^correct "0.5" must be .*; or pass --min-score for partial credit$/],
    [{ response_time_s: '-1' }, /^response_time_s/],
    [{ response_time_s: '86400.1' }, /^response_time_s/],
    [{ response_time_s: 'NaN' }, /^response_time_s/],
    [{ response_time_s: '0x10' }, /^response_time_s/],
    [{ order: 'first' }, /^order "first" must be a number/],
    [{ fold: '1.5' }, /^fold "1.5" must be an integer$/],
    [{ fold: '65535' }, /^fold/],
    [{ question_difficulty: '3.1' }, /^question_difficulty "3.1" must be a number from -3 to 3$/],
    [{ ts: 'yesterday' }, /^ts "yesterday" must be a number, RFC 3339 .*; or pass --time-format mdy or dmy$/],
    [{ ts: '-1' }, /^ts "-1" must be in 1970 or later/],
    [{ ts: '2026-05-31T12:06:00Z' }, /^ts .* at most 5 minutes/],
    [{ ts: '1e300' }, /^ts/],
  ];
  for (const [fields, message] of invalid) assert.match(problemOf(fields), message, JSON.stringify(fields));
});

test('Ids and times of other systems are trimmed, shortened or left out instead of rejected', () => {
  const read = (fields: RawFields) => {
    const [row] = readRow({ ...valid, ...fields }, [], customFormat);
    assert.ok(row?.answer, JSON.stringify(row));
    return row.answer;
  };
  const long = 'é'.repeat(200);
  const { userId, skillIds, seconds } = read({
    user_id: ` ${long} `,
    skill_id: 'a~~~~ a ',
    response_time_s: '-3',
  });
  assert.match(userId, /^é{111}~[0-9a-f]{16}$/);
  assert.notEqual(read({ user_id: `${long}2` }).userId, userId);
  assert.deepEqual([skillIds, seconds], [['a'], null]);
  for (const mark of ['NA', '.', 'NULL', 'nan', '\\N', 'None'])
    assert.deepEqual(read({ item_id: mark, ts: mark, response_time_s: mark, order: mark }), {
      ...{ userId: 'u', skillIds: ['s'], isCorrect: true },
      ...absent,
    });
  const [missing] = readRow({ ...valid, skill_id: 'NA' }, [], customFormat);
  assert.ok(missing?.answer === null && missing.message === 'skill_id is missing');
  assert.equal(readAnswer({ item_id: 'NA' }).itemId, 'NA', 'an id of Skilltrace');
});

const duolingo = findFormat('duolingo-hlr');

test('A row with counts becomes that many answers', () => {
  const header = ['user_id', 'lexeme_id', 'session_seen', 'session_correct', 'timestamp'];
  const options = parseReadOptions();
  const mapping = mapColumns(header, duolingo, options);
  const reader = createRowReader({ format: duolingo, mapping, options, questions: null, now });
  const read = (...values: string[]) =>
    reader.read(
      4,
      reader.places.map((place) => values[place]),
    );
  const rows = read('u', 's', '3', '2', '5');
  assert.deepEqual(
    rows.map(({ line, answer }) => [line, answer?.isCorrect, answer?.at]),
    [false, true, true].map((isCorrect) => [4, isCorrect, 5000]),
  );
  assert.deepEqual(read('u', 's', '0', '0', '5'), []);
  for (const [seen, right, message] of [
    ['1', '2', 'right 2 is larger than the number of answers'],
    ['10001', '2', 'seen "10001" must be a number from 0 to 10000'],
  ] as const) {
    const [row, another] = read('u', 's', seen, right, '5');
    assert.deepEqual([row?.answer, another], [null, undefined]);
    assert.ok(row?.answer === null && row.message === message);
  }
});

const answer = (changes: Partial<FileAnswer> = {}): FileAnswer => ({
  ...{ userId: 'u', skillIds: ['s'], isCorrect: true, ...absent },
  ...changes,
});
const rejected = (line: number): LogRow => ({ line, answer: null, reason: 'r', message: 'm' });

test('createRowMerger joins consecutive rows of one learner and key', () => {
  const merger = createRowMerger();
  const of = (line: number, skill: string, mergeKey: unknown, userId = 'u'): LogRow => ({
    line,
    answer: answer({ userId, skillIds: [skill] }),
    mergeKey,
  });
  const merged = [
    merger.add(of(1, 'a', '1')),
    merger.add(of(2, 'b', '1')),
    merger.add(of(3, 'a', '1')),
    merger.add(of(4, 'c', '1', 'v')),
    merger.add(rejected(5)),
    merger.add(of(6, 'c', '2', 'v')),
    merger.add(of(7, 'd', '')),
    merger.add(of(8, 'e', undefined)),
    ...'abcdefghijk'.split('').map((skill, i) => merger.add(of(10 + i, skill, '3'))),
    merger.flush(),
  ].flat();
  assert.deepEqual(
    merged.map((row) => [row.line, row.answer?.skillIds.join('') ?? (row.answer === null && row.message)]),
    [
      ...[
        [1, 'ab'],
        [5, 'm'],
        [4, 'c'],
        [6, 'c'],
        [7, 'd'],
        [8, 'e'],
      ],
      [10, 'skill_id has more than 10 skills'],
    ],
  );
  assert.deepEqual(createRowMerger().flush(), []);
});

test('The profile counts answers and warns of suspicious rows', () => {
  const profile = createProfile();
  const add = (changes: Partial<FileAnswer>, line: number) =>
    profile.add({ line, answer: answer({ itemId: 'i', ...changes }) });
  add({ at: 2000, order: 2 }, 1);
  add({ at: 2000, order: 2 }, 2);
  add({ at: 2000, order: 2, skillIds: ['t'] }, 3);
  add({ at: 1000, order: 1, skillIds: ['s', 't'], isCorrect: false }, 4);
  add({ userId: 'v', itemId: null, at: 9000 }, 5);
  add({ userId: 'v', itemId: null, at: 9000 }, 5);
  profile.add(rejected(6));
  profile.add(rejected(7));
  const found = profile.read(9);
  assert.deepEqual(found, {
    ...{ rows: 9, answers: 6, learners: 2, skills: 2, items: 1, severalSkills: 1, correctShare: 5 / 6 },
    ...{ from: 1000, to: 9000, invalid: 2, leftOut: { r: 2 }, backwards: { order: 1, time: 1 } },
    ...{ repeated: { same: 1, otherSkill: 1 }, rareSkills: 2 },
  });
  const expected = [
    /^1 rows are earlier .*--sort-by/,
    /^1 rows repeat/,
    /^1 rows differ .*~~/,
    /^The first time is 1970-01-01/,
    /^2 of 9 rows are invalid/,
    /^2 of 2 skills/,
  ];
  const warnings = buildWarnings(found);
  assert.equal(warnings.length, expected.length);
  for (const [i, pattern] of expected.entries()) assert.match(warnings[i] ?? '', pattern);
  const empty = createProfile().read(0);
  assert.deepEqual([empty.correctShare, empty.from, empty.to], [null, null, null]);
  assert.match(buildWarnings(empty).join(), /No row has a valid answer/);
});

test('mapColumns prefers the options, joins columns, and reports unused and missing ones', () => {
  const header = ['Student', 'Unit', 'Task', 'Score', 'When', 'Row', 'Time spent'];
  const map = (...argv: string[]) => mapColumns(header, customFormat, parseReadOptions(...argv));
  const columns = 'user_id=Student,skill_id=Unit+Task,correct=Score';
  const { names, positions, missing, warnings } = map('--columns', columns);
  assert.deepEqual(names, { user_id: 'Student', skill_id: 'Unit + Task', correct: 'Score' });
  assert.deepEqual(positions, { user_id: [0], skill_id: [1, 2], correct: [3] });
  assert.deepEqual(missing, []);
  assert.deepEqual(warnings, [
    'Column "Row" is not used. If it numbers the answers, pass --columns order="Row"',
  ]);
  assert.deepEqual(map('--columns', `${columns},item_id=Task,ts=Whenever`).missing, [
    { column: 'ts', text: 'Whenever' },
  ]);
  const own = ['user_id', 'skill_id', 'correct', 'question', 'created_date', 'elapsed_time'];
  assert.deepEqual(mapColumns(own, skilltraceFormat, parseReadOptions()).warnings, [
    'Column "question" is not used. If it identifies items, pass --columns item_id="question"',
    'Column "created_date" is not used. If it contains times, pass --columns ts="created_date"',
  ]);
  const without = mapColumns(
    [...own, 'item_id'],
    skilltraceFormat,
    parseReadOptions('--columns', 'item_id='),
  );
  assert.deepEqual([without.names.item_id, without.missing], [undefined, []]);
});
