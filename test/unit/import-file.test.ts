/** Arguments and answer files of `npm run import`. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { maxLineBytes, openAnswerFile, readPages } from '../../src/cli/import/answer-file.js';
import { importArguments } from '../../src/cli/import/import.js';
import type { RawRow } from '../../src/services/import/rows.js';
import { tempDir } from '../support/temp.js';

const parse = (...argv: string[]) => importArguments.read(argv);

test('npm run import parses its options', () => {
  const start = Date.UTC(2005, 7, 1);
  const defaults = { file: 'f', tenant: 'default', startMs: null, again: false, json: false };
  assert.deepEqual(parse('f'), defaults);
  assert.deepEqual(parse('f', '--start', '2005-08-01'), { ...defaults, startMs: start });
  assert.deepEqual(parse('--tenant=a~b', 'f', '--start=2005-08-01T02:00:00+02:00', '--again', '--json'), {
    ...{ file: 'f', tenant: 'a~b', startMs: start, again: true, json: true },
  });
  assert.equal(parse('--help'), null);
});

test('npm run import names an invalid option and its value', () => {
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
  ];
  for (const [argv, message] of invalid) assert.throws(() => parse(...argv), { name: 'StartError', message });
});

async function readRows(t: TestContext, content: string | Buffer): Promise<RawRow[]> {
  const path = join(await tempDir(t), 'answers');
  await writeFile(path, content);
  const rows: RawRow[] = [];
  for await (const page of readPages(openAnswerFile(path), () => undefined)) rows.push(...page);
  return rows;
}

const header = 'user_id,fold,skill_id,correct';
const row = (line: number, user_id: string, skill_id = 's', correct = '1') => ({
  line,
  fields: { user_id, skill_id, correct },
});

test('readPages reads CSV with a byte order mark, CRLF, quotes, blank lines and gzip', async (t) => {
  const text = `\uFEFF${header}\r\na,9,s,1\r\n\r\n"b,""c""",9,s,1\r\nd"e,"x\ny",s,1\r\nf,9,s,1`;
  const expected = [row(2, 'a'), row(4, 'b,"c"'), row(6, 'd"e'), row(7, 'f')];
  const parts = Buffer.concat([gzipSync(text.slice(0, 30)), gzipSync(text.slice(30))]);
  for (const content of [text, gzipSync(text), parts]) assert.deepEqual(await readRows(t, content), expected);
});

test('readPages reports CSV rows that are too short or too long, and continues', async (t) => {
  const rows = await readRows(t, `${header}\na,9,s\nb,9,s,1,2\nc,9,s,1\n`);
  assert.match(String(rows[0]?.fields), /3 fields, the header has 4/);
  assert.match(String(rows[1]?.fields), /5 fields/);
  assert.deepEqual(rows[2], row(4, 'c'));
});

test('readPages reads NDJSON line by line, and reports invalid lines', async (t) => {
  const line = '{"user_id":"a","skill_id":"s","correct":true}';
  const long = `{"user_id":"${'x'.repeat(maxLineBytes)}"}`;
  const rows = await readRows(t, `${line}\r\n\n[1]\n{"user_id":\n${long}\n${line}`);
  const fields = { user_id: 'a', skill_id: 's', correct: true };
  assert.deepEqual(rows, [
    { line: 1, fields },
    { line: 3, fields: 'not a JSON object' },
    { line: 4, fields: 'not valid JSON' },
    { line: 5, fields: `the line is longer than ${maxLineBytes} bytes` },
    { line: 6, fields },
  ]);
});

test('readPages rejects a file that is empty, damaged, cut off, or without the required columns', async (t) => {
  const lines = Array.from({ length: 5000 }, () => `${Math.random()},1,s,1`);
  const gzip = gzipSync(`${header}\n${lines.join('\n')}`);
  const damaged = Buffer.from(gzip).fill(0xff, 20_000, 20_100);
  const invalid: [string | Buffer, RegExp][] = [
    ['', /is empty/],
    ['\n\n', /is empty/],
    ['a,b\n1,2\n', /lacks the columns user_id, correct, skill_id or skill_ids/],
    [`${header},correct\n`, /has the column correct twice/],
    [gzip.subarray(0, gzip.length - 20), /gzip data is damaged or truncated/],
    [damaged, /gzip data is damaged or truncated/],
    [`${header}\na,"9,s,1\nb,9,s,1\n`, /line 3: unclosed quote/],
    [`${header}\na,"9,s,1\n${'b,9,s,1\n'.repeat(200_000)}`, /unclosed quote, or a record over 1 MiB/],
  ];
  for (const [content, message] of invalid)
    await assert.rejects(readRows(t, content), { name: 'StartError', message });
  for (const [path, message] of Object.entries({
    '/nowhere/answers.csv': /cannot be read/,
    '/': /not a file/,
  }))
    assert.throws(() => openAnswerFile(path), { name: 'StartError', message });
});
