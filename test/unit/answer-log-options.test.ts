/** Arguments of `npm run import`, and the options of all commands that read an answer log. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { describeReading } from '../../src/cli/answer-log/options.js';
import { importArguments } from '../../src/cli/import/import.js';
import { logFormats } from '../../src/services/answer-log/formats.js';
import { defaultReadOptions, type ReadOptions } from '../../src/services/answer-log/options.js';
import { parseReadOptions, writeFiles } from '../support/commands/answer-logs.js';

const parse = (...argv: string[]) => importArguments.read(argv);

test('npm run import parses its options', () => {
  const start = Date.UTC(2005, 7, 1);
  const options = defaultReadOptions;
  const flags = { again: false, json: false, dryRun: false };
  const defaults = { file: 'f', tenant: 'default', ...flags, options, roster: null };
  assert.deepEqual(parse('f'), defaults);
  assert.deepEqual(parse('f', '--start', '2005-08-01'), { ...defaults, options: { ...options, start } });
  assert.deepEqual(
    parse('--tenant=a~b', 'f', '--start=2005-08-01T02:00:00+02:00', '--again', '--json', '--dry-run'),
    { ...defaults, tenant: 'a~b', again: true, json: true, dryRun: true, options: { ...options, start } },
  );
  assert.equal(parse('--help'), null);
});

const given: readonly (readonly [argv: readonly string[], options: Partial<ReadOptions>])[] = [
  [['--format', 'auto'], {}],
  [['--format', 'riiid'], { format: 'riiid' }],
  [['--columns', 'user_id=A'], { columns: { user_id: 'A' } }],
  [
    ['--columns', 'user_id="Student, ID",ts=,correct=a=b,c'],
    { columns: { user_id: 'Student, ID', ts: '', correct: 'a=b,c' } },
  ],
  [['--kc', 'Default'], { kc: 'Default' }],
  [['--skill-separator', ''], { skillSeparator: '' }],
  [['--delimiter', 'tab', '--encoding', 'Latin1'], { delimiter: '\t', encoding: 'latin1' }],
  [['--decimal', ','], { decimal: ',' }],
  [['--time-format', 'dmy', '--timezone', 'europe/berlin'], { timeFormat: 'dmy', timezone: 'Europe/Berlin' }],
  [
    ['--correct-values', 'OK, Yes', '--incorrect-values', 'BUG'],
    { correctValues: ['OK', 'Yes'], incorrectValues: ['BUG'] },
  ],
  [['--min-score', '0.6'], { minScore: 0.6 }],
  [['--first-attempts-only', '--originals-only'], { firstAttemptsOnly: true, originalsOnly: true }],
  [['--sort-by', 'Row'], { sortBy: 'Row' }],
];

const findFormat = (wanted: string) => logFormats.find(({ name }) => name === wanted) ?? assert.fail();

test('The options say how to read a file, and identify the import', () => {
  const descriptions = new Set<string>();
  for (const [argv, options] of given) {
    const expected = { ...defaultReadOptions, ...options };
    assert.deepEqual(parseReadOptions(...argv), expected, argv.join(' '));
    descriptions.add(describeReading(expected, findFormat(expected.format ?? 'skilltrace'), []));
  }
  assert.equal(descriptions.size, given.length);
  assert.ok(descriptions.has(''), 'the defaults');
  const same = parseReadOptions(
    ...['--kc', 'A', '--timezone', 'UTC', '--time-format', 'auto', '--skill-separator', '~~'],
    ...['--encoding', 'utf-8', '--columns', 'user_id=user_id', '--start', '2026-01-01'],
  );
  assert.equal(describeReading(same, findFormat('skilltrace'), ['A', 'B']), '', 'the same as the defaults');
});

test('A mapping file has the options, and the command line takes precedence', async (t) => {
  const mapping = {
    columns: { user_id: 'A', correct: 'B' },
    ...{
      correct_values: ['OK', 'Yes'],
      min_score: 0.6,
      first_attempts_only: true,
      decimal: ',',
      delimiter: ';',
    },
  };
  const folder = await writeFiles(t, { 'mapping.json': JSON.stringify(mapping) });
  const argv = ['--mapping', join(folder, 'mapping.json'), '--columns', 'correct=C', '--delimiter', '|'];
  assert.deepEqual(parseReadOptions(...argv), {
    ...{ ...defaultReadOptions, columns: { user_id: 'A', correct: 'C' }, correctValues: ['OK', 'Yes'] },
    ...{ minScore: 0.6, firstAttemptsOnly: true, decimal: ',', delimiter: '|' },
  });
});

test('An invalid option is named with its value', async (t) => {
  const files = {
    'cut.json': '{',
    'list.json': 'null',
    'key.json': '{"colums": {}}',
    'column.json': '{"columns": {"user": "A"}}',
    'value.json': '{"decimal": ";"}',
    'type.json': '{"kc": {"a": 1}}',
    'true.json': '{"kc": true}',
    'flag.json': '{"originals_only": "yes"}',
  };
  const folder = await writeFiles(t, files);
  const nextWeek = new Date(Date.now() + 7 * 86_400_000).toISOString();
  const invalid: [string[], RegExp][] = [
    [[], /exactly one FILE/],
    [['a', 'b'], /exactly one FILE/],
    [['a', '--agian'], /--agian/],
    [['a', '--tenant', 'a:b'], /--tenant "a:b"/],
    [['a', '--start', 'May'], /--start "May" must be a date/],
    [['a', '--start', '2005-02-30'], /--start "2005-02-30" must be a date/],
    [['a', '--start', '1969-12-31'], /must be in 1970 or later/],
    [['a', '--start', nextWeek], /in the future/],
    [['a', '--format', 'csv'], /--format "csv" must be .*skilltrace/],
    [['a', '--columns', 'user=A'], /--columns "user" must be NAME=COLUMN, with a NAME of user_id, correct/],
    [['a', '--columns', 'user_id'], /--columns "user_id" must be NAME=COLUMN/],
    [['a', '--delimiter', ';;'], /--delimiter ";;" must be one ASCII character, or tab/],
    [['a', '--encoding', 'utf-16'], /--encoding "utf-16" must be utf-8, latin1, .*iconv/],
    [['a', '--decimal', ';'], /--decimal ";" must be/],
    [['a', '--time-format', 'ns'], /--time-format "ns" must be/],
    [['a', '--timezone', 'Berlin'], /--timezone "Berlin" must be an IANA time zone/],
    [['a', '--min-score', 'half'], /--min-score "half" must be a number/],
    [['a', '--mapping', join(folder, 'none.json')], /none\.json cannot be read as JSON: ENOENT/],
    [['a', '--mapping', join(folder, 'cut.json')], /cut\.json cannot be read as JSON/],
    [['a', '--mapping', join(folder, 'list.json')], /list\.json must be a JSON object/],
    [['a', '--mapping', join(folder, 'key.json')], /key\.json: unknown key "colums"/],
    [['a', '--mapping', join(folder, 'column.json')], /column\.json: columns "user" must be NAME=COLUMN/],
    [['a', '--mapping', join(folder, 'value.json')], /value\.json: decimal ";" must be/],
    [
      ['a', '--mapping', join(folder, 'type.json')],
      /type\.json: kc must be a text, a number, true or a list/,
    ],
    [['a', '--mapping', join(folder, 'true.json')], /true\.json: kc must be a text/],
    [['a', '--mapping', join(folder, 'flag.json')], /flag\.json: originals_only must be .* true/],
  ];
  for (const [argv, message] of invalid)
    assert.throws(() => parse(...argv), { name: 'StartError', message }, argv.join(' '));
});
