/** How far an analyst's account reaches: what the engine has beside the tables, and other ways to the same ends. */
import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  analystAccount,
  type ClickHouseChild,
  serviceAccount,
  startClickHouse,
  temporaryFolder,
} from '../support/servers/clickhouse-child.js';

let server: ClickHouseChild;
let folder: { path: string; remove: () => Promise<void> };

before(async () => {
  folder = await temporaryFolder();
  server = await startClickHouse(join(folder.path, 'data'));
  await writeFile(join(folder.path, 'secret'), 'TOP-SECRET\n');
});

after(async () => {
  await server.stop();
  await folder.remove();
});

const headers = { 'X-ClickHouse-User': analystAccount.name, 'X-ClickHouse-Key': analystAccount.password };

async function ask(
  query: string,
  parameters: Record<string, string> = {},
  method = 'POST',
): Promise<{ status: number; text: string }> {
  const url = `/?${new URLSearchParams({ max_execution_time: '5', ...parameters })}`;
  const response = await server.fetch(
    url,
    method === 'POST' ? { method, body: query, headers } : { method, headers },
  );
  return { status: response.status, text: await response.text() };
}

test('no table of the engine tells a password', async () => {
  const listed = await server.fetch("/?query=SELECT name FROM system.tables WHERE database = 'system'");
  const tables = (await listed.text()).trim().split('\n');
  assert.ok(tables.length > 50);
  for (const table of tables) {
    const { text } = await ask(`SELECT * FROM system.${table} LIMIT 2000`);
    for (const secret of [serviceAccount.password, analystAccount.password, 'TOP-SECRET', folder.path])
      assert.ok(!text.includes(secret), `${table}: ${secret}`);
  }
});

test('no other way to a file, a server, a process or a change', async () => {
  const file = join(folder.path, 'secret');
  const statements = [
    `SELECT * FROM fileCluster('default', '${file}')`,
    "SELECT * FROM urlCluster('default', 'http://127.0.0.1:1')",
    "SELECT * FROM remoteSecure('127.0.0.1', 'system.one')",
    "SELECT * FROM clusterAllReplicas('default', system.one)",
    "SELECT * FROM azureBlobStorage('a')",
    "SELECT * FROM gcs('http://127.0.0.1:1/a/b')",
    "SELECT * FROM hdfs('hdfs://127.0.0.1:1/a')",
    "SELECT * FROM jdbc('a', 'b')",
    "SELECT * FROM odbc('a', 'b', 'c')",
    "SELECT * FROM mongodb('127.0.0.1:1', 'a', 'b', 'c', 'd', 'e String')",
    "SELECT * FROM iceberg('a')",
    "SELECT * FROM hudi('a')",
    "SELECT * FROM executablePool('x', 'TSV', 'a String')",
    "SELECT * FROM dictionary('d')",
    "SELECT dictGet('d', 'a', 1)",
    "SELECT * FROM input('a Int8')",
    "SELECT * FROM fuzzQuery('SELECT 1')",
    `CREATE DICTIONARY d (a UInt8) PRIMARY KEY a SOURCE(FILE(path '${file}' format 'CSV')) LAYOUT(FLAT()) LIFETIME(1)`,
    `SYSTEM RELOAD DICTIONARY d`,
    'SYSTEM DROP MARK CACHE',
    'KILL QUERY WHERE 1 SYNC',
    'KILL MUTATION WHERE 1',
    'BEGIN TRANSACTION',
    'SET ROLE ALL',
    `EXPLAIN AST SELECT file('${file}')`,
    `EXPLAIN QUERY TREE SELECT file('${file}')`,
    "EXPLAIN TABLE OVERRIDE mysql('a', 'b', 'c', 'd', 'e')",
    `WITH file('${file}') AS x SELECT x`,
    `SELECT {f:Identifier}('${file}')`,
    `SELECT * FROM {f:Identifier}('${file}')`,
    `SELECT * FROM viewExplain('EXPLAIN', '', (SELECT file('${file}')))`,
    "SELECT getClientHTTPHeader('X-ClickHouse-Key')",
    "SELECT aiGenerateSQL('x')",
    'SELECT addressToLine(1)',
    'SELECT demangle(addressToSymbol(1))',
    'SELECT showCertificate()',
    'SELECT 1 SETTINGS readonly = 0, allow_introspection_functions = 1',
  ];
  for (const statement of statements) {
    const { status, text } = await ask(statement, { param_f: 'file' });
    assert.notEqual(status, 200, `${statement}: ${text.slice(0, 200)}`);
    assert.ok(!text.includes('TOP-SECRET'), statement);
  }
  assert.deepEqual((await readdir(folder.path)).sort(), ['data', 'secret']);
});

test('neither the method nor the way in which an account is told opens more', async () => {
  const { name, password } = analystAccount;
  for (const method of ['GET', 'POST']) {
    for (const more of [
      {},
      { readonly: '0' },
      { user: 'skilltrace' },
      { role: 'admin' },
      { session_id: 'x' },
    ]) {
      const parameters = { query: 'DROP TABLE IF EXISTS attempts', user: name, password, ...more };
      const { status, text } = await ask('', parameters, method);
      assert.notEqual(status, 200, `${method} ${JSON.stringify(more)}: ${text}`);
    }
  }
  for (const wrong of [password.slice(0, -1), `${password}x`, '', password.toUpperCase()]) {
    const response = await server.fetch('/?query=SELECT%201', {
      headers: { ...headers, 'X-ClickHouse-Key': wrong },
    });
    assert.equal(response.status, 403, wrong);
    assert.ok(!(await response.text()).includes(password));
  }
});
