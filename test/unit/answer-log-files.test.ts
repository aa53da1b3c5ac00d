/** Containers, text formats and damaged files of answer logs. Each opened file starts two engine processes. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { maxLineBytes } from '../../src/cli/answer-log/engine-rows.js';
import { openAnswerLog } from '../../src/cli/answer-log/open-log.js';
import { quoteLiteral } from '../../src/embedded/clickhouse/sql.js';
import { indices } from '../../src/lists.js';
import { anyId } from '../support/builders/arbitraries.js';
import { runLocalStatement } from '../support/builders/local-statement.js';
import { csv, formatExamples } from '../support/builders/log-formats.js';
import { assertAsync, fc } from '../support/builders/properties.js';
import { buildZip } from '../support/builders/zip.js';
import {
  parseReadOptions,
  profileFile,
  readRows,
  writeFiles,
  writeLog,
} from '../support/commands/answer-logs.js';
import { childrenOf } from '../support/servers/processes.js';
import { tempDir } from '../support/temp.js';

type Rows = Awaited<ReturnType<typeof readRows>>;

/** Line, and the answer's learner and skills or the problem. */
const summarize = (rows: Rows): (readonly [line: number, content: string])[] =>
  rows.map(({ row }) => [
    row.line,
    row.answer === null ? row.message : `${row.answer.userId} ${row.answer.skillIds.join('~~')}`,
  ]);

const header = 'user_id,note,skill_id,correct';

const exampleOf = (name: string) => formatExamples.find(({ format }) => format === name) ?? assert.fail(name);

/** The content in all containers that this machine can write. */
function buildContainers(text: string): Record<string, Buffer> {
  const { status, stdout: zstd } = spawnSync('zstd', ['-c'], { input: text });
  return {
    plain: Buffer.from(text),
    'gzip in two parts': Buffer.concat([gzipSync(text.slice(0, 30)), gzipSync(text.slice(30))]),
    zip: buildZip({ '__MACOSX/._answers.csv': 'no text', 'data/answers.csv': text }),
    ...(status === 0 && { zstd }),
  };
}

test('Reads CSV with a byte order mark, CRLF, quotes, blank lines, plain and compressed', async (t) => {
  const text = `\uFEFF${header}\r\na,9,s,1\r\n\r\n"b,""c""",9,s,1\r\nd"e,"x\ny",s,1\r\n'f,9, "s" ,1`;
  for (const [container, content] of Object.entries(buildContainers(text))) {
    const rows = await readRows(await writeLog(t, content));
    const expected = [
      [2, 'a s'],
      [4, 'b,"c" s'],
      [6, 'd"e s'],
      [7, "'f s"],
    ];
    assert.deepEqual(summarize(rows), expected, container);
    assert.deepEqual(
      rows.map(({ place }) => place),
      [2, 4, 6, 7],
    );
  }
});

test('Places increase, also of invalid rows between answers, so that an import resumes without a gap', async (t) => {
  const valid = ['a,9,s,1', 'b,9,s,0'];
  const lines = indices(30).map((i) => (i % 3 === 2 ? 'c,9,s,x' : valid[i % 3]));
  const { files, open } = exampleOf('assistments-2009');
  const plain = await writeLog(t, `${header}\n${lines.join('\n')}\n`);
  for (const path of [plain, join(await writeFiles(t, files), open)]) {
    const places = (await readRows(path)).map(({ place }) => place);
    assert.deepEqual(
      places,
      [...new Set(places)].sort((x, y) => x - y),
    );
  }
});

test('Reports rows that are too short or too long, with their line, and continues', async (t) => {
  const rows = await readRows(await writeLog(t, `\n${header}\n\na,9,s\nb,9,s,1,2\nc,"9\n\n",s,x\nd,9,s,1\n`));
  assert.deepEqual(summarize(rows), [
    [4, 'the row has 3 fields, the header has 4'],
    [5, 'the row has 5 fields, the header has 4'],
    [8, 'correct "x" must be 1, 0, true or false; or pass --correct-values and --incorrect-values'],
    [9, 'd s'],
  ]);
});

test('Reads NDJSON line by line, and reports invalid lines', async (t) => {
  const line = '{"user_id":"a","skill_id":"s","correct":true}';
  const long = `{"user_id":"${'x'.repeat(maxLineBytes)}"}`;
  const text = `\uFEFF${line}\r\n\n[1]\n{"user_id":\n${long}\n{"user_id":"é\\ud800","skill_id":"s","correct":1}\n${line}`;
  const rows = await readRows(await writeLog(t, gzipSync(text)));
  assert.deepEqual(summarize(rows), [
    [1, 'a s'],
    [3, 'not a JSON object'],
    [4, 'not valid JSON'],
    [5, `the line is longer than ${maxLineBytes} bytes`],
    [6, 'user_id "é\\ud800" must be 1 to 128 characters without control characters'],
    [7, 'a s'],
  ]);
  const wide = `{"user_id":"${'é'.repeat(maxLineBytes / 2)}"}`;
  assert.deepEqual(summarize(await readRows(await writeLog(t, `${line}\nnull\n${wide}`))), [
    [1, 'a s'],
    [2, 'not a JSON object'],
    [3, `the line is longer than ${maxLineBytes} bytes`],
  ]);
});

test('Reads quotes and backslashes of tab-separated text as text, with any line ends', async (t) => {
  const text = 'user_id\tskill_id\tcorrect\tn\r\n"a\ts "x" y\t1\t10\r\nb\\n\ts\t1\t9\n\r\nc\ts\t1\t11';
  const path = await writeLog(t, text);
  const rows = await readRows(path);
  const sorted = await readRows(path, '--sort-by', 'n');
  assert.equal(sorted.map(({ row }) => row.line).join(' '), '3 2 5');
  assert.deepEqual(summarize(rows), [
    [2, '"a s "x" y'],
    [3, 'b\\n s'],
    [5, 'c s'],
  ]);
});

const texts = (unit: string, maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...unit), minLength: 1, maxLength });
const ids = fc.oneof(
  texts('",;|^\\\' aé😀~', 6),
  anyId.filter((id) => !id.includes('\uFFFD')),
);
const writtenRow = fc.record({ id: ids, note: texts('",;|^\t\r\n \u0000a', 6), isValid: fc.boolean() });

test('Reads back what a CSV writer wrote, with the lines of rejected rows', {
  timeout: 120_000,
}, async (t) => {
  const folder = await tempDir(t);
  const file = fc.record({
    rows: fc.array(writtenRow, { minLength: 40, maxLength: 200, size: 'max' }),
    delimiter: fc.constantFrom(',', ';', '|', '\t', '^'),
    lineEnd: fc.constantFrom('\n', '\r\n'),
  });
  let files = 0;
  const property = fc.asyncProperty(file, async ({ rows, delimiter, lineEnd }) => {
    const path = join(folder, `${files++}`);
    const write = (fields: string[]): string => csv([fields], delimiter, lineEnd);
    const lines = rows.map(({ id, note, isValid }) => write([id, note, id, isValid ? '1' : '?']));
    // A quote in the header makes quotes special in tab-separated text.
    await writeFile(
      path,
      write(['user_id', 'note', 'skill_id', 'correct']).replace('note', '"note"') + lines.join(''),
    );
    let line = 1;
    const expected = rows.map(({ id, isValid }, i) => {
      line += (lines[i] ?? '').split('\n').length - 1;
      return isValid ? [line, id, id] : [line];
    });
    const found = await readRows(path, '--delimiter', delimiter, '--skill-separator', '');
    assert.deepEqual(
      found.map(({ row: { line, answer } }) =>
        answer === null ? [line] : [line, answer.userId, ...answer.skillIds],
      ),
      expected,
    );
  });
  await assertAsync(property, { numRuns: 5 });
});

test('Parquet has typed columns, in order or sorted', async (t) => {
  const folder = await tempDir(t);
  const path = join(folder, "it's [a].parquet");
  const columns = `number AS id, concat('u', toString(number % 3)) AS user_id, ['s', 'it''s'] AS skill_ids, number % 2 = 0 AS correct,
    toDateTime64('2026-01-01 00:00:00.250', 3, 'UTC') - number AS ts, if(number % 2, NULL, number / 4) AS response_time_s,
    toFloat64(-number) AS rank`;
  await runLocalStatement(
    `INSERT INTO FUNCTION file(${quoteLiteral(join(folder, 'plain'))}, 'Parquet') SELECT ${columns} FROM numbers(20000)`,
  );
  await rename(join(folder, 'plain'), path);
  const rows = await readRows(path);
  assert.deepEqual(
    rows.map(({ row }) => row.line),
    indices(20_000).map((i) => i + 1),
  );
  const { row } = rows[2] ?? assert.fail();
  assert.deepEqual(row.answer, {
    ...{ userId: 'u2', skillIds: ['s', "it's"], isCorrect: true, itemId: null, order: null, fold: null },
    ...{ at: Date.UTC(2025, 11, 31, 23, 59, 58, 250), seconds: 0.5, difficulty: null },
  });
  assert.equal(rows[3]?.row.answer?.seconds, null);
  const [inMilliseconds] = await readRows(path, '--time-format', 'ms');
  assert.equal(inMilliseconds?.row.answer?.at, Date.UTC(2026, 0, 1, 0, 0, 0, 250), 'only for numeric times');
  await assert.rejects(
    readRows(path, '--columns', 'skill_ids=,skill_id=skill_ids'),
    /the column skill_ids has lists or structs, which only skill_ids can have/,
  );
  const sorted = await readRows(path, '--sort-by', 'rank');
  assert.deepEqual(
    sorted.slice(0, 3).map(({ place, row }) => [place, row.line, row.answer?.userId]),
    [
      [1, 20_000, 'u1'],
      [2, 19_999, 'u0'],
      [3, 19_998, 'u2'],
    ],
  );
});

test('Sorts numbers by value and other texts by bytes, and keeps the order of equal rows', async (t) => {
  const text = `user_id,skill_id,correct,n\n${['a,10', 'b,9', 'c,x', 'd,10', 'e,', 'f,1e1', 'g,Y']
    .map((row) => row.replace(',', ',s,1,'))
    .join('\n')}\n`;
  const path = await writeLog(t, text);
  const order = (await readRows(path, '--sort-by', 'n')).map(({ row }) => row.answer?.userId).join('');
  assert.equal(order, 'badfegc');
  const dates = 'user_id,skill_id,correct,t\na,s,1,3/4/2026 2:05 PM\nb,s,1,4/3/2026 2:05\nc,s,1,12/1/2025\n';
  const days = await writeLog(t, dates);
  const sortDays = async (format: string) =>
    (await readRows(days, '--sort-by', 't', '--time-format', format))
      .map(({ row }) => row.answer?.userId)
      .join('');
  assert.deepEqual([await sortDays('mdy'), await sortDays('dmy')], ['cab', 'cba']);
  await assert.rejects(readRows(path, '--sort-by', 'm'), /has no column "m" for --sort-by/);
});

test('The options name columns, encoding, delimiter, decimal sign and times', async (t) => {
  const text =
    'Schüler;Thema;Punkte;Wann;Dauer\nJürgen;Brüche + Größen;0,5;03.04.2026 12:00;1,5\nZoë;Brüche;0,4;4.4.2026;\n';
  const columns = 'user_id=Schüler,skill_id=Thema,correct=Punkte,ts=Wann,response_time_s=Dauer';
  const files = {
    'noten.csv': Buffer.from(text, 'latin1'),
    'mapping.json': JSON.stringify({
      columns: { user_id: 'Schüler', skill_id: 'Thema', correct: 'Punkte', ts: 'Wann' },
      ...{
        encoding: 'latin1',
        decimal: ',',
        min_score: 0.9,
        timezone: 'Europe/Berlin',
        skill_separator: ' + ',
      },
    }),
  };
  const folder = await writeFiles(t, files);
  const path = join(folder, 'noten.csv');
  const given = ['--min-score', '0.5', '--columns', 'response_time_s=Dauer'];
  const { first, log } = await profileFile(path, '--mapping', join(folder, 'mapping.json'), ...given);
  const [answer, another] = first;
  const missing = { itemId: null, order: null, fold: null, difficulty: null };
  assert.deepEqual(answer, {
    ...{ userId: 'Jürgen', skillIds: ['Brüche', 'Größen'], isCorrect: true, seconds: 1.5, ...missing },
    at: Date.UTC(2026, 3, 3, 10),
  });
  assert.deepEqual([another?.isCorrect, another?.seconds], [false, null]);
  assert.equal(log.format.name, 'custom');
  await assert.rejects(profileFile(path, '--columns', columns), {
    name: 'StartError',
    message: /line 1 is not valid UTF-8\. Pass --encoding/,
  });
  const utf8 = await writeLog(t, `Name;user_id;skill_id;correct\nZo\xeb;a;s;1\n`);
  await writeFile(utf8, Buffer.from('Name;user_id;skill_id;correct\nZo\xeb;a;s;1\nx;Zo\xeb;s;1\n', 'latin1'));
  await assert.rejects(
    profileFile(utf8),
    /line 3, column "user_id" is not valid UTF-8\. .*--encoding latin1/,
  );
  assert.equal((await profileFile(utf8, '--encoding', 'windows-1252')).first[1]?.userId, 'Zoë');
  await writeFile(utf8, 'user_id,skill_id,correct\nZo\uFFFD,s,1\n');
  assert.equal((await profileFile(utf8)).first[0]?.userId, 'Zo\uFFFD', 'valid UTF-8');
});

test('Options choose the format, the KC model, first attempts, originals and partial credit', async (t) => {
  const cases: [name: string, argv: string[], answers: number, skills: number, leftOut: object][] = [
    ['datashop-transactions', ['--first-attempts-only'], 3, 2, { 'not a first attempt': 2 }],
    ['datashop-transactions', ['--kc', 'Fine'], 4, 3, { 'skill_id is missing': 1 }],
    ['assistments-2009', ['--originals-only'], 3, 3, { 'scaffolding question': 1, 'skill_id is missing': 1 }],
    ['assistments-2012', ['--min-score', '0.25'], 3, 2, {}],
  ];
  for (const [name, argv, answers, skills, leftOut] of cases) {
    const { files, open } = exampleOf(name);
    const { profile } = await profileFile(join(await writeFiles(t, files), open), ...argv);
    assert.deepEqual(
      [profile.answers, profile.skills, profile.leftOut],
      [answers, skills, leftOut],
      argv.join(' '),
    );
  }
});

test('Reads a table with 1,500 columns', async (t) => {
  const others = indices(1500).map((i) => `c${i}`);
  const rows = [`u,${others.join()},s,1`, `u,${others.join()},s`];
  const path = await writeLog(t, `user_id,${others.join()},skill_id,correct\n${rows.join('\n')}\n`);
  assert.deepEqual(summarize(await readRows(path)), [
    [2, 'u s'],
    [3, 'the row has 1502 fields, the header has 1503'],
  ]);
});

/** The engine reads truncated zstd without an error. Several blocks of data are whole. */
function zstdCases(message: RegExp): [content: Buffer, message: RegExp][] {
  const users = indices(20_000).map((i) => `${Math.sin(i)}`);
  const csv = `${header}\n${users.map((user) => `${user},n,s,1\n`).join('')}`;
  const ndjson = users.map((user) => `{"user_id":"${user}","skill_id":"s","correct":1}\n`).join('');
  return [csv, csv.replaceAll(',', '\t'), ndjson].flatMap((content): [Buffer, RegExp][] => {
    const { status, stdout } = spawnSync('zstd', ['-c'], { input: content });
    return status === 0 ? [[stdout.subarray(0, stdout.length - 500), message]] : [];
  });
}

test('Rejects a damaged or unknown file with one error that names the remedy', {
  timeout: 120_000,
}, async (t) => {
  const lines = Array.from({ length: 5000 }, (_, i) => `${Math.sin(i)},n,s,${i % 2}`);
  const text = `${header}\n${lines.join('\n')}\n`;
  const gzip = gzipSync(text);
  const zip = buildZip({ 'answers.csv': text });
  const damaged = Buffer.from(gzip).fill(0xff, 20_000, 20_100);
  const parquet = Buffer.concat([Buffer.from('PAR1'), Buffer.alloc(2000, 7), Buffer.from('PAR1')]);
  const truncated = /answers: the compressed data is damaged or truncated\. Copy or download the file again$/;
  const cases: readonly (readonly [content: string | Buffer, message: RegExp, ...argv: string[]])[] = [
    ['', /answers is empty or truncated\. Pass a file with a header and a row for each answer$/],
    ['\n\n', /answers is empty or truncated\./],
    [
      'a,b\n',
      /line 1 matches no known format\. It has the columns a, b\.\nName the columns, for example --columns/,
    ],
    [
      'Student,Topic,Score\n',
      /for example --columns user_id="Student",skill_id="Topic",correct="Score", or pass --format/,
    ],
    [
      'user_id,correct\n',
      /line 1 lacks the columns skill_id \(format skilltrace\)\. Name them with --columns/,
    ],
    [`${header}\n`, /line 1 lacks the columns No \(--columns item_id\)/, '--columns', 'item_id=No'],
    [`${header},correct\n`, /line 1 has the column correct twice$/],
    [`${header}\n`, /has no KC model "X"\. It has none$/, '--kc', 'X'],
    [`${header}\n`, /--first-attempts-only does not apply to format skilltrace/, '--first-attempts-only'],
    [`"user_id,${header}\n`, /line 1 is no valid header\. Its quotes are not closed$/],
    [Buffer.from(`\uFEFF${text}`, 'utf16le'), /answers is UTF-16\. Convert it: iconv -f UTF-16 -t UTF-8/],
    [text.replaceAll('\n', '\r'), /answers ends lines with CR only\. Convert it: tr /],
    [`BZh9${text}`, /answers is compressed with bzip2\. Decompress it first/],
    ['[{"user_id":"a"}]', /answers is a JSON array\. Write one object per line: jq/],
    [buildZip({ 'xl/workbook.xml': '<x/>' }), /answers is an Excel file\. Save it as CSV$/],
    [Buffer.from('fd377a585a000004', 'hex'), /answers is compressed with xz\. Decompress it first/],
    [gzip.subarray(0, gzip.length - 20), truncated],
    [damaged, truncated],
    [zip.subarray(0, zip.length / 2), /answers: the archive is damaged or truncated/],
    ...zstdCases(truncated),
    [
      buildZip({ 'a.csv': text, 'b.csv': text }),
      /answers contains 2 files: a\.csv, b\.csv\. Extract it, and pass one of them$/,
    ],
    [parquet, /answers: the Parquet data is damaged\. Write the file again$/],
    [`${header}\na,"9,s,1\nb,9,s,1\n`, /answers: row 2 has an unclosed quote\. Double the quotes/],
    [gzipSync(`${header}\na,9,s,"1\nb,9,s,1`), /answers: row 2 has an unclosed quote/],
    [`${header}\n"a,9,s,1\n${'b,9,s,1\n'.repeat(200_000)}`, /answers: row 2 has an unclosed quote\./],
    [
      `${header}\na,9,s,1\na,"9"9,s,1\n`,
      /answers: row 3 has text after a closing quote, before "9,s,1"\. Double/,
    ],
    [`${header}\na,9,s,1\n${'x'.repeat(1_200_000)},9,s,1\n`, /answers: line 3/],
    ['x'.repeat(1_200_000), /answers: line 1/],
  ];
  for (const [content, message, ...argv] of cases)
    await assert.rejects(profileFile(await writeLog(t, content), ...argv), { name: 'StartError', message });
});

test('Skips an empty file of EdNet, and joins no times without the id of the answers', async (t) => {
  const [kt1, eedi] = [exampleOf('ednet-kt1'), exampleOf('eedi-2020')];
  const empty = await writeFiles(t, { ...kt1.files, [`${kt1.open}/u0.csv`]: '' });
  assert.ok((await profileFile(join(empty, kt1.open))).profile.answers > 0);
  const log = 'QuestionId,UserId,IsCorrect\n1,2,1\n';
  const folder = await writeFiles(t, { ...eedi.files, [eedi.open]: log });
  const { profile, log: read } = await profileFile(join(folder, eedi.open), '--format', 'eedi-2020');
  assert.deepEqual([profile.rows, Object.keys(read.mapping.names)], [1, ['user_id', 'item_id', 'correct']]);
});

test('Explains which files of a data set are missing, and which paths are no file', async (t) => {
  const kt1 = Object.entries(exampleOf('ednet-kt1').files).filter(([name]) => name.startsWith('KT1'));
  const [, ...others] = Object.entries(exampleOf('eedi-2020').files).filter(
    ([name]) => !/answer_metadata/.test(name),
  );
  const folder = await writeFiles(t, {
    ...Object.fromEntries(kt1),
    ...Object.fromEntries(others.map(([name, content]) => [`eedi/${name}`, content])),
    'empty/readme.txt': '',
  });
  for (const [path, message] of [
    [
      join(folder, 'KT1'),
      /KT1 needs questions\.csv\. Put that file of the data set into .*KT1 or the folder above it$/,
    ],
    [join(folder, 'eedi/train_data/train_task_3_4.csv'), /needs answer_metadata_task_3_4\.csv/],
    [join(folder, 'empty'), /is a folder without u\*\.csv\. Pass a file, or the folder KT1 of EdNet$/],
    ['/nowhere/answers.csv', /^\/nowhere\/answers\.csv cannot be read: no such file$/],
    ['/dev/null', /is not a file$/],
  ] as const)
    await assert.rejects(profileFile(path), { name: 'StartError', message });
});

test('Engine processes end, and their folders are removed, also after an early stop or an error', async (t) => {
  const folder = await tempDir(t);
  const before = process.env.TMPDIR;
  t.after(() => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  });
  const text = `${header}\n${'a,9,s,1\n'.repeat(200_000)}`;
  const [whole, cut] = [await writeLog(t, text), await writeLog(t, gzipSync(text).subarray(0, 300))];
  process.env.TMPDIR = folder;
  const log = await openAnswerLog(whole, parseReadOptions());
  for await (const { rows } of log.readPages(Date.now(), () => undefined)) {
    assert.ok(rows.length > 0 && rows.length < 100_000);
    assert.equal(childrenOf(process.pid, folder).length, 1);
    assert.equal((await readdir(folder)).length, 1);
    break;
  }
  await assert.rejects(readRows(cut), /truncated/);
  assert.deepEqual(childrenOf(process.pid, folder), []);
  assert.deepEqual(await readdir(folder), []);
});
