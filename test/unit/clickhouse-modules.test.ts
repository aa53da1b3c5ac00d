/** Parsing, guarding and describing of requests to the embedded ClickHouse, without the engine. */
import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { test } from 'node:test';
import { defaultAnalystLimits } from '../../src/contracts/settings/analyst-limits.js';
import { checkAnalystStatement, limitExpensiveBlocks } from '../../src/embedded/clickhouse/analyst-access.js';
import { buildAnalystAssignments } from '../../src/embedded/clickhouse/analyst-settings.js';
import { buildJob, selectLane } from '../../src/embedded/clickhouse/build-job.js';
import { toFailure } from '../../src/embedded/clickhouse/errors.js';
import { authenticate } from '../../src/embedded/clickhouse/http.js';
import { addAdvice } from '../../src/embedded/clickhouse/limit-advice.js';
import { buildOverrun, checkOverruns } from '../../src/embedded/clickhouse/overruns.js';
import { findResultFormat, parseInsertHead, quoteLiteral } from '../../src/embedded/clickhouse/sql.js';
import { createBlockJoiner, findStreamFormat } from '../../src/embedded/clickhouse/stream-formats.js';
import type { Overrun } from '../../src/embedded/start-clickhouse.js';

const limits = defaultAnalystLimits;

function build(query: Record<string, string>, body: string, isAnalyst = false) {
  const request = { headers: {}, method: 'POST', pathDatabase: null, defaultDatabase: 'skilltrace', id: 'x' };
  const options = { ...request, limits: isAnalyst ? limits : null, query: new URLSearchParams(query) };
  return buildJob(options, Buffer.from(body));
}

/** Fails if the work needs quadratic time. */
function assertLinear(work: () => void): void {
  const before = process.cpuUsage().user;
  work();
  assert.ok(process.cpuUsage().user - before < 5_000_000);
}

test('parseInsertHead splits an insert into target, settings with format, and rows', () => {
  const text =
    "-- note\nINSERT INTO `db`.t (a, `b`) SETTINGS x='it\\'s, y=1', async_insert = 0 FORMAT TSV\n1\t2\n";
  const head = parseInsertHead(text);
  assert.deepEqual(head && { ...head, rowsStart: text.slice(head.rowsStart) }, {
    into: '-- note\nINSERT INTO `db`.t (a, `b`)',
    format: "SETTINGS x='it\\'s, y=1', async_insert = 0 FORMAT TSV",
    rowsStart: '1\t2\n',
  });
  for (const into of ['insert into t', 'INSERT INTO t (* EXCEPT(a))']) {
    const expected = { into, format: 'format JSONEachRow', rowsStart: into.length + 19 };
    assert.deepEqual(parseInsertHead(`${into} format JSONEachRow`), expected);
  }
  for (const other of [
    'INSERT INTO t SELECT 1',
    'INSERT INTO t VALUES (1)',
    "INSERT INTO FUNCTION file('x') FORMAT TSV\n",
    'INSERT INTO t SETTINGS x=1; DROP TABLE t FORMAT TSV\n',
  ])
    assert.equal(parseInsertHead(other), null, other);
});

test('The parsers of statements need linear time for long lists, blanks and comments', () => {
  assertLinear(() => {
    parseInsertHead(`INSERT INTO t (${'a, '.repeat(20_000)}`);
    parseInsertHead(`INSERT INTO t${' '.repeat(60_000)}x`);
    parseInsertHead(`INSERT INTO t (a${' /**/'.repeat(12_000)}x`);
    parseInsertHead(`INSERT INTO t SETTINGS ${'a=1, '.repeat(12_000)}x`);
    selectLane('/**/'.repeat(16_000), true);
    selectLane(`${'/* * '.repeat(10_000)}1`, true);
    findStreamFormat(`FORMAT${'/**/ '.repeat(12_000)}(`, 'TSV', '');
    const formats = `${'FORMAT a '.repeat(12_000)}\nFORMAT${'\n'.repeat(60_000)}a${'\n;'.repeat(30_000)}(`;
    findStreamFormat(formats, 'TSV', '');
    for (const text of ['$1', "/*'", "'", '$a$b']) buildOverrun(text.repeat(200_000), 0);
  });
});

test('quoteLiteral and buildJob keep literals and parameters inside their quotes', () => {
  assert.equal(quoteLiteral("a'b\\c\0"), "'a\\'b\\\\c\\0'");
  const { assignments } = build({ param_p: "x', readonly=0" }, 'SELECT 1').job;
  assert.ok(assignments.includes("param_p = 'x\\', readonly=0'"));
  assert.throws(() => build({ 'param_p=1, q': 'x' }, 'SELECT 1'), /Unknown setting/);
});

test('buildJob chooses lane, database, insert and priority', () => {
  assert.equal(selectLane('/* a */ -- b\n select 1', false), 'read');
  assert.equal(selectLane('INSERT INTO t SELECT 1', false), 'write');
  assert.equal(selectLane('INSERT INTO t SELECT 1', true), 'analyst');
  const query = { query: 'INSERT INTO t FORMAT TSV', insert_deduplication_token: 'k' };
  const { job, lane } = build(query, '1\n');
  assert.deepEqual([lane, job.database], ['write', 'skilltrace']);
  assert.deepEqual([job.insert?.into, job.insert?.format], ['INSERT INTO t', 'FORMAT TSV']);
  assert.equal(Buffer.from(job.insert?.rows ?? []).toString(), '1\n');
  assert.ok(job.assignments.includes("insert_deduplication_token = 'k'"));
  assert.ok(job.assignments.includes('priority = 1'), 'analysts wait for inserts');
  const inBody = build({}, 'INSERT INTO t (a) FORMAT CSV\né\n').job.insert;
  assert.equal(Buffer.from(inBody?.rows ?? []).toString(), 'é\n');
});

test('buildAnalystAssignments accepts formats and lower limits, and rejects other settings', () => {
  const assign = (settings: Record<string, string>, rows = 0) =>
    buildAnalystAssignments(new Map(Object.entries(settings)), { ...limits, rows });
  assert.deepEqual(assign({}), [
    "max_execution_time = '60'",
    "max_memory_usage = '2147483648'",
    "max_block_size = '8192'",
    "max_joined_block_size_rows = '8192'",
    'priority = 2',
    'low_priority_query_wait_time_ms = 10',
  ]);
  const cases: [name: string, value: string, maxRows: number, assigned: string][] = [
    ['max_block_size', '100000000', 0, '8192'],
    ['max_threads', '500000', 0, `${availableParallelism()}`],
    ['max_threads', '1', 0, '1'],
    ['max_execution_time', '7', 0, '7'],
    ['max_execution_time', '-1', 0, '60'],
    ['max_execution_time', '61', 0, '60'],
    ['max_rows_to_read', '7', 0, '7'],
    ['max_rows_to_read', '0', 5, '5'],
    ['max_rows_to_read', '99', 5, '5'],
    ['max_rows_to_read', '4', 5, '4'],
    ['output_format_json_quote_64bit_integers', '1', 0, '1'],
  ];
  for (const [name, value, maxRows, assigned] of cases) {
    const found = assign({ [name]: value }, maxRows).filter((line) => line.startsWith(`${name} =`));
    assert.deepEqual(found, [`${name} = '${assigned}'`], `${name}=${value}`);
  }
  assert.equal(assign({ readonly: '2' }).length, 6);
  for (const name of ['readonly', 'output_format_schema', 'format_schema', 'format_template_row', 'priority'])
    assert.throws(() => assign({ [name]: '0' }), /readonly mode/, name);
});

test('toFailure returns code 1002 for an error that does not come from ClickHouse', () => {
  const body = 'Code: 1002. DB::Exception: odd (UNKNOWN_EXCEPTION)\n';
  assert.deepEqual(toFailure(new Error('odd')), { code: 1002, status: 500, body });
});

test('checkAnalystStatement reads statements token by token', () => {
  const tableFunctions = new Set(['file', 'url', 'numbers', 'format', 'cluster']);
  for (const text of [
    "SELECT 'INTO OUTFILE', '\\'file(1)', url, `settings` FROM numbers(3)",
    "SHOW SETTINGS LIKE 'x'",
    "SELECT format('{}', 1), default_kind FROM system.columns",
    '(SELECT 1) UNION ALL (SELECT 2)',
  ])
    assert.doesNotThrow(() => checkAnalystStatement(text, tableFunctions), text);
  for (const text of [
    "SELECT '\\\\', file('x')",
    "SELECT `file`('x')",
    'SELECT * APPLY(file) FROM t',
    "SELECT * FROM url('x')",
    "SELECT 1 INTO OUTFILE 'x'",
    'SELECT * FROM (SELECT 1 SETTINGS readonly = 0)',
    'DROP TABLE t',
    '`SELECT` 1',
    '',
  ])
    assert.throws(() => checkAnalystStatement(text, tableFunctions), /readonly mode/, text);
});

test('checkAnalystStatement removes paths from lists of columns, and leaves other asterisks', () => {
  const check = (text: string) =>
    checkAnalystStatement(text, new Set()).replaceAll(' EXCEPT (data_path, data_paths, metadata_path)', '!');
  for (const [text, expected] of [
    ['SELECT DISTINCT t.*, tuple(*), [*] FROM t', 'SELECT DISTINCT t.*!, tuple(*!), [*!] FROM t'],
    ['SELECT * EXCEPT a FROM t', 'SELECT *! EXCEPT a FROM t'],
    ["SELECT COLUMNS('a'), t.COLUMNS('b') FROM t", "SELECT COLUMNS('a')!, t.COLUMNS('b')! FROM t"],
    ['SELECT 1 + *, a * * AS b FROM t ORDER BY * ASC', 'SELECT 1 + *!, a * *! AS b FROM t ORDER BY *! ASC'],
    ["SELECT 2 * 3, a * b, (a) * 2, [1][1] * 2, '*' * A, NULL * 2, `by` * 2", null],
    ['SELECT count(*), COUNT(*) * 2, CASE WHEN 1 THEN 2 END * 2 FROM t', null],
  ] as const)
    assert.equal(check(text), expected ?? text);
  for (const text of [
    'SELECT data_path FROM t',
    'SELECT t.`data_paths` FROM t',
    'SELECT 1 FROM system.parts',
  ])
    assert.throws(() => check(text), /Not enough privileges/, text);
});

test('limitExpensiveBlocks asks for small blocks if a function makes rows expensive', () => {
  for (const text of ["editDistance('a', b)", "`repeat`('a', 9)", 'RANGE(9)', 'randomStringUTF8(9)'])
    assert.equal(limitExpensiveBlocks(`SELECT ${text}`).length, 2, text);
  for (const text of ['count(), range FROM t', 'arrayRanges(1)', "lower('repeat')", 'avg(distance)'])
    assert.deepEqual(limitExpensiveBlocks(`SELECT ${text}`), [], text);
});

test('checkOverruns rejects a similar statement for 10 min, and all analysts after three overruns', () => {
  const minute = 60_000;
  const statement = "SELECT /* a */ dear(x, 'a''b', 1), '\\'' FROM t -- b";
  const first = buildOverrun(statement, 0);
  assert.equal(first.query, "SELECT dear(x, '?', 1), '?' FROM t");
  const comments = "-- it's\n# it's\nSELECT /* ' */ 'ada' AS a, 'eve --'";
  assert.equal(buildOverrun(comments, 0).query, "SELECT '?' AS a, '?'");
  const check = (overruns: readonly Overrun[], text: string, at: number) => () =>
    checkOverruns(overruns, text, at);
  for (const similar of ["select dear(x,'z',22), $a$it's$a$\nfrom t", statement])
    assert.throws(
      check([first], similar, 9 * minute),
      /This query exceeded its time limit and could not be cancelled; try again in 60 s/,
    );
  assert.doesNotThrow(check([first], statement, 10 * minute));
  assert.doesNotThrow(check([first], 'SELECT 1', 0));
  const several = (count: number) =>
    Array.from({ length: count }, (_, i) => buildOverrun(`SELECT a${'b'.repeat(i)}`, i));
  assert.doesNotThrow(check(several(2), 'SELECT 1', 2));
  for (const [count, pauseMs] of [
    [3, 30_000],
    [4, 60_000],
    [7, 480_000],
    [8, 600_000],
    [20, 600_000],
  ] as const) {
    const end = count - 1 + pauseMs;
    assert.throws(
      check(several(count), 'SELECT 1', end - 1),
      /Several queries exceeded their time limits .*; try again in 1 s/,
    );
    assert.doesNotThrow(check(several(count), 'SELECT 1', end), `${count} overruns`);
  }
});

test('findStreamFormat names a format of rows, and null for documents and unclear formats', () => {
  const cases: [text: string, fallback: string, settings: string, expected: string | null][] = [
    ['SELECT 1', 'TabSeparated', '', 'tabseparated'],
    ["SELECT formatDateTime(x, '%Y')", 'CSVWithNames', '', 'csvwithnames'],
    ["SELECT 'FORMAT JSON'\nFORMAT ArrowStream;\n", 'JSON', '', 'arrowstream'],
    ['SELECT 1 -- FORMAT CSV\n FORMAT\nTSVWithNamesAndTypes', 'TSV', '', 'tsvwithnamesandtypes'],
    ["SELECT '--' FORMAT JSON", 'TSV', '', null],
    ["SELECT '--' format `JSON`", 'TSV', '', null],
    ["SELECT '--' FORMAT/**/JSON", 'TSV', '', null],
    ["SELECT '--' FORMAT--x\nJSON", 'TSV', '', null],
    ['SELECT 1 FORMAT TSV -- FORMAT CSVWithNames', 'TSV', '', null],
    ["SELECT 'FORMAT CSVWithNames'", 'TSV', '', null],
    ['SELECT 1 FORMAT CSVWithNames SETTINGS max_threads = 1', 'TSV', '', null],
    ['SELECT k FROM t GROUP BY k WITH TOTALS FORMAT TSVWithNames', 'TSV', '', null],
    ['SELECT 1', 'Parquet', '', null],
    ['SELECT 1', 'CustomSeparated', 'query', 'customseparated'],
    ['SELECT 1', 'CustomSeparated', 'query format_custom_result_after_delimiter', null],
    ['SELECT 1', 'JSONEachRow', 'query output_format_json_array_of_rows', null],
  ];
  for (const [text, fallback, settings, expected] of cases)
    assert.equal(findStreamFormat(text, fallback, settings), expected, text);
  assert.equal(findResultFormat('SELECT 1 FORMAT CSV SETTINGS a=1', 'TSV'), 'CSV');
});

test('A result has no size limit if every possible format is streamed or prints no rows', () => {
  const cases: [text: string, fallback: string, isLimited: boolean][] = [
    ['SELECT 1', 'Null', false],
    ['SELECT 1 FORMAT Null -- comment', 'TSV', false],
    ['SELECT 1 FORMAT Hash', 'JSON', false],
    ['SELECT k FROM t GROUP BY k WITH TOTALS FORMAT Null', 'JSON', false],
    ["SELECT 'FORMAT Null'", 'JSON', true],
    ['SELECT 1 FORMAT JSON /* FORMAT Null */', 'Null', true],
    ['SELECT 1 FORMAT JSON -- FORMAT Null', 'Null', true],
    ['SELECT 1 FORMAT JSON /*\n*/ -- FORMAT Null', 'Null', true],
  ];
  for (const [text, default_format, isLimited] of cases) {
    const { assignments } = build({ default_format }, text, true).job;
    const limits = assignments.filter((one) => one.startsWith('max_result_bytes'));
    assert.equal(limits.length, isLimited ? 1 : 0, text);
  }
});

test('createBlockJoiner removes the repeated header of a block, and rejects a block with another one', () => {
  const joiner = createBlockJoiner('csvwithnames');
  const next = (text: string) => Buffer.from(joiner.next(Buffer.from(text))).toString();
  assert.equal(next('"a\n""b"\n1\n'), '"a\n""b"\n1\n');
  assert.equal(next('"a\n""b"\n2\n'), '2\n');
  assert.throws(() => next('3\n'), /has another head or tail/);
  const values = createBlockJoiner('values');
  const joined = ["('a\n'),(1)", '(2)'].map((text) => values.next(Buffer.from(text)).toString());
  assert.deepEqual(joined, ["('a\n'),(1)", ',(2)']);
});

test('addAdvice adds to the error of an exceeded limit what an analyst can do', () => {
  const describe = (text: string, default_format: string, isAnalyst = true) =>
    String(addAdvice(build({ default_format }, 'SELECT 1', isAnalyst).job, new Error(text)));
  const late = 'Code: 159. DB::Exception: Timeout exceeded: maximum: 1000 ms. (TIMEOUT_EXCEEDED)';
  const narrow = 'Read one tenant, fewer days or fewer columns';
  const advice = ` ${narrow}; ANALYST_MAX_SECONDS limits the time. (`;
  assert.equal(describe(late, 'TSV'), `Error: ${late.replace(' (', advice)}`);
  assert.equal(describe(late, 'TSV', false), `Error: ${late}`);
  const large = 'Code: 396. DB::Exception: Limit for result exceeded. (TOO_MANY_ROWS_OR_BYTES)';
  assert.match(describe(large, 'Parquet'), /use a streamed format: TSVWithNames, .*\. Read one/);
  assert.doesNotMatch(describe(large, 'TSV'), /streamed/);
  const other = 'Code: 47. DB::Exception: Unknown. (UNKNOWN_IDENTIFIER)';
  assert.equal(describe(other, 'TSV'), `Error: ${other}`);
});

test('authenticate accepts a password with a colon and rejects an account with an empty password', () => {
  const accounts = [{ name: 'u', password: 'p:1', readonly: true }];
  const authorization = `Basic ${Buffer.from('u:p:1').toString('base64')}`;
  assert.equal(authenticate(accounts, { authorization }, new URLSearchParams()).name, 'u');
  const empty = [{ name: 'e', password: '', readonly: false }];
  assert.throws(() => authenticate(empty, {}, new URLSearchParams()), /Authentication failed/);
});
