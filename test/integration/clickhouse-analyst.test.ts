/** What the read-only analyst account of the embedded ClickHouse can and cannot do. */
import assert from 'node:assert/strict';
import { access, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { analystTables } from '../../src/contracts/settings/analyst-tables.js';
import { findStreamFormat, hasNoRows } from '../../src/embedded/clickhouse/stream-formats.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createSchema } from '../../src/warehouse/schema/create-schema.js';
import {
  analystAccount,
  headersOf,
  serviceAccount,
  startClickHouse,
} from '../support/servers/clickhouse-child.js';

const server = await startClickHouse({ after }, undefined, {
  readableTables: [...analystTables, 't'].map((table) => `skilltrace.${table}`),
  analystLimits: { seconds: 50, memoryBytes: 2 ** 30, rows: 1e12 },
});
const folder = join(server.dataDir, '..');
const secretFile = join(folder, 'secret.csv');
const targetFile = join(folder, 'written');
const service = server.client();
const analyst = server.client(analystAccount);

/** Tables that analysts cannot read. A new table belongs here or in `analystTables`. */
const privateTables =
  'api_keys deployments erasures replaced_attempts schema_migrations webhooks xapi_mappings'.split(' ');
const secrets = ['TOP-SECRET', folder, 'hidden-tenant', 'hidden-hash'];
secrets.push(serviceAccount.password, analystAccount.password);

await writeFile(secretFile, 'TOP-SECRET,1\n');
await createSchema(service);
for (const query of [
  'CREATE TABLE t (a UInt32, b String) ENGINE = MergeTree ORDER BY a',
  "INSERT INTO t VALUES (1, 'one')",
  "INSERT INTO api_keys (tenant, sealed_hash) VALUES ('hidden-tenant', 'hidden-hash')",
])
  await service.command({ query });

/** Runs a query as the analyst. Fails if the response contains a secret. */
async function run(query: string, parameters: Record<string, string> = {}) {
  const path = `/?${new URLSearchParams({ max_execution_time: '30', ...parameters })}`;
  const headers = headersOf(analystAccount);
  const response = await server.fetch(path, { method: 'POST', body: query, headers });
  const text = await response.text();
  const known = [query, ...Object.values(parameters)].join(' ');
  for (const secret of secrets)
    if (!known.includes(secret)) assert.ok(!text.includes(secret), `${query}: ${text.slice(0, 300)}`);
  return { status: response.status, text };
}

async function assertRejected(query: string, parameters: Record<string, string> = {}): Promise<void> {
  const { status, text } = await run(query, parameters);
  assert.notEqual(status, 200, `${query}: ${text.slice(0, 200)}`);
  assert.match(text, /^Code: \d+\. DB::Exception/, query);
  assert.doesNotMatch(text, /TOP-SECRET|key_id/, query);
}

/** One statement per line. */
const linesOf = (text: string): string[] => text.trim().split(/\n\s*/);
const sortedLines = (text: string): string[] => text.trim().split('\n').sort();

test('The analyst account runs queries, lists and explanations in every format', async () => {
  const queries = linesOf(`
    WITH 1 AS x SELECT x
    (SELECT 1) UNION ALL (SELECT 2)
    FROM t SELECT a
    SELECT /* and */ b FROM t WHERE b = 'into outfile; file(1) settings a=1' -- why
    SHOW TABLES
    SHOW CREATE TABLE t
    SHOW SETTINGS LIKE 'max_threads'
    DESC TABLE t
    EXPLAIN indexes = 1 SELECT a FROM t WHERE a = 1
    SELECT * FROM numbers(3)
    SELECT formatDateTime(now(), '%Y'), format('{}', 'x')
    SELECT a, count() OVER (PARTITION BY b) FROM t
    SELECT 1 FORMAT JSON
    SELECT 1;`);
  for (const query of queries) assert.equal((await run(query)).status, 200, query);
  const rows = await analyst.query({
    query: 'SELECT a, toUInt64(a) AS n, {p:String} AS p FROM t',
    query_params: { p: "it's" },
    clickhouse_settings: { output_format_json_quote_64bit_integers: 1, wait_end_of_query: 1, max_threads: 1 },
    format: 'JSONEachRow',
  });
  assert.deepEqual(await rows.json(), [{ a: 1, n: '1', p: "it's" }]);
  assert.equal((await run('SELECT currentDatabase()', { database: 'default' })).text, 'skilltrace\n');
  // Asterisks that are no column lists.
  const products = `SELECT 2 * 3, number * 2, (number) * 2, [1][1] * 2, 'a' || toString(n * 2),
    CASE WHEN 1 THEN 2 * 3 END * 2, A * n, 3 AS A, number + 1 AS n, (SELECT count(*) * 2 FROM numbers(3))
    FROM numbers(1) WHERE 1 * 2 AND NOT (2 * 3 = 5)`;
  assert.equal((await run(products)).text, '6\t0\t0\t2\ta2\t12\t3\t3\t1\t6\n');
});

test('The analyst account cannot change anything', async () => {
  const statements = linesOf(`
    INSERT INTO t VALUES (2, 'two')
    INSERT INTO t SELECT * FROM t
    CREATE TEMPORARY TABLE q (a Int8)
    CREATE TABLE q ENGINE = Memory SETTINGS readonly = 0 AS SELECT 1
    DROP TABLE t
    ALTER TABLE t DELETE WHERE 1
    DELETE FROM t WHERE 1
    SYSTEM SHUTDOWN
    KILL QUERY WHERE 1 SYNC
    EXECUTE AS default SELECT 1
    SET ROLE ALL
    SET readonly = 0
    USE system
    EXPLAIN PIPELINE INSERT INTO t SELECT 1, 'x'
    SELECT 1; DROP TABLE t
    SELECT 1 FORMAT JSON; DROP TABLE t
    /* SELECT */ DROP TABLE t
    \u00a0DROP TABLE t
    \uFF33ELECT 1; DROP TABLE t
    \`SELECT\``);
  for (const statement of [...statements, '', 'INSERT INTO t FORMAT TSV\n2\ttwo\n', '--\nDROP/**/TABLE t'])
    await assertRejected(statement);
  const { name, password } = analystAccount;
  for (const method of ['GET', 'POST']) {
    for (const extra of ['', 'readonly=0', 'user=skilltrace', 'role=admin', 'session_id=x']) {
      const account = { user: name, password, ...Object.fromEntries(new URLSearchParams(extra)) };
      const path = `/?${new URLSearchParams({ query: 'DROP TABLE IF EXISTS t', ...account })}`;
      const { status } = await server.fetch(path, { method, headers: headersOf(analystAccount) });
      assert.notEqual(status, 200, `${method} ${extra}`);
    }
  }
  const rows = await service.query({ query: 'SELECT count(), any(b) FROM t', format: 'TabSeparated' });
  assert.equal(await rows.text(), '1\tone\n');
});

test('The analyst account cannot reach files, other servers, processes or engine internals', async () => {
  const file = secretFile;
  const queries = linesOf(`
    SELECT file('${file}')
    SELECT "file"('${file}')
    SELECT file/**/('${file}')
    SELECT * APPLY(file) FROM (SELECT '${file}')
    SELECT arrayMap(file, ['${file}'])
    WITH (SELECT file('${file}')) AS x SELECT x
    SELECT {f:Identifier}('${file}')
    SELECT * FROM {f:Identifier}('${file}')
    EXPLAIN QUERY TREE SELECT file('${file}')
    SELECT * FROM viewExplain('EXPLAIN', '', (SELECT file('${file}')))
    SELECT * FROM file('${file}', 'LineAsString')
    SELECT * FROM (SELECT * FROM file('${file}', 'LineAsString') SETTINGS readonly = 0)
    SELECT * FROM view(SELECT * FROM file('${file}', 'LineAsString'))
    SELECT * FROM loop(file('${file}', 'LineAsString')) LIMIT 1
    SELECT * FROM eval('SELECT file(''${file}'')')
    DESCRIBE TABLE file('${file}', 'CSV')
    SELECT * FROM \`${file}\`
    SELECT * FROM '${file}'
    SELECT * FROM default.\`${file}\`
    EXISTS default.\`${file}\`
    SHOW CREATE TABLE {d:Identifier}.{t:Identifier}
    EXISTS TABLE {d:Identifier}.{t:Identifier}
    SELECT * FROM merge('default', '.*')
    DESCRIBE url('http://127.0.0.1:1/')
    SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')
    SELECT * FROM remote('127.0.0.1', 'system.one')
    SELECT * FROM clusterAllReplicas('default', system.one)
    SELECT * FROM executable('id', 'TSV', 'a String')
    SELECT * FROM mysql('127.0.0.1:1', 'a', 'b', 'c', 'd')
    EXPLAIN TABLE OVERRIDE mysql('a', 'b', 'c', 'd', 'e')
    SELECT * FROM sqlite('${targetFile}', 'y')
    SELECT * FROM icebergLocal('/tmp')
    SELECT * FROM Python(x)
    SELECT * FROM dictionary('d')
    SELECT catboostEvaluate('/tmp/x', 1)
    SELECT getClientHTTPHeader('X-ClickHouse-Key')
    SELECT demangle(addressToSymbol(1))
    SELECT showCertificate()
    SELECT hasColumnInTable('127.0.0.1:1', 'u', 'p', 'd', 't', 'c')
    SELECT hostName()
    SELECT 1 INTO OUTFILE '${targetFile}'
    SELECT 1 into/**/outfile '${targetFile}' TRUNCATE FORMAT TSV
    SHOW TABLES INTO OUTFILE '${targetFile}'
    (SELECT 1) INTO OUTFILE '${targetFile}'
    INSERT INTO FUNCTION file('${targetFile}', 'TSV', 'a Int8') SELECT 1
    INSERT INTO t FROM INFILE '${file}' FORMAT CSV
    SHOW PROCESSLIST
    SHOW GRANTS`);
  queries.push(`SELECT 1\nINTO\nOUTFILE\n'${targetFile}'`);
  for (const query of queries)
    await assertRejected(query, { param_d: 'default', param_t: file, param_f: 'file' });
  assert.deepEqual((await readdir(folder)).sort(), ['data', 'secret.csv'], 'nothing was written');
});

test('The analyst account can lower its limits and cannot raise them or set other settings', async () => {
  for (const query of linesOf(`
    SELECT 1 SETTINGS readonly = 0
    SELECT 1 settings/**/max_memory_usage = 0
    SELECT * FROM (SELECT 1 SETTINGS max_execution_time = 0)
    WITH x AS (SELECT 1 SETTINGS \`readonly\` = 0) SELECT * FROM x`))
    await assertRejected(query);
  const settings = new URLSearchParams(
    "readonly=0&allow_ddl=1&output_format_schema=/tmp/x&max_memory_usage=lots&max_threads','a=1" +
      '&allow_introspection_functions=1&max_untracked_memory=99999999999',
  );
  for (const [name, value] of settings) await assertRejected('SELECT 1', { [name]: value });
  const names = ['max_execution_time', 'max_memory_usage', 'max_rows_to_read'];
  const limits = async (value: string) => {
    const parameters = Object.fromEntries(names.map((name) => [name, value]));
    return (await run(`SELECT ${names.map((name) => `getSetting('${name}')`)}`, parameters)).text;
  };
  for (const value of ['0', '-1', '9999999999999'])
    assert.equal(await limits(value), '50\t1073741824\t1000000000000\n');
  assert.equal(await limits('5'), '5\t5\t5\n');
  const quoted = { param_p: "x', readonly = 0, max_threads = '3", readonly: '2' };
  const { text } = await run("SELECT getSetting('readonly'), {p:String}", quoted);
  assert.equal(text, "1\tx\\', readonly = 0, max_threads = \\'3\n");
});

test('A query of an analyst that exceeds a limit ends with an error that names the limit', async () => {
  const advice = 'Read one tenant, fewer days or fewer columns';
  const tooManyRows = `${advice}; ANALYST_MAX_ROWS limits the rows that a query reads\\. \\(TOO_MANY_ROWS\\)\n$`;
  const cases: [selected: string, parameters: Record<string, string>, error: RegExp][] = [
    ['sum(sipHash64(number)) FROM numbers(100000000000)', { max_execution_time: '1' }, /TIMEOUT_EXCEEDED/],
    ['groupArray(number) FROM numbers(1000000000)', { max_memory_usage: '100000000' }, /MEMORY_LIMIT_EXC/],
    [`'${'x'.repeat(1_100_000)}'`, {}, /TOO_MANY_BYTES/],
    ['max(number) FROM numbers(2000)', { max_rows_to_read: '1000' }, new RegExp(tooManyRows)],
    [
      'max(number) FROM numbers(1000000000001)',
      { max_rows_to_read: '9e12' },
      /^Code: 158\. .*1\.00 trillion/,
    ],
  ];
  for (const [selected, parameters, error] of cases)
    assert.match((await run(`SELECT ${selected}`, parameters)).text, error);
});

test('Settings of a request do not change how its statement and later statements are checked', async (t) => {
  // A new engine, because its first query loads the names of table functions.
  const fresh = await startClickHouse(t);
  const read = async (query: string, parameters = '') => {
    const headers = headersOf(analystAccount);
    const response = await fresh.fetch(`/?${parameters}`, { method: 'POST', body: query, headers });
    return response.text();
  };
  const numbers = 'SELECT number FROM numbers(5)';
  assert.equal(await read(numbers, 'limit=2&offset=1&max_block_size=1'), '1\n2\n');
  assert.equal(await read(numbers, 'extremes=1'), '0\n1\n2\n3\n4\n\n0\n4\n');
  const created = join(fresh.dataDir, 'created');
  assert.match(await read(`DESCRIBE sqlite('${created}', 'y')`), /Table function sqlite: .*READONLY/);
  await assert.rejects(access(created), { code: 'ENOENT' });
});

test('A result that is too large for a document ends with an error, before or after its first rows', async () => {
  const large = `SELECT concat('${'x'.repeat(1000)}', toString(number % 10)) AS x FROM numbers(70000)`;
  const tooLarge = /^Code: 396\. .* use a streamed format: .*CSVWithNames, .* \(TOO_MANY_ROWS_OR_BYTES\)\n$/;
  assert.match((await run(large, { default_format: 'JSON' })).text, tooLarge);
  assert.equal((await run(large, { default_format: 'CSVWithNames' })).text.length, 1004 * 70_000 + 4);
  assert.equal((await run(`${large} FORMAT Null -- comment`)).text, '');
  assert.equal((await run(large, { default_format: 'Hash' })).text.length, 33);

  const query = 'SELECT number FROM numbers(400000)';
  const headers = headersOf(analystAccount);
  const response = await server.fetch('/?max_result_rows=100000', { method: 'POST', body: query, headers });
  const tag = response.headers.get('x-clickhouse-exception-tag');
  let text = '';
  await assert.rejects(async () => {
    for await (const part of response.body ?? []) text += Buffer.from(part).toString();
  });
  const end = text.slice(text.indexOf('\r'));
  assert.ok(end.startsWith(`\r\n__exception__\r\n${tag}\r\nCode: 396.`), end);
  assert.match(end, new RegExp(`\\(TOO_MANY_ROWS_OR_BYTES\\)\n\\d+ ${tag}\r\n__exception__\r\n$`));
  const clickhouse_settings = { max_result_rows: '100000' };
  const rows = await analyst.query({ query, format: 'JSONEachRow', clickhouse_settings });
  await assert.rejects(rows.json(), { code: '396', type: 'TOO_MANY_ROWS_OR_BYTES' });
});

test('A query of an analyst gets one thread while others wait, and all threads otherwise', async () => {
  const query = "SELECT getSetting('max_threads') AS threads, sleep(0.3) FORMAT JSONEachRow";
  const threads = async (): Promise<number> => JSON.parse((await run(query)).text).threads;
  const found = (await Promise.all([1, 2, 3, 4].map(threads))).sort();
  const alone = await threads();
  // The last one always starts with an empty queue. The first one can start before the others arrive.
  assert.deepEqual([...found.slice(0, 2), found.at(-1)], [1, 1, alone]);
});

test('Formats whose blocks cannot be joined are the only formats with limited results', async () => {
  const rows = await selectRows<{ name: string }>(
    service,
    'SELECT name FROM system.formats WHERE is_output ORDER BY name',
  );
  const limited = rows.filter(
    ({ name }) => findStreamFormat('SELECT 1', name, '') === null && !hasNoRows('SELECT 1', name),
  );
  const expected = `
    Arrow Avro AvroConfluent GeoJSON
    JSON JSONColumns JSONColumnsWithMetadata JSONCompact JSONCompactColumns JSONCompactEachRowWithProgress
    JSONCompactStrings JSONCompactStringsEachRowWithProgress JSONEachRowWithProgress JSONObjectEachRow JSONStrings
    JSONStringsEachRowWithProgress LineAsStringWithNames LineAsStringWithNamesAndTypes MySQLWire Npy ODBCDriver2 ORC
    PNG Parquet PostgreSQLWire Pretty PrettyCompact PrettyCompactMonoBlock PrettyCompactNoEscapes
    PrettyCompactNoEscapesMonoBlock PrettyMonoBlock PrettyNoEscapes PrettyNoEscapesMonoBlock PrettySpace
    PrettySpaceMonoBlock PrettySpaceNoEscapes PrettySpaceNoEscapesMonoBlock Prometheus ProtobufList ProtobufSingle
    RawWithNames RawWithNamesAndTypes TSVRawWithNames TSVRawWithNamesAndTypes TabSeparatedRawWithNames
    TabSeparatedRawWithNamesAndTypes Template Vertical XML`;
  assert.deepEqual(
    limited.map(({ name }) => name),
    expected.trim().split(/\s+/),
  );
});

test('A streamed response has the same bytes as the complete document', async () => {
  const names = 'CSV CustomSeparated JSONCompactEachRow JSONCompactStringsEachRow RowBinary TSV'.split(' ');
  const formats = names.flatMap((name) => [name, `${name}WithNames`, `${name}WithNamesAndTypes`]);
  formats.push(
    ...'ArrowStream BSONEachRow Buffers JSONEachRow Markdown MsgPack NDJSON Native PrettyNDJSON'.split(' '),
    ...'Protobuf SQLInsert TSKV TabSeparatedRaw Values'.split(' '),
  );
  // Rows of a SQLInsert statement, as in a block.
  const parameters = 'max_threads=1&output_format_sql_insert_max_batch_size=8192';
  const bytesOf = async (query: string): Promise<Buffer> => {
    const headers = headersOf(analystAccount);
    const response = await server.fetch(`/?${parameters}`, { method: 'POST', body: query, headers });
    assert.equal(response.status, 200, query);
    return Buffer.from(await response.arrayBuffer());
  };
  const columns = `number AS n, if(number % 3 = 0, NULL, toString(number)) AS \`a "b,\\n\\tc\`,
    toLowCardinality(toString(number % 7)) AS l, CAST(number % 2, 'Enum8(\\'no\\' = 0, \\'yes\\' = 1)') AS e,
    [number, 1] AS r, toDateTime64(number, 3, 'UTC') AS t, number / 3 AS f, map('k', number) AS m`;
  for (const format of formats)
    for (const rows of [0, 20_000]) {
      const selected = /^(BSON|Protobuf)/.test(format) ? 'number AS n, toString(n) AS s' : columns;
      const query = `SELECT ${selected} FROM numbers(${rows})`;
      // The word in the comment prevents streaming.
      const whole = await bytesOf(`${query} /* totals */ FORMAT ${format}`);
      const streamed = await bytesOf(`${query} FORMAT ${format}`);
      assert.ok(streamed.equals(whole), `${format}, ${rows} rows`);
    }
});

test('The analyst account lists and reads the tables for analysts and no others', async () => {
  const rows = await selectRows<{ name: string }>(
    service,
    "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine != 'MaterializedView'",
  );
  assert.deepEqual(rows.map(({ name }) => name).sort(), [...analystTables, ...privateTables, 't'].sort());
  for (const query of linesOf(`
    SHOW TABLES
    SELECT name FROM system.tables
    SELECT DISTINCT table FROM system.columns
    SELECT DISTINCT table_name FROM information_schema.columns`))
    assert.deepEqual(sortedLines((await run(query)).text), [...analystTables, 't'].sort(), query);
  assert.equal((await run('SHOW DATABASES')).text, 'skilltrace\n');
  for (const table of analystTables) assert.equal((await run(`SELECT * FROM ${table}`)).status, 200, table);
  const reads = (table: string): string[] =>
    linesOf(`
      SELECT * FROM ${table}
      SELECT count() FROM skilltrace.\`${table}\`
      WITH x AS (SELECT * FROM ${table}) SELECT * FROM x
      SELECT 1 IN ${table}
      SELECT * FROM view(SELECT * FROM ${table})
      SELECT * FROM merge('skilltrace', '^${table}$')
      SELECT * FROM merge(REGEXP('.*'), '^${table}$')
      DESCRIBE ${table}
      DESCRIBE mergeTreeIndex('skilltrace', '${table}')
      SELECT hasColumnInTable('skilltrace', '${table}', 'tenant')
      SHOW CREATE TABLE ${table}
      EXPLAIN QUERY TREE SELECT * FROM ${table}
      EXPLAIN SYNTAX run_query_tree_passes = 1 SELECT * FROM ${table}
      SELECT * FROM {t:Identifier}`);
  for (const query of reads('api_keys')) await assertRejected(query, { param_t: 'api_keys' });
  for (const table of privateTables) await assertRejected(`SELECT * FROM ${table}`);
  await run("SELECT * FROM merge('skilltrace', '.*')");
  const permitted = "SELECT tenant FROM api_keys ELSE null('tenant LowCardinality(String)')";
  await run(`SELECT * FROM viewIfPermitted(${permitted})`);
  assert.equal((await run('WITH api_keys AS (SELECT 1) SELECT * FROM api_keys')).text, '1\n');
});

test('The analyst account reads harmless system tables only, and no path or password in them', async () => {
  for (const table of ['parts', 'processes', 'query_log', 'users']) {
    for (const query of [`SELECT * FROM system.${table}`, `SELECT 1 FROM "system" . \`${table}\``])
      assert.equal((await run(query)).status, 403, query);
    // The parser does not see these names. The tables are empty for the analyst.
    const matched = await run(`SELECT count() FROM merge('sys' || 'tem', '^${table}$')`);
    assert.match(matched.text, /^(0\n|Code: 636)/, table);
    const parameters = { param_d: 'system', param_t: table };
    const { text } = await run('SELECT count() FROM {d:Identifier}.{t:Identifier}', parameters);
    assert.match(text, /^(0\n|Code: )/);
  }
  assert.equal((await run('SELECT * FROM parts', { database: 'system' })).status, 403);
  const listTables = "SELECT name FROM system.tables WHERE database = 'system'";
  const tables = await selectRows<{ name: string }>(service, listTables);
  assert.ok(tables.length > 50);
  for (const { name } of tables) await run(`SELECT * FROM system.${name} LIMIT 2000`);
  const columns =
    `* | t.* | DISTINCT * | tuple(*) | * APPLY(x -> toString(x)) | * EXCEPT name | [*] | COLUMNS('a') |
    * REPLACE(1 AS name) | * LIKE '%a%' | argMax(tuple(*), 1) | COLUMNS(name, data_path) | data_path |
    t.\`data\\x5fpath\` | {c:Identifier} | 1, * | c, d`.split(/ \|\s+/);
  for (const table of ['databases', 'tables']) {
    const merged = `merge('sys' || 'tem', '^${table}$') AS t`;
    for (const source of [`system.${table} AS t`, merged, `system.${table} AS t(a, b, c, d)`])
      for (const column of columns) await run(`SELECT ${column} FROM ${source}`, { param_c: 't.data_path' });
  }
});

test('The analyst account answers the queries of DBeaver, Metabase, Grafana and Superset', async () => {
  // From the sources of these tools, with the names of this schema.
  const queries = linesOf(`
    SELECT currentUser() AS user, timezone() AS timezone, version() AS version LIMIT 1
    SELECT name, value FROM system.settings WHERE name IN ('max_threads', 'session_timezone')
    SELECT name AS TABLE_SCHEM, null AS TABLE_CATALOG FROM system.databases ORDER BY name
    SELECT t.database AS s, t.engine, t.comment AS REMARKS FROM system.tables AS t WHERE t.database LIKE '%'
    SELECT name, description FROM system.functions WHERE is_aggregate = 1 LIMIT 10
    SELECT name, case_insensitive, alias_to FROM system.data_type_families ORDER BY name
    SELECT * FROM system.data_skipping_indices
    SELECT * FROM skilltrace.attempts WHERE 0
    SELECT * FROM system.databases
    SELECT * FROM system.tables WHERE database = 'skilltrace'
    SHOW CREATE TABLE skilltrace.attempts
    SELECT name, create_table_query FROM system.tables WHERE database = 'skilltrace' AND name = 'goals'
    SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns
    SELECT \`skilltrace\`.\`attempts\`.\`skill_id\` AS \`skill_id\`, count(*) AS \`count\` FROM attempts GROUP BY 1
    SELECT displayName(), version(), revision(), timezone()
    DESC TABLE "skilltrace"."attempts"
    SHOW TABLES FROM skilltrace
    EXPLAIN AST SELECT 1
    SELECT toStartOfInterval(received_at, INTERVAL 60 second) AS time, avg(is_correct) FROM attempts GROUP BY time
    SHOW FUNCTIONS
    SELECT time_zone FROM system.time_zones LIMIT 1
    SELECT * FROM information_schema.tables
    SELECT * FROM information_schema.schemata`);
  for (const query of queries) assert.equal((await run(query, { database: 'default' })).status, 200, query);
});
