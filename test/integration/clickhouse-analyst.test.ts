import assert from 'node:assert/strict';
import { access, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import {
  analystAccount,
  type ClickHouseChild,
  startClickHouse,
  temporaryFolder,
} from '../support/servers/clickhouse-child.js';

const limit = { timeout: 60_000 };
let server: ClickHouseChild;
let analyst: ClickHouseClient;
let service: ClickHouseClient;
let folder: { path: string; remove: () => Promise<void> };
let secretFile: string;
let targetFile: string;

before(async () => {
  folder = await temporaryFolder();
  server = await startClickHouse(join(folder.path, 'data'));
  analyst = server.client(analystAccount);
  service = server.client();
  secretFile = join(folder.path, 'secret.csv');
  targetFile = join(folder.path, 'written');
  await writeFile(secretFile, 'TOP-SECRET,1\n');
  await service.command({ query: 'CREATE TABLE t (a UInt32, b String) ENGINE = MergeTree ORDER BY a' });
  await service.command({ query: "INSERT INTO t VALUES (1, 'one')" });
});

after(async () => {
  await analyst.close();
  await service.close();
  await server.stop();
  await folder.remove();
});

const headers = { 'X-ClickHouse-User': analystAccount.name, 'X-ClickHouse-Key': analystAccount.password };

async function ask(
  query: string,
  parameters: Record<string, string> = {},
): Promise<{ status: number; text: string }> {
  const url = `/?${new URLSearchParams(parameters)}`;
  const response = await server.fetch(url, { method: 'POST', body: query, headers });
  return { status: response.status, text: await response.text() };
}

async function assertRefused(query: string, parameters: Record<string, string> = {}): Promise<void> {
  const { status, text } = await ask(query, parameters);
  assert.notEqual(status, 200, `${query} answered ${text.slice(0, 200)}`);
  assert.match(text, /^Code: \d+\. DB::Exception/, query);
  assert.doesNotMatch(text, /TOP-SECRET/, query);
}

test('what analysts do works: questions, catalogues, explanations, formats', limit, async () => {
  const questions = [
    'SELECT count() FROM t',
    'WITH 1 AS x SELECT x',
    '(SELECT 1) UNION ALL (SELECT 2)',
    'FROM t SELECT a',
    "-- why\nSELECT /* and */ b FROM t WHERE b = 'into outfile; file(1) settings a=1'",
    'SHOW TABLES',
    'SHOW DATABASES',
    'SHOW CREATE TABLE t',
    "SHOW SETTINGS LIKE 'max_threads'",
    'DESCRIBE t',
    'DESC TABLE t',
    'EXISTS TABLE t',
    'EXPLAIN SELECT a FROM t',
    'EXPLAIN indexes = 1 SELECT a FROM t WHERE a = 1',
    'SELECT count() FROM system.columns',
    'SELECT name FROM system.tables WHERE database = currentDatabase()',
    'SELECT * FROM numbers(3)',
    "SELECT formatDateTime(now(), '%Y'), format('{}', 'x')",
    'SELECT a, count() OVER (PARTITION BY b) FROM t',
    'SELECT 1 FORMAT JSON',
    'SELECT 1;',
  ];
  for (const query of questions) assert.equal((await ask(query)).status, 200, query);
  const rows = await analyst.query({
    query: 'SELECT a, toUInt64(a) AS n, {p:String} AS p FROM t',
    query_params: { p: "it's" },
    clickhouse_settings: { output_format_json_quote_64bit_integers: 1, wait_end_of_query: 1, max_threads: 1 },
    format: 'JSONEachRow',
  });
  assert.deepEqual(await rows.json(), [{ a: 1, n: '1', p: "it's" }]);
  assert.equal((await ask('SELECT currentDatabase()', { database: 'default' })).text, 'skilltrace\n');
});

test('no statement that changes anything runs', limit, async () => {
  const statements = [
    "INSERT INTO t VALUES (2, 'two')",
    'INSERT INTO t FORMAT TSV\n2\ttwo\n',
    'INSERT INTO t SELECT * FROM t',
    'CREATE TABLE q (a Int8) ENGINE = Memory',
    'CREATE TEMPORARY TABLE q (a Int8)',
    'CREATE DATABASE q',
    'CREATE VIEW q AS SELECT 1',
    'CREATE FUNCTION q AS (x) -> x',
    'CREATE USER q',
    'CREATE NAMED COLLECTION q AS a = 1',
    'DROP TABLE t',
    'UNDROP TABLE t',
    'TRUNCATE TABLE t',
    'ALTER TABLE t DELETE WHERE 1',
    'ALTER TABLE t ADD COLUMN c Int8',
    'DELETE FROM t WHERE 1',
    "UPDATE t SET b = 'x' WHERE 1",
    'RENAME TABLE t TO u',
    'OPTIMIZE TABLE t',
    'ATTACH TABLE t',
    'DETACH TABLE t',
    'SYSTEM FLUSH LOGS',
    'SYSTEM SHUTDOWN',
    'SYSTEM STOP MERGES',
    'KILL QUERY WHERE 1',
    "BACKUP TABLE t TO Disk('default', 'x')",
    "RESTORE TABLE t FROM Disk('default', 'x')",
    'GRANT ALL ON *.* TO default',
    'EXECUTE AS default SELECT 1',
    'CHECK TABLE t',
    'SET readonly = 0',
    'SET param_x = 1',
    'USE system',
    "EXPLAIN PIPELINE INSERT INTO t SELECT 1, 'x'",
    'SELECT 1; DROP TABLE t',
    'SELECT 1;; DROP TABLE t',
    'SELECT 1 FORMAT JSON; DROP TABLE t',
    '/* SELECT */ DROP TABLE t',
    '--\nDROP/**/TABLE t',
    'dRoP tAbLe t',
    '\u00a0DROP TABLE t',
    '\uFF33ELECT 1; DROP TABLE t',
    '`SELECT`',
    '',
  ];
  for (const statement of statements) await assertRefused(statement);
  const count = await service.query({ query: 'SELECT count(), any(b) FROM t', format: 'TabSeparated' });
  assert.equal(await count.text(), '1\tone\n');
});

test('no file, network or process is reachable', limit, async () => {
  const file = secretFile;
  const asked = [
    `SELECT file('${file}')`,
    `SELECT FILE('${file}')`,
    `SELECT "file"('${file}')`,
    `SELECT \`file\`('${file}')`,
    `SELECT file/**/('${file}')`,
    `SELECT * APPLY(file) FROM (SELECT '${file}')`,
    `SELECT COLUMNS('x') APPLY(v -> file(v)) FROM (SELECT '${file}' AS x)`,
    `SELECT arrayMap(v -> file(v), ['${file}'])`,
    `SELECT arrayMap(file, ['${file}'])`,
    `WITH (SELECT file('${file}')) AS x SELECT x`,
    `EXPLAIN SELECT file('${file}')`,
    `EXPLAIN SYNTAX SELECT file('${file}')`,
    `SELECT * FROM file('${file}')`,
    `SELECT * FROM file('${file}', 'LineAsString')`,
    `SELECT * FROM (SELECT * FROM file('${file}', 'LineAsString') SETTINGS readonly = 0)`,
    `SELECT * FROM t WHERE b IN (SELECT * FROM file('${file}', 'LineAsString'))`,
    `SELECT * FROM view(SELECT * FROM file('${file}', 'LineAsString'))`,
    `SELECT * FROM loop(file('${file}', 'LineAsString')) LIMIT 1`,
    `SELECT * FROM eval('SELECT file(''${file}'')')`,
    `DESCRIBE file('${file}')`,
    `DESCRIBE TABLE file('${file}', 'CSV')`,
    `DESCRIBE (SELECT * FROM file('${file}'))`,
    `EXPLAIN SELECT * FROM file('${file}')`,
    `SELECT * FROM \`${file}\``,
    `SELECT * FROM '${file}'`,
    `SELECT * FROM default.\`${file}\``,
    `EXISTS default.\`${file}\``,
    `DESCRIBE default.\`${file}\``,
    `SHOW CREATE TABLE default.\`${file}\``,
    'SHOW CREATE TABLE {d:Identifier}.{t:Identifier}',
    'EXISTS TABLE {d:Identifier}.{t:Identifier}',
    `SELECT * FROM merge('default', '.*')`,
    "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')",
    "DESCRIBE url('http://127.0.0.1:1/')",
    "SELECT * FROM s3('http://127.0.0.1:1/bucket/key', 'TSV')",
    "SELECT * FROM remote('127.0.0.1', 'system.one')",
    "SELECT * FROM cluster('default', system.one)",
    "SELECT * FROM executable('id', 'TSV', 'a String')",
    "SELECT * FROM mysql('127.0.0.1:1', 'a', 'b', 'c', 'd')",
    "SELECT * FROM postgresql('127.0.0.1:1', 'a', 'b', 'c', 'd')",
    `SELECT * FROM sqlite('${targetFile}', 'y')`,
    "SELECT * FROM redis('127.0.0.1:1', 'k', 'k String')",
    'SELECT * FROM filesystem()',
    "SELECT * FROM deltaLakeLocal('/tmp')",
    "SELECT * FROM icebergLocal('/tmp')",
    'SELECT * FROM Python(x)',
    "SELECT catboostEvaluate('/tmp/x', 1)",
    "SELECT hasColumnInTable('127.0.0.1:1', 'u', 'p', 'd', 't', 'c')",
    `SELECT 1 INTO OUTFILE '${targetFile}'`,
    `SELECT 1 into/**/outfile '${targetFile}' TRUNCATE FORMAT TSV`,
    `SELECT 1\nINTO\nOUTFILE\n'${targetFile}'`,
    `SHOW TABLES INTO OUTFILE '${targetFile}'`,
    `EXPLAIN SELECT 1 INTO OUTFILE '${targetFile}'`,
    `(SELECT 1) INTO OUTFILE '${targetFile}'`,
    `INSERT INTO FUNCTION file('${targetFile}', 'TSV', 'a Int8') SELECT 1`,
    `INSERT INTO t FROM INFILE '${file}' FORMAT CSV`,
  ];
  for (const query of asked) await assertRefused(query, { param_d: 'default', param_t: file });
  await assert.rejects(access(targetFile), 'nothing was written');
});

test('settings cannot be opened, caps only lowered', limit, async () => {
  const asked = [
    'SELECT 1 SETTINGS readonly = 0',
    'SELECT 1 SETTINGS readonly=2, max_threads=1',
    'SELECT 1 settings/**/max_memory_usage = 0',
    'SELECT * FROM (SELECT 1 SETTINGS max_execution_time = 0)',
    'SELECT 1 UNION ALL SELECT 2 SETTINGS max_memory_usage = 0',
    'WITH x AS (SELECT 1 SETTINGS `readonly` = 0) SELECT * FROM x',
    'CREATE TABLE q ENGINE = Memory SETTINGS readonly = 0 AS SELECT 1',
  ];
  for (const query of asked) await assertRefused(query);
  const settings = [
    'readonly=0',
    'allow_ddl=1',
    'output_format_schema=/tmp/x',
    'format_schema=/tmp/x',
    'max_memory_usage=lots',
  ];
  settings.push("max_threads','a=1", 'allow_introspection_functions=1', 'max_untracked_memory=99999999999');
  for (const setting of settings) {
    const [name = '', value = ''] = setting.split('=');
    await assertRefused('SELECT 1', { [name]: value });
  }
  const caps =
    "SELECT getSetting('max_execution_time'), getSetting('max_memory_usage'), getSetting('readonly')";
  const raised = { max_execution_time: '0', max_memory_usage: '99999999999', readonly: '2' };
  assert.equal((await ask(caps, raised)).text, '60\t2147483648\t1\n');
  const lowered = { max_execution_time: '5', max_memory_usage: '1000000' };
  assert.equal((await ask(caps, lowered)).text, '5\t1000000\t1\n');
  const quoted = { param_p: "x', readonly = 0, max_threads = '3" };
  assert.equal(
    (await ask("SELECT getSetting('readonly'), {p:String}", quoted)).text,
    "1\tx\\', readonly = 0, max_threads = \\'3\n",
  );
});

test('a question has a bounded size', limit, async () => {
  const { status, text } = await ask(`SELECT '${'x'.repeat(1_100_000)}'`);
  assert.equal(status, 413);
  assert.match(text, /TOO_MANY_BYTES/);
});

test('time and memory end with an error of their own', limit, async () => {
  const slow = await ask('SELECT sum(sipHash64(number)) FROM numbers(100000000000)', {
    max_execution_time: '1',
  });
  assert.match(slow.text, /TIMEOUT_EXCEEDED/);
  const large = await ask('SELECT groupArray(number) FROM numbers(1000000000)', {
    max_memory_usage: '100000000',
  });
  assert.match(large.text, /MEMORY_LIMIT_EXCEEDED/);
});

const narrow = 'Ask for one tenant, fewer days or fewer columns';

test(
  'what exceeds a limit is told what to do; within its rows too, where they are out already',
  limit,
  async () => {
    const large = `SELECT concat('${'x'.repeat(1000)}', toString(number % 10)) AS x FROM numbers(70000)`;
    const whole = await ask(large, { default_format: 'JSON' });
    assert.match(
      whole.text,
      /^Code: 396\. .* one that streams is not: .*CSVWithNames, .* \(TOO_MANY_ROWS_OR_BYTES\)\n$/,
    );
    assert.equal((await ask(large, { default_format: 'CSVWithNames' })).text.length, 1004 * 70_000 + 4);
    const many = await ask('SELECT max(number) FROM numbers(2000)', { max_rows_to_read: '1000' });
    assert.ok(
      many.text.endsWith(`${narrow}; ANALYST_MAX_ROWS bounds the rows that a query reads. (TOO_MANY_ROWS)\n`),
    );

    const query = 'SELECT number FROM numbers(400000)';
    const response = await server.fetch('/?max_result_rows=100000', { method: 'POST', body: query, headers });
    const tag = response.headers.get('x-clickhouse-exception-tag');
    let text = '';
    await assert.rejects(async () => {
      for await (const part of response.body ?? []) text += Buffer.from(part).toString();
    });
    const end = text.slice(text.indexOf('\r'));
    assert.ok(end.startsWith(`\r\n__exception__\r\n${tag}\r\nCode: 396.`), end);
    assert.match(
      end,
      new RegExp(`${narrow}\\. \\(TOO_MANY_ROWS_OR_BYTES\\)\n\\d+ ${tag}\r\n__exception__\r\n$`),
    );
    const clickhouse_settings = { max_result_rows: '100000' };
    const rows = await analyst.query({ query, format: 'JSONEachRow', clickhouse_settings });
    await assert.rejects(rows.json(), { code: '396', type: 'TOO_MANY_ROWS_OR_BYTES' });
  },
);

test(
  'a query has one thread while other analysts wait, and all that it may have when they do not',
  limit,
  async () => {
    const threads = "SELECT getSetting('max_threads') AS threads, sleep(0.3) FORMAT JSONEachRow";
    const answers = await Promise.all([1, 2, 3, 4].map(() => ask(threads)));
    const found = answers.map(({ text }) => JSON.parse(text).threads).sort();
    const alone = JSON.parse((await ask(threads)).text).threads;
    // The first may have begun, and the last always begins, with nobody behind it.
    assert.deepEqual(found.slice(0, 2), [1, 1]);
    assert.equal(found.at(-1), alone);
  },
);

const headed = ['CSV', 'JSONCompactEachRow', 'JSONCompactStringsEachRow', 'RowBinary', 'TSV'];
const streamedFormats = [
  ...headed.flatMap((format) => ['', 'WithNames', 'WithNamesAndTypes'].map((names) => `${format}${names}`)),
  ...'ArrowStream BSONEachRow JSONEachRow MsgPack NDJSON Native TSKV TabSeparatedRaw'.split(' '),
];

test('a streamed answer is the same, byte for byte, as one that is made as a whole', limit, async () => {
  const bytesOf = async (query: string): Promise<Buffer> => {
    const body = Buffer.from(query);
    const response = await server.fetch('/?max_threads=1', { method: 'POST', body, headers });
    assert.equal(response.status, 200, query);
    return Buffer.from(await response.arrayBuffer());
  };
  const columns = `number AS n, if(number % 3 = 0, NULL, toString(number)) AS \`a "b,\\n\\tc\`,
    toLowCardinality(toString(number % 7)) AS l, CAST(number % 2, 'Enum8(\\'no\\' = 0, \\'yes\\' = 1)') AS e,
    [number, 1] AS r, toDateTime64(number, 3, 'UTC') AS t, number / 3 AS f, map('k', number) AS m`;
  for (const format of streamedFormats)
    for (const rows of [0, 20_000]) {
      const query = `SELECT ${format.startsWith('BSON') ? 'number AS n, toString(n) AS s' : columns} FROM numbers(${rows})`;
      // The word in the comment keeps it from being streamed.
      const whole = await bytesOf(`${query} /* totals */ FORMAT ${format}`);
      const streamed = await bytesOf(`${query} FORMAT ${format}`);
      assert.ok(streamed.equals(whole), `${format}, ${rows} rows`);
    }
});
