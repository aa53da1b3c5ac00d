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

const options = {
  headers: {},
  method: 'POST',
  pathDatabase: null,
  defaultDatabase: 'skilltrace',
  limits: null,
  id: 'x',
};

test('an insert head is cut before its settings, and says where the rows begin', () => {
  const text =
    "-- note\nINSERT INTO `db`.t (a, `b`) SETTINGS x='it\\'s, y=1', async_insert = 0 FORMAT TSV\n1\t2\n";
  const head = parseInsertHead(text);
  assert.deepEqual(head && { ...head, rowsStart: text.slice(head.rowsStart) }, {
    into: '-- note\nINSERT INTO `db`.t (a, `b`)',
    format: "SETTINGS x='it\\'s, y=1', async_insert = 0 FORMAT TSV",
    rowsStart: '1\t2\n',
  });
  for (const into of ['insert into t', 'INSERT INTO t (* EXCEPT(a))'])
    assert.deepEqual(parseInsertHead(`${into} format JSONEachRow`), {
      ...{ into, format: 'format JSONEachRow', rowsStart: into.length + 19 },
    });
});

test('other inserts are left to the engine', () => {
  for (const text of [
    'INSERT INTO t SELECT 1',
    'INSERT INTO t VALUES (1)',
    "INSERT INTO FUNCTION file('x') FORMAT TSV\n",
    'INSERT INTO t SETTINGS x=1; DROP TABLE t FORMAT TSV\n',
  ]) {
    assert.equal(parseInsertHead(text), null, text);
  }
});

test('a head with a long list of blanks or columns is parsed in linear time', () => {
  const started = process.cpuUsage().user;
  parseInsertHead(`INSERT INTO t (${'a, '.repeat(20_000)}`);
  parseInsertHead(`INSERT INTO t${' '.repeat(60_000)}x`);
  parseInsertHead(`INSERT INTO t (a${' /**/'.repeat(12_000)}x`);
  parseInsertHead(`INSERT INTO t SETTINGS ${'a=1, '.repeat(12_000)}x`);
  selectLane('/**/'.repeat(16_000), true);
  selectLane(`${'/* * '.repeat(10_000)}1`, true);
  findStreamFormat(`FORMAT${'/**/ '.repeat(12_000)}(`, 'TSV', '');
  findStreamFormat(
    `${'FORMAT a '.repeat(12_000)}\nFORMAT${'\n'.repeat(60_000)}a${'\n;'.repeat(30_000)}(`,
    'TSV',
    '',
  );
  assert.ok(process.cpuUsage().user - started < 5_000_000);
});

test('literals and parameters cannot leave their quotes', () => {
  assert.equal(quoteLiteral("a'b\\c\0"), "'a\\'b\\\\c\\0'");
  const assignments = (name: string, value: string) =>
    buildJob({ ...options, query: new URLSearchParams([[name, value]]) }, Buffer.from('SELECT 1')).job
      .assignments;
  assert.ok(assignments('param_p', "x', readonly=0").includes("param_p = 'x\\', readonly=0'"));
  assert.throws(() => assignments('param_p=1, q', 'x'), /Unknown setting/);
});

test('analyst settings: formats pass, power does not, caps are lowered only', () => {
  const caps = (entries: [string, string][], limits = defaultAnalystLimits) =>
    buildAnalystAssignments(new Map(entries), limits);
  assert.deepEqual(caps([]), [
    "max_execution_time = '60'",
    "max_memory_usage = '2147483648'",
    "max_block_size = '8192'",
    "max_joined_block_size_rows = '8192'",
    'priority = 2',
    'low_priority_query_wait_time_ms = 10',
  ]);
  assert.equal(caps([['max_block_size', '100000000']])[2], "max_block_size = '8192'");
  const threads = (wanted: string) => caps([['max_threads', wanted]])[4];
  assert.equal(threads('500000'), `max_threads = '${availableParallelism()}'`);
  assert.equal(threads('1'), "max_threads = '1'");
  assert.deepEqual(caps([['max_execution_time', '7']])[0], "max_execution_time = '7'");
  for (const high of ['0', '-1', '61', '1e9']) {
    assert.deepEqual(caps([['max_execution_time', high]])[0], "max_execution_time = '60'");
  }
  assert.equal(caps([['output_format_json_quote_64bit_integers', '1']]).length, 7);
  assert.equal(caps([['readonly', '2']]).length, 6);
  const rows = (wanted: string, most: number) =>
    caps([['max_rows_to_read', wanted]], { ...defaultAnalystLimits, rows: most }).filter((one) =>
      /rows_to/.test(one),
    );
  assert.deepEqual(rows('7', 0), ["max_rows_to_read = '7'"]);
  for (const wanted of ['0', '99', '5']) assert.deepEqual(rows(wanted, 5), ["max_rows_to_read = '5'"]);
  assert.deepEqual(rows('4', 5), ["max_rows_to_read = '4'"]);
  for (const name of [
    'readonly',
    'allow_ddl',
    'output_format_schema',
    'format_schema',
    'max_untracked_memory',
    'priority',
  ]) {
    assert.throws(() => caps([[name, '0']]), /readonly mode/, name);
  }
});

test('the guard reads printed statements token by token', () => {
  const tableFunctions = new Set(['file', 'url', 'numbers', 'format', 'cluster']);
  const check = (text: string) => checkAnalystStatement(text, tableFunctions);
  for (const text of [
    "SELECT 'INTO OUTFILE', '\\'file(1)', url, `settings` FROM numbers(3)",
    "SHOW SETTINGS LIKE 'x'",
    "SELECT format('{}', 1), default_kind FROM system.columns",
    '(SELECT 1) UNION ALL (SELECT 2)',
  ]) {
    assert.doesNotThrow(() => check(text), text);
  }
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
  ]) {
    assert.throws(() => check(text), /readonly mode/, text);
  }
});

test('what stands for columns is narrowed, what multiplies or counts is not', () => {
  const narrowed = (text: string) =>
    checkAnalystStatement(text, new Set()).replaceAll(' EXCEPT (data_path, data_paths, metadata_path)', '!');
  for (const [text, expected] of [
    ['SELECT * FROM t', 'SELECT *! FROM t'],
    ['SELECT DISTINCT t.*, tuple(*), [*] FROM t', 'SELECT DISTINCT t.*!, tuple(*!), [*!] FROM t'],
    ['SELECT * EXCEPT a FROM t', 'SELECT *! EXCEPT a FROM t'],
    ["SELECT COLUMNS('a'), t.COLUMNS('b') FROM t", "SELECT COLUMNS('a')!, t.COLUMNS('b')! FROM t"],
    ['SELECT 1 + *, a * * AS b FROM t ORDER BY * ASC', 'SELECT 1 + *!, a * *! AS b FROM t ORDER BY *! ASC'],
    ["SELECT 2 * 3, a * b, (a) * 2, [1][1] * 2, '*' * A, NULL * 2, `by` * 2", null],
    ['SELECT count(*), COUNT(*) * 2, CASE WHEN 1 THEN 2 END * 2 FROM t', null],
  ] as const)
    assert.equal(narrowed(text), expected ?? text);
  for (const text of [
    'SELECT data_path FROM t',
    'SELECT t.`data_paths` FROM t',
    'SELECT 1 FROM system.parts',
  ])
    assert.throws(() => narrowed(text), /Not enough privileges/, text);
});

test('functions that make rows dear ask for small blocks', () => {
  const dear = [
    "editDistance('a', b)",
    "`repeat`('a', 9)",
    'RANGE(9)',
    "leftPad('a', 9)",
    'randomStringUTF8(9)',
  ];
  for (const text of dear) assert.equal(limitExpensiveBlocks(`SELECT ${text}`).length, 2, text);
  for (const text of ['count(), range FROM t', 'arrayRanges(1)', "lower('repeat')", 'avg(distance)'])
    assert.deepEqual(limitExpensiveBlocks(`SELECT ${text}`), [], text);
});

test('a statement that took the engine with it is refused, and after several of them every one', () => {
  const minute = 60_000;
  const statement = "SELECT /* a */ dear(x, 'a''b', 1), '\\'' FROM t -- b";
  const first = buildOverrun(statement, 0);
  assert.equal(first.query, "SELECT dear(x, '?', 1), '?' FROM t");
  const odd = "-- it's\n# it's\nSELECT /* ' */ 'ada' AS a, 'eve --'";
  assert.equal(buildOverrun(odd, 0).query, "SELECT '?' AS a, '?'");
  const started = process.cpuUsage().user;
  for (const text of ['$1', "/*'", "'", '$a$b']) buildOverrun(text.repeat(200_000), 0);
  assert.ok(process.cpuUsage().user - started < 2_000_000);
  const check = (overruns: readonly Overrun[], text: string, at: number) => checkOverruns(overruns, text, at);
  for (const same of ["select dear(x,'z',22), $a$it's$a$\nfrom t", statement])
    assert.throws(
      () => check([first], same, 9 * minute),
      /Code|This query outlived its limit; try again in 60 s/,
    );
  assert.doesNotThrow(() => check([first], statement, 10 * minute));
  assert.doesNotThrow(() => check([first], 'SELECT 1', 0));
  const several = (count: number) =>
    Array.from({ length: count }, (_, i) => buildOverrun(`SELECT a${'b'.repeat(i)}`, i));
  assert.doesNotThrow(() => check(several(2), 'SELECT 1', 2));
  for (const [count, pauseMs] of [
    [3, 30_000],
    [4, 60_000],
    [7, 480_000],
    [8, 600_000],
    [20, 600_000],
  ] as const) {
    const last = count - 1;
    assert.throws(
      () => check(several(count), 'SELECT 1', last + pauseMs - 1),
      /analysts have to wait; try again in 1 s/,
    );
    assert.doesNotThrow(() => check(several(count), 'SELECT 1', last + pauseMs), `${count}`);
  }
  assert.doesNotThrow(() => check(several(20), 'SELECT 1', 61 * minute));
});

test('what is one document, or may have another format than it seems, is not streamed', () => {
  const streamed = (text: string, fallback = 'TabSeparated', settings = '') =>
    findStreamFormat(text, fallback, settings);
  assert.equal(streamed('SELECT 1'), 'tabseparated');
  assert.equal(streamed("SELECT formatDateTime(x, '%Y')", 'CSVWithNames'), 'csvwithnames');
  assert.equal(streamed("SELECT 'FORMAT JSON'\nFORMAT ArrowStream;\n", 'JSON'), 'arrowstream');
  assert.equal(streamed('SELECT 1 -- FORMAT CSV\n FORMAT\nTSVWithNamesAndTypes'), 'tsvwithnamesandtypes');
  for (const text of ['FORMAT JSON', 'format `JSON`', 'FORMAT/**/JSON', 'FORMAT--x\nJSON', 'FORMAT"XML"'])
    assert.equal(streamed(`SELECT '--' ${text}`, 'TSV'), null, text);
  for (const text of [
    'SELECT 1 FORMAT TSV -- FORMAT CSVWithNames',
    "SELECT 'FORMAT CSVWithNames'",
    'SELECT 1 FORMAT CSVWithNames SETTINGS max_threads = 1',
    'SELECT k, count() FROM t GROUP BY k WITH TOTALS FORMAT TSVWithNames',
  ])
    assert.equal(streamed(text), null, text);
  assert.equal(streamed('SELECT 1', 'Parquet'), null);
  assert.equal(streamed('SELECT 1', 'JSONEachRow', 'query output_format_json_array_of_rows'), null);
  assert.equal(findResultFormat('SELECT 1 FORMAT CSV SETTINGS a=1', 'TSV'), 'CSV');
});

test('a block of a stream that has not the head of the first is never sent', () => {
  const joint = createBlockJoiner('csvwithnames');
  const next = (text: string) => Buffer.from(joint.next(Buffer.from(text))).toString();
  assert.equal(next('"a\n""b"\n1\n'), '"a\n""b"\n1\n');
  assert.equal(next('"a\n""b"\n2\n'), '2\n');
  assert.throws(() => next('3\n'), /begins or ends otherwise/);
});

test('what exceeds a limit is told what to do, in front of the name of the error', () => {
  const limits = defaultAnalystLimits;
  const told = (text: string, format: string, of: typeof limits | null = limits) => {
    const query = new URLSearchParams({ default_format: format });
    const { job } = buildJob({ ...options, limits: of, query }, Buffer.from('SELECT 1'));
    return String(addAdvice(job, new Error(text)));
  };
  const late = 'Code: 159. DB::Exception: Timeout exceeded: maximum: 1000 ms. (TIMEOUT_EXCEEDED)';
  const narrow = 'Ask for one tenant, fewer days or fewer columns';
  assert.equal(
    told(late, 'TSV'),
    `Error: ${late.replace(' (', ` ${narrow}; ANALYST_MAX_SECONDS bounds the time. (`)}`,
  );
  assert.equal(told(late, 'TSV', null), `Error: ${late}`);
  const large = 'Code: 396. DB::Exception: Limit for result exceeded. (TOO_MANY_ROWS_OR_BYTES)';
  assert.match(told(large, 'Parquet'), /one that streams is not: TSVWithNames, .*ArrowStream\. Ask for one/);
  assert.doesNotMatch(told(large, 'TSV'), /streams/);
  const other = 'Code: 47. DB::Exception: Unknown. (UNKNOWN_IDENTIFIER)';
  assert.equal(told(other, 'TSV'), `Error: ${other}`);
});

test('errors have ClickHouse’s status, code and body', () => {
  const failure = toFailure(new Error('Code: 60. DB::Exception: no table. (UNKNOWN_TABLE)'));
  assert.deepEqual(failure, {
    code: 60,
    status: 404,
    body: 'Code: 60. DB::Exception: no table. (UNKNOWN_TABLE)\n',
  });
  assert.deepEqual(toFailure(new Error('odd')).code, 1002);
});

test('credentials: header before basic before query', () => {
  const accounts = [{ name: 'u', password: 'p:1', readonly: true }];
  const none = new URLSearchParams();
  const basic = `Basic ${Buffer.from('u:p:1').toString('base64')}`;
  assert.equal(authenticate(accounts, { authorization: basic }, none).name, 'u');
  assert.equal(authenticate(accounts, {}, new URLSearchParams({ user: 'u', password: 'p:1' })).name, 'u');
  const wrong = { 'x-clickhouse-user': 'u', 'x-clickhouse-key': 'x', authorization: basic };
  assert.throws(() => authenticate(accounts, wrong, none), /Authentication failed/);
  assert.throws(
    () => authenticate([{ name: 'e', password: '', readonly: false }], {}, none),
    /Authentication failed/,
  );
});

test('requests find their lane, database and rows', () => {
  assert.equal(selectLane('/* a */ -- b\n select 1', false), 'read');
  assert.equal(selectLane('INSERT INTO t SELECT 1', false), 'write');
  assert.equal(selectLane('INSERT INTO t SELECT 1', true), 'analyst');
  const query = new URLSearchParams({ query: 'INSERT INTO t FORMAT TSV', insert_deduplication_token: 'k' });
  const { job, lane } = buildJob({ ...options, query }, Buffer.from('1\n'));
  assert.deepEqual(
    [lane, job.database, job.insert?.into, job.insert?.format],
    ['write', 'skilltrace', 'INSERT INTO t', 'FORMAT TSV'],
  );
  assert.equal(Buffer.from(job.insert?.rows ?? []).toString(), '1\n');
  assert.ok(job.assignments.includes("insert_deduplication_token = 'k'"));
  assert.ok(job.assignments.includes('priority = 1'), 'analysts wait for inserts');
  const inBody = buildJob(
    { ...options, query: new URLSearchParams() },
    Buffer.from('INSERT INTO t (a) FORMAT CSV\né\n'),
  );
  assert.equal(Buffer.from(inBody.job.insert?.rows ?? []).toString(), 'é\n');
});
