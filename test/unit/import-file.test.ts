import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { maxLineBytes, openAnswerFile, readPages } from '../../src/cli/import/answer-file.js';
import type { RawRow } from '../../src/services/import/rows.js';
import { tempDir } from '../support/temp.js';

async function rowsOf(t: TestContext, content: string | Buffer): Promise<RawRow[]> {
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

test('CSV with a byte order mark, CRLF, quotes, blank lines and a column of no meaning', async (t) => {
  const text = `\uFEFF${header}\r\na,9,s,1\r\n\r\n"b,""c""",9,s,1\r\nd"e,"x\ny",s,1\r\nf,9,s,1`;
  const expected = [row(2, 'a'), row(4, 'b,"c"'), row(6, 'd"e'), row(7, 'f')];
  assert.deepEqual(await rowsOf(t, text), expected);
  assert.deepEqual(await rowsOf(t, gzipSync(text)), expected, 'gzip is known by its content');
  const halves = [gzipSync(text.slice(0, 30)), gzipSync(text.slice(30))];
  assert.deepEqual(await rowsOf(t, Buffer.concat(halves)), expected, 'gzip in several parts');
});

test('a row that is too short or too long is told apart', async (t) => {
  const rows = await rowsOf(t, `${header}\na,9,s\nb,9,s,1,2\nc,9,s,1\n`);
  assert.match(String(rows[0]?.fields), /3 fields, the header has 4/);
  assert.match(String(rows[1]?.fields), /5 fields/);
  assert.deepEqual(rows[2], row(4, 'c'));
});

test('NDJSON, line by line', async (t) => {
  const line = '{"user_id":"a","skill_id":"s","correct":true}';
  const long = `{"user_id":"${'x'.repeat(maxLineBytes)}"}`;
  const rows = await rowsOf(t, `${line}\r\n\n[1]\n{"user_id":\n${long}\n${line}`);
  const fields = { user_id: 'a', skill_id: 's', correct: true };
  assert.deepEqual(rows, [
    { line: 1, fields },
    { line: 3, fields: 'not a JSON object' },
    { line: 4, fields: 'not valid JSON' },
    { line: 5, fields: 'the line is too long' },
    { line: 6, fields },
  ]);
});

test('a file that cannot be read to its end is refused in words', async (t) => {
  const gzip = gzipSync(
    `${header}\n${Array.from({ length: 5000 }, () => `${Math.random()},1,s,1`).join('\n')}`,
  );
  const damaged = Buffer.from(gzip);
  damaged.fill(0xff, 20_000, 20_100);
  const refused: [string | Buffer, RegExp][] = [
    ['', /is empty/],
    ['\n\n', /is empty/],
    ['a,b\n1,2\n', /missing: user_id, skill_id, correct/],
    [`${header},correct\n`, /the column correct is there twice/],
    [gzip.subarray(0, gzip.length - 20), /gzip is damaged or cut off/],
    [damaged, /gzip is damaged or cut off/],
    [`${header}\na,"9,s,1\nb,9,s,1\n`, /line 3: a quoted field does not end/],
    [`${header}\na,"9,s,1\n${'b,9,s,1\n'.repeat(200_000)}`, /a quoted field does not end/],
  ];
  for (const [content, message] of refused)
    await assert.rejects(rowsOf(t, content), { name: 'StartError', message });
  assert.throws(() => openAnswerFile('/nowhere/answers.csv'), {
    name: 'StartError',
    message: /cannot be read/,
  });
  assert.throws(() => openAnswerFile('/'), { name: 'StartError', message: /is not a file/ });
});
