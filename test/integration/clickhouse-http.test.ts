/** The HTTP interface of the embedded ClickHouse, with the account of the service. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { ClickHouseError, createClient } from '@clickhouse/client';
import { indices } from '../../src/lists.js';
import {
  analystAccount,
  headersOf,
  serviceAccount,
  startClickHouse,
} from '../support/servers/clickhouse-child.js';
import { waitFor } from '../support/wait.js';

const folder = await mkdtemp(join(tmpdir(), 'skilltrace-clickhouse-'));
// The engine reads these characters as a pattern when it reads the rows of an insert from this folder.
const server = await startClickHouse({ after }, join(folder, 'a{b,c}*?'));
after(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
const client = server.client();
const analyst = server.client(analystAccount);
const codeOf = (response: Response): string | null => response.headers.get('x-clickhouse-exception-code');
const post = (path: string, body: string | Buffer, headers: Record<string, string> = {}): Promise<Response> =>
  server.fetch(path, { method: 'POST', body, headers: { ...headersOf(serviceAccount), ...headers } });

async function value(query: string, query_params: Record<string, unknown> = {}): Promise<unknown> {
  const rows = await client.query({ query, query_params, format: 'JSONCompactEachRow' });
  return (await rows.json<unknown[]>())[0]?.[0];
}

async function insert(path: string, body: string | Buffer, headers: Record<string, string> = {}) {
  const response = await post(path, body, headers);
  assert.equal(response.status, 200, await response.text());
  return JSON.parse(response.headers.get('x-clickhouse-summary') ?? '{}').written_rows;
}

async function errorOf(work: Promise<unknown>): Promise<ClickHouseError> {
  const error: unknown = await work.then(
    () => null,
    (reason) => reason,
  );
  assert.ok(error instanceof ClickHouseError, String(error));
  return error;
}

test('The embedded ClickHouse answers pings without credentials', async () => {
  for (const select of [false, true]) assert.equal((await client.ping({ select })).success, true);
  assert.equal(await (await server.fetch('/ping', { headers: {} })).text(), 'Ok.\n');
  assert.equal((await server.fetch('/ping', { method: 'HEAD', headers: {} })).status, 200);
});

test('The embedded ClickHouse passes query parameters without changing a character', async () => {
  const texts = `it's|"a"|back\\slash|tab\t|line\nbreak|é 😀||\\N|\\'); DROP|{x:String}`.split('|');
  assert.deepEqual(await value('SELECT {a:Array(String)}', { a: texts }), texts);
  const at = new Date(1_700_000_000_123);
  const cases: [query: string, parameter: unknown, expected: unknown][] = [
    ...texts.map((text): [string, string, string] => ['SELECT {p:String}', text, text]),
    ['SELECT {p:Nullable(Int64)}', null, null],
    ['SELECT toUInt8(count()) FROM system.{p:Identifier}', 'one', 1],
    ["SELECT toString({p:DateTime64(3, 'UTC')})", at, '2023-11-14 22:13:20.123'],
    ['SELECT {p:Map(String, UInt8)}', { a: 1 }, { a: 1 }],
  ];
  for (const [query, p, expected] of cases) assert.deepEqual(await value(query, { p }), expected, query);
  await errorOf(value('SELECT count() FROM {t:Identifier}', { t: 'system.one' }));
});

test('The embedded ClickHouse isolates the parameters of concurrent requests', async () => {
  const numbers = indices(40).map(String);
  assert.deepEqual(await Promise.all(numbers.map((p) => value('SELECT {p:String}', { p }))), numbers);
  assert.equal((await errorOf(value('SELECT {p:String}'))).type, 'UNKNOWN_QUERY_PARAMETER');
});

test('The embedded ClickHouse accepts inserts as arrays, streams, statements, TSV, gzip and binary', async () => {
  await client.command({ query: 'CREATE TABLE ways (a UInt32, b String) ENGINE = MergeTree ORDER BY a' });
  const packed = createClient({
    url: `${server.url}/skilltrace`,
    ...{ username: serviceAccount.name, password: serviceAccount.password },
    compression: { request: true, response: true },
  });
  after(() => packed.close());
  const format = 'JSONEachRow';
  const rows = ["x'\t\n\\", 'é'].map((b, i) => ({ a: i + 1, b }));
  await client.insert({ table: 'ways', values: rows, format });
  const stream = Readable.from([{ a: 3, b: 'c' }]);
  await client.insert({ table: 'skilltrace.ways', values: stream, format, columns: ['a', 'b'] });
  const lines = Readable.from('4\td\n5\te\n', { objectMode: false });
  await client.insert({ table: 'ways', values: lines, format: 'TabSeparated' });
  await client.insert({ table: 'ways', values: [{ a: 6 }], format, columns: { except: ['b'] } });
  await client.command({ query: "INSERT INTO ways VALUES (7, 'a;b -- c')" });
  await client.command({ query: 'INSERT INTO ways SELECT 8, toString(8)' });
  // Longer than the longest statement without its rows.
  await client.command({ query: `INSERT INTO ways VALUES (9, '${';'.repeat(300_000)}')` });
  await insert('/', 'INSERT INTO ways (a, b) SETTINGS async_insert = 0 FORMAT TSV\n10\ti\n');
  const gzip = { 'Content-Encoding': 'gzip' };
  await insert('/?query=INSERT+INTO+ways+FORMAT+JSONEachRow', gzipSync('{"a":11,"b":"z"}\n'), gzip);
  await packed.insert({ table: 'ways', values: [{ a: 12, b: 'packed' }], format });
  const clickhouse_settings = { async_insert: 1, wait_for_async_insert: 1 } as const;
  await client.insert({ table: 'ways', values: [{ a: 13, b: 'async' }], format, clickhouse_settings });
  const binary = Buffer.from([14, 0, 0, 0, 2, 0xff, 0x0a, 15, 0, 0, 0, 0]);
  assert.equal(await insert('/?query=INSERT+INTO+ways+FORMAT+RowBinary', binary), '2');
  // A backup of an empty table has only this line.
  assert.equal(await insert('/?query=INSERT+INTO+ways+FORMAT+CSVWithNames', '"a","b"\n'), '0');
  const found = await packed.query({ query: 'SELECT b FROM ways WHERE a < 14 ORDER BY a', format });
  const texts = (await found.json<{ b: string }>()).map(({ b }) => b);
  const [long] = texts.splice(8, 1, 'long');
  assert.equal(texts.join(), "x'\t\n\\,é,c,d,e,,a;b -- c,8,long,i,z,packed,async");
  assert.equal(long, ';'.repeat(300_000));
  assert.deepEqual(await value('SELECT groupArray(hex(b)) FROM ways WHERE a > 13'), ['FF0A', '']);
});

test('The embedded ClickHouse stores a large insert in many chunks as a whole or not at all', async () => {
  await client.command({ query: 'CREATE TABLE large (a UInt32, b String) ENGINE = MergeTree ORDER BY a' });
  // More rows than a block of the parser has, and more bytes than one of its chunks.
  const text = `1\t${'z'.repeat(160)}\n`.repeat(70_000);
  const path = '/?query=INSERT+INTO+large+(a,b)+FORMAT+TabSeparated';
  assert.equal(await insert(path, text), '70000');
  const bad = await post(path, `${text}oops\tx\n`);
  assert.deepEqual([bad.status, codeOf(bad)], [400, '27']);
  await bad.text();
  assert.equal(Number(await value('SELECT count() FROM large')), 70_000);
});

test('The embedded ClickHouse stores a retried insert with the same token once, also in views', async () => {
  const window = 'SETTINGS non_replicated_deduplication_window = 10000';
  for (const query of [
    `CREATE TABLE raw (k UInt32, v UInt32) ENGINE = MergeTree ORDER BY k ${window}`,
    `CREATE TABLE sums (k UInt32, n UInt64) ENGINE = SummingMergeTree ORDER BY k ${window}`,
    'CREATE MATERIALIZED VIEW to_sums TO sums AS SELECT k, count() AS n FROM raw GROUP BY k',
  ])
    await client.command({ query });
  const inView = 'deduplicate_blocks_in_dependent_materialized_views=1';
  const path = `/?query=INSERT+INTO+raw+FORMAT+TSV&insert_deduplication_token=a&${inView}`;
  const statement = `INSERT INTO raw SETTINGS insert_deduplication_token='b', ${inView} FORMAT TSV\n7\t7\n`;
  for (const _ of ['insert', 'retry']) {
    await insert(path, '1\t1\n1\t2\n2\t3\n');
    await insert('/', statement);
  }
  assert.equal(Number(await value('SELECT count() FROM raw')), 4);
  assert.equal(Number(await value('SELECT sum(n) FROM sums')), 4);
});

test('The embedded ClickHouse reports errors with the status, code and type of ClickHouse', async () => {
  const cases = [
    ['SELEC 1', '62', 'SYNTAX_ERROR'],
    ['SELECT * FROM nowhere', '60', 'UNKNOWN_TABLE'],
    ['SELECT nothing FROM system.one', '47', 'UNKNOWN_IDENTIFIER'],
    ["SELECT throwIf(1, 'mine')", '395', 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO'],
    ['SELECT 1; SELECT 2', '62', 'SYNTAX_ERROR'],
    ['SELECT * FROM none.t', '81', 'UNKNOWN_DATABASE'],
  ] as const;
  for (const [query, ...expected] of cases) {
    for (const format of ['JSON', 'JSONEachRow'] as const) {
      const error = await errorOf(client.query({ query, format }).then((rows) => rows.text()));
      assert.deepEqual([error.code, error.type], expected, query);
    }
  }
  const setting = await server.fetch('/?query=SELECT+1&no_such_setting=1');
  assert.deepEqual([setting.status, codeOf(setting)], [404, '115']);
  assert.match(await setting.text(), /^Code: 115\. DB::Exception: .*\(UNKNOWN_SETTING\)\n$/);
  const invalidUtf8 = await post('/', Buffer.from("SELECT '\xff'", 'latin1'));
  assert.deepEqual([invalidUtf8.status, codeOf(invalidUtf8)], [400, '62']);
  await invalidUtf8.text();
});

test('The embedded ClickHouse reads query, database and format from path, query string and body', async () => {
  const cases: [path: string, body: string | null, expected: string][] = [
    ['/?query=SELECT+1', null, '1\n'],
    ['/', 'SELECT 1', '1\n'],
    ['/?query=SELECT&', '2', '2\n'],
    ['/?query=SELECT+1+AS+a&default_format=JSONEachRow', null, '{"a":1}\n'],
    ['/?query=SELECT+1+AS+n&default_format=TabSeparatedWithNames', null, 'n\n1\n'],
    ['/?query=SELECT+currentDatabase()&database=system', null, 'system\n'],
    ['/system?query=SELECT+currentDatabase()', null, 'system\n'],
    ['/?query=SELECT+currentDatabase()', null, 'skilltrace\n'],
  ];
  for (const [path, body, expected] of cases) {
    const response = await (body === null ? server.fetch(path) : post(path, body));
    assert.equal(await response.text(), expected, path);
  }
  const write = await server.fetch('/?query=CREATE+TABLE+g+(a+Int8)+ENGINE+=+Memory');
  assert.deepEqual([write.status, codeOf(write)], [500, '164'], 'GET is read-only');
  await write.text();
  for (const path of ['/no/such/path', '/nodb?query=SELECT+1'])
    assert.equal((await server.fetch(path)).status, 404, path);
  assert.equal((await server.fetch('/', { method: 'DELETE' })).status, 404);
});

test('The embedded ClickHouse reads credentials from headers, then Authorization, then the query', async () => {
  const { name, password } = serviceAccount;
  const statusOf = async (headers: Record<string, string>, inQuery: Record<string, string> = {}) => {
    const path = `/?${new URLSearchParams({ query: 'SELECT 1', ...inQuery })}`;
    const response = await server.fetch(path, { headers });
    const text = await response.text();
    if (response.status !== 200) {
      assert.deepEqual([response.status, codeOf(response)], [403, '516']);
      assert.match(text, /\(AUTHENTICATION_FAILED\)\n$/);
    }
    return response.status;
  };
  const Authorization = `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
  const inQuery = { user: name, password };
  const wrong = { 'X-ClickHouse-User': name, 'X-ClickHouse-Key': 'no' };
  assert.equal(await statusOf({ Authorization }), 200);
  assert.equal(await statusOf({}, inQuery), 200);
  assert.equal(await statusOf({ ...wrong, Authorization }, inQuery), 403);
  for (const headers of [{}, { 'X-ClickHouse-User': name }, wrong])
    assert.equal(await statusOf(headers), 403);
});

test('The embedded ClickHouse streams rows, keeps a document whole, and cuts off a failed response', async () => {
  const query = 'SELECT number FROM numbers(200000)';
  for (const format of ['JSON', 'JSONCompact'] as const) {
    const document = await (await client.query({ query, format })).json<unknown>();
    assert.deepEqual([document.rows, document.data.length], [200_000, 200_000]);
  }
  const csv = await (await post('/', `${query} FORMAT CSVWithNames`)).text();
  assert.equal(csv.split('\n').filter((line) => line === '"number"').length, 1);
  const hidden = await (await post('/', "SELECT '--', number FROM numbers(100000) FORMAT/**/JSON")).json();
  assert.equal((hidden as { rows: number }).rows, 100_000);
  let rows = 0;
  const read = async (streamedQuery: string): Promise<void> => {
    const streamed = await client.query({ query: streamedQuery, format: 'JSONEachRow' });
    for await (const block of streamed.stream()) rows += block.length;
  };
  await read(query);
  assert.equal(rows, 200_000);
  const settings = 'SETTINGS max_threads = 1, max_block_size = 8192';
  await assert.rejects(read(`SELECT throwIf(number = 150000) FROM numbers(200000) ${settings}`));
  assert.ok(rows > 200_000, 'no row came before the error');
  const clickhouse_settings = { max_result_bytes: '100000' };
  const large = client.query({ query, format: 'JSON', clickhouse_settings });
  assert.equal((await errorOf(large)).type, 'TOO_MANY_ROWS_OR_BYTES');
});

test('The embedded ClickHouse serves the service during slow queries of analysts', async () => {
  const hangUp = new AbortController();
  const query = 'SELECT sum(sipHash64(number, 1)) FROM numbers(300000000000)';
  let hasEnded = false;
  const slow = analyst.query({ query, format: 'TabSeparated', abort_signal: hangUp.signal }).catch(() => {
    hasEnded = true;
  });
  for (let index = 0; index < 5; index += 1) assert.equal(Number(await value(`SELECT ${index}`)), index);
  await client.insert({ table: 'ways', values: [{ a: 20, b: '' }], format: 'JSONEachRow' });
  // Blocks the engine while it plans the query.
  const planning = value('SELECT (SELECT sleep(2))');
  assert.equal((await client.ping()).success, true);
  assert.equal(hasEnded, false);
  await planning;
  hangUp.abort();
  await slow;
});

test('The embedded ClickHouse ends the query of a client that hangs up or reads slowly', async () => {
  const query = 'SELECT sum(sipHash64(number, 2)) FROM numbers(300000000000)';
  for (let index = 0; index < 8; index += 1) {
    const abort_signal = AbortSignal.timeout(1 + index * 8);
    await assert.rejects(analyst.query({ query, format: 'TabSeparated', abort_signal }));
  }
  const headers = headersOf(analystAccount);
  const body = "SELECT repeat('x', 1000) FROM numbers(10000000)";
  const unread = await server.fetch('/?max_execution_time=1', { method: 'POST', body, headers });
  const next = await analyst.query({ query: 'SELECT 1', format: 'TabSeparated' });
  assert.equal(await next.text(), '1\n');
  await assert.rejects(unread.text());
  // The counting query also contains the text.
  const running = "SELECT count() FROM system.processes WHERE match(query, 'sipHash|repeat')";
  await waitFor('the queries to end', async () => Number(await value(running)) === 1);
});
