/** What an analyst of a deployment may read: rows, by the names in docs/schema.md, and what tools ask of catalogues. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import { analystTables } from '../../src/contracts/settings/analyst-tables.js';
import { startOnFreePort } from '../../src/embedded/free-port.js';
import { startClickhouse } from '../../src/embedded/start-clickhouse.js';
import { createLogger } from '../../src/logger.js';
import { connectWarehouse, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createSchema } from '../../src/warehouse/schema/create-schema.js';
import { temporaryFolder } from '../support/servers/clickhouse-child.js';

let folder: { path: string; remove: () => Promise<void> };
let server: ReturnType<typeof startClickhouse>;
let service: ClickHouseClient;

const analystLimits = { seconds: 50, memoryBytes: 2 ** 30, rows: 1_000_000 };

/** Kept from analysts; a new table has to be put here or into `analystTables`. */
const kept = ['api_keys', 'deployments', 'erasures', 'schema_migrations', 'webhooks', 'xapi_mappings'];

before(async () => {
  folder = await temporaryFolder();
  server = await startOnFreePort(async (port) => {
    const passwords = { password: 'a', analystPassword: 'b' };
    const logger = createLogger('silent', 'test');
    const started = startClickhouse({ dir: folder.path, port, ...passwords, logger, analystLimits });
    await started.ready;
    return started;
  });
  service = connectWarehouse(server.clickhouseUrl);
  await createSchema(service);
  await service.command({
    query: "INSERT INTO api_keys (tenant, sealed_hash) VALUES ('kept-tenant', 'kept-hash')",
  });
});

after(async () => {
  await service.close();
  await server.stop(10_000);
  await folder.remove();
});

async function ask(
  query: string,
  parameters: Record<string, string> = {},
): Promise<{ status: number; text: string }> {
  const url = new URL(server.analystUrl);
  const authorization = `Basic ${btoa(`${url.username}:${url.password}`)}`;
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  const [username, password] = ['', ''];
  Object.assign(url, { username, password });
  const response = await fetch(url, { method: 'POST', body: query, headers: { authorization } });
  return { status: response.status, text: await response.text() };
}

/** @returns the status */
async function assertTellsNothing(query: string, parameters: Record<string, string> = {}): Promise<number> {
  const { status, text } = await ask(query, parameters);
  for (const secret of [folder.path, 'kept-tenant', 'kept-hash', 'key_id'])
    assert.ok(!text.includes(secret), `${query} told ${text.slice(0, 300)}`);
  return status;
}

const sortedNames = (text: string): string[] => text.trim().split('\n').sort();

test('every table is for analysts or kept from them, and lists tell of the former only', async () => {
  const rows = await selectRows<{ name: string }>(service, 'SHOW TABLES');
  const views = await selectRows<{ name: string }>(
    service,
    "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine = 'MaterializedView'",
  );
  const tables = rows.map(({ name }) => name).filter((name) => !views.some((view) => view.name === name));
  assert.deepEqual(tables.sort(), [...analystTables, ...kept].sort());
  for (const query of [
    'SHOW TABLES',
    'SELECT name FROM system.tables',
    'SELECT DISTINCT table FROM system.columns',
    'SELECT DISTINCT table_name FROM information_schema.columns',
  ]) {
    assert.deepEqual(sortedNames((await ask(query)).text), [...analystTables], query);
  }
  assert.equal((await ask('SHOW DATABASES')).text, 'skilltrace\n');
});

test('the limits of the service hold, and can only be lowered', async () => {
  const names = ['max_execution_time', 'max_memory_usage', 'max_rows_to_read'];
  const told = async (wanted: string) =>
    (
      await ask(
        `SELECT ${names.map((name) => `getSetting('${name}')`)}`,
        Object.fromEntries(names.map((name) => [name, wanted])),
      )
    ).text;
  for (const wanted of ['0', '-1', '9999999999'])
    assert.equal(await told(wanted), '50\t1073741824\t1000000\n');
  const { text } = await ask('SELECT max(number) FROM numbers(1000001)', { max_rows_to_read: '2000000' });
  assert.match(text, /^Code: 158\. .*max rows: 1\.00 million.*ANALYST_MAX_ROWS/);
});

test('each of them can be read, the others by no way', async () => {
  for (const table of analystTables) assert.equal((await ask(`SELECT * FROM ${table}`)).status, 200, table);
  for (const table of kept) {
    for (const query of [
      `SELECT * FROM ${table}`,
      `SELECT count() FROM skilltrace.\`${table}\``,
      `WITH x AS (SELECT * FROM ${table}) SELECT * FROM x`,
      `SELECT (SELECT count() FROM ${table})`,
      `SELECT 1 IN ${table}`,
      `SELECT * FROM view(SELECT * FROM ${table})`,
      `SELECT * FROM attempts WHERE exists(SELECT * FROM ${table})`,
      `SELECT * FROM merge('skilltrace', '^${table}$')`,
      `SELECT * FROM merge(REGEXP('.*'), '^${table}$')`,
      `DESCRIBE ${table}`,
      `DESCRIBE mergeTreeIndex('skilltrace', '${table}')`,
      `SELECT hasColumnInTable('skilltrace', '${table}', 'tenant')`,
      `EXISTS TABLE ${table}`,
      `SHOW CREATE TABLE ${table}`,
      `EXPLAIN SELECT * FROM ${table}`,
      `EXPLAIN QUERY TREE SELECT * FROM ${table}`,
      `EXPLAIN SYNTAX run_query_tree_passes = 1 SELECT * FROM ${table}`,
      'SELECT * FROM {t:Identifier}',
    ]) {
      assert.notEqual(await assertTellsNothing(query, { param_t: table }), 200, query);
    }
  }
  await assertTellsNothing("SELECT * FROM merge('skilltrace', '.*')");
  await assertTellsNothing(
    "SELECT * FROM viewIfPermitted(SELECT tenant FROM api_keys ELSE null('tenant LowCardinality(String)'))",
  );
  assert.equal((await ask('WITH api_keys AS (SELECT 1) SELECT * FROM api_keys')).text, '1\n');
});

test('of the engine only harmless tables are told, and of those no path', async () => {
  for (const table of [
    'parts',
    'processes',
    'errors',
    'disks',
    'mutations',
    'query_log',
    'server_settings',
    'users',
  ]) {
    for (const query of [`SELECT * FROM system.${table}`, `SELECT 1 FROM "system" . \`${table}\``]) {
      const { status, text } = await ask(query);
      assert.equal(status, 403, `${query}: ${text}`);
    }
    // Names that no parser sees: nothing stands in them.
    const matched = await ask(`SELECT count() FROM merge('sys' || 'tem', '^${table}$')`);
    assert.match(matched.text, /^(0\n|Code: 636)/, table);
    const named = { param_d: 'system', param_t: table };
    assert.match(
      (await ask('SELECT count() FROM {d:Identifier}.{t:Identifier}', named)).text,
      /^(0\n|Code: )/,
      table,
    );
  }
  for (const show of ['PROCESSLIST', 'CLUSTERS', 'ACCESS', 'USERS', 'MERGES', 'GRANTS'])
    assert.notEqual((await ask(`SHOW ${show}`)).status, 200, show);
  assert.equal((await ask('SELECT * FROM parts', { database: 'system' })).status, 403);
  const all = [
    '*',
    't.*',
    'DISTINCT *',
    'tuple(*)',
    '* APPLY(x -> toString(x))',
    '* EXCEPT name',
    '[*]',
    "COLUMNS('a')",
  ];
  all.push(
    '* REPLACE(1 AS name)',
    "t.COLUMNS('a')",
    "* LIKE '%a%'",
    'argMax(tuple(*), 1)',
    'COLUMNS(name, data_path)',
  );
  all.push(
    'data_path',
    't.`data\\x5fpath`',
    'metadata_path',
    'data_paths',
    '{c:Identifier}',
    '1, *',
    'c',
    'd',
  );
  for (const table of ['databases', 'tables'])
    for (const columns of all)
      for (const from of [
        `system.${table} AS t`,
        `merge('sys' || 'tem', '^${table}$') AS t`,
        `system.${table} AS t(a, b, c, d)`,
      ])
        await assertTellsNothing(`SELECT ${columns} FROM ${from}`, { param_c: 't.data_path' });
  for (const name of [
    'hostName',
    'fqdn',
    'serverUUID',
    'tcpPort',
    'filesystemAvailable',
    'getOSKernelVersion',
  ])
    assert.notEqual((await ask(`SELECT ${name}()`)).status, 200, name);
});

test('a `*` that multiplies or counts stays what it is', async () => {
  const query = `SELECT 2 * 3, number * 2, (number) * 2, [1][1] * 2, 'a' || toString(n * 2), CASE WHEN 1 THEN 2 * 3 END * 2, A * n,
    3 AS A, number + 1 AS n, (SELECT count(*) * 2 FROM numbers(3)) FROM numbers(1) WHERE 1 * 2 AND NOT (2 * 3 = 5)`;
  assert.equal((await ask(query)).text, '6\t0\t0\t2\ta2\t12\t3\t3\t1\t6\n');
});

/** As their sources have them, with names of this schema. */
const toolQueries = {
  'clickhouse-jdbc (DBeaver, Metabase)': [
    'SELECT currentUser() AS user, timezone() AS timezone, version() AS version LIMIT 1',
    "SELECT name, value FROM system.settings WHERE name IN ('max_threads', 'session_timezone')",
    'SELECT name AS TABLE_SCHEM, null AS TABLE_CATALOG FROM system.databases ORDER BY name',
    "SELECT '' AS TABLE_CAT, t.database AS TABLE_SCHEM, t.name AS TABLE_NAME, t.engine, t.comment AS REMARKS FROM system.tables AS t WHERE t.database LIKE '%' AND t.name LIKE '%' ORDER BY t.database, t.name",
    "SELECT database, table, name, type, default_kind, default_expression, comment, position, is_in_primary_key FROM system.columns WHERE database LIKE 'skilltrace' AND table LIKE 'attempts' ORDER BY position",
    "SELECT name FROM system.functions WHERE name LIKE '%' ORDER BY name",
    'SELECT name, case_insensitive, alias_to FROM system.data_type_families ORDER BY name',
    'SELECT name FROM system.table_engines ORDER BY name ASC',
    'SELECT * FROM system.data_skipping_indices',
    'SELECT * FROM skilltrace.attempts WHERE 0',
  ],
  DBeaver: [
    'SELECT * FROM system.databases',
    "SELECT * FROM system.tables WHERE database = 'skilltrace'",
    'SHOW CREATE TABLE skilltrace.attempts',
    "SELECT name, create_table_query FROM system.tables WHERE database = 'skilltrace' AND name = 'goals'",
    'SELECT name, description FROM system.functions WHERE is_aggregate = 1 LIMIT 10',
    'EXPLAIN SELECT count() FROM skilltrace.attempts',
  ],
  Metabase: [
    'SELECT 1',
    "SELECT name FROM system.databases WHERE name NOT IN ('system', 'information_schema', 'INFORMATION_SCHEMA')",
    "SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'skilltrace'",
    'SELECT `skilltrace`.`attempts`.`skill_id` AS `skill_id`, count(*) AS `count` FROM `skilltrace`.`attempts` GROUP BY `skilltrace`.`attempts`.`skill_id` LIMIT 10000',
    'SELECT toStartOfDay(toDateTime(occurred_at)) AS day, count(*) AS n FROM attempts GROUP BY day ORDER BY day',
  ],
  Grafana: [
    'SELECT displayName(), version(), revision(), timezone()',
    'SELECT name FROM system.databases s',
    "SELECT name FROM system.tables WHERE database = 'skilltrace'",
    'DESC TABLE "skilltrace"."attempts"',
    "SELECT name, type, comment FROM system.columns WHERE database = 'skilltrace' AND table = 'attempts'",
    'SHOW DATABASES',
    'SHOW TABLES FROM skilltrace',
    'SELECT name FROM system.functions',
    'EXPLAIN AST SELECT 1',
    'SELECT timezone()',
    'SELECT toStartOfInterval(received_at, INTERVAL 60 second) AS time, avg(is_correct) FROM attempts WHERE received_at >= toDateTime(1700000000) GROUP BY time ORDER BY time',
  ],
  'clickhouse-connect (Superset)': [
    'SELECT version(), timezone()',
    'SELECT name, value, readonly AS readonly FROM system.settings LIMIT 10000',
    'SHOW FUNCTIONS',
    'SELECT time_zone FROM system.time_zones LIMIT 1',
    'SELECT * FROM information_schema.tables',
    'SELECT * FROM information_schema.schemata',
  ],
};

test('what tools ask when they connect and browse is answered', async () => {
  for (const [tool, queries] of Object.entries(toolQueries))
    for (const query of queries) {
      assert.equal(await assertTellsNothing(query, { database: 'default' }), 200, `${tool}: ${query}`);
    }
  const listed = await ask("SELECT name FROM system.tables WHERE database = 'skilltrace'");
  assert.deepEqual(sortedNames(listed.text), [...analystTables]);
});
