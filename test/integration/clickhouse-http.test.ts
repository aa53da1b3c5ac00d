import assert from 'node:assert/strict';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type ClickHouseClient, ClickHouseError, createClient } from '@clickhouse/client';
import {
  analystAccount,
  type ClickHouseChild,
  serviceAccount,
  startClickHouse,
  temporaryFolder,
} from '../support/servers/clickhouse-child.js';

const limit = { timeout: 60_000 };
let server: ClickHouseChild;
let client: ClickHouseClient;
let removeFolder: () => Promise<void>;

before(async () => {
  const folder = await temporaryFolder();
  removeFolder = folder.remove;
  server = await startClickHouse(folder.path);
  client = server.client();
});

after(async () => {
  await client.close();
  await server.stop();
  await removeFolder();
});

async function value(query: string, query_params: Record<string, unknown> = {}): Promise<unknown> {
  const rows = await client.query({ query, query_params, format: 'JSONCompactEachRow' });
  return (await rows.json<unknown[]>())[0]?.[0];
}

async function insertAndCount(path: string, body: string | Buffer, headers: Record<string, string> = {}) {
  const account = { 'X-ClickHouse-User': serviceAccount.name, 'X-ClickHouse-Key': serviceAccount.password };
  const response = await server.fetch(path, { method: 'POST', body, headers: { ...account, ...headers } });
  assert.equal(response.status, 200, await response.text());
  return JSON.parse(response.headers.get('x-clickhouse-summary') ?? '{}') as { written_rows: string };
}

async function errorOf(run: () => Promise<unknown>): Promise<ClickHouseError> {
  try {
    await run();
  } catch (error) {
    assert.ok(error instanceof ClickHouseError, String(error));
    return error;
  }
  throw new Error('no error came');
}

test('ping, with and without the engine, and without credentials', limit, async () => {
  assert.equal((await client.ping()).success, true);
  assert.equal((await client.ping({ select: true })).success, true);
  const bare = await server.fetch('/ping', { headers: {} });
  assert.equal(await bare.text(), 'Ok.\n');
  assert.equal((await server.fetch('/ping', { method: 'HEAD', headers: {} })).status, 200);
});

test('parameters keep every character and type', limit, async () => {
  const texts = [
    "it's",
    '"quoted"',
    'back\\slash',
    'tab\there',
    'line\nbreak',
    'é 😀',
    '',
    '\\N',
    "\\'); DROP",
    '{x:String}',
  ];
  for (const text of texts) assert.equal(await value('SELECT {s:String}', { s: text }), text);
  assert.deepEqual(await value('SELECT {a:Array(String)}', { a: texts }), texts);
  assert.equal(await value('SELECT {n:Nullable(Int64)}', { n: null }), null);
  assert.equal(
    await value('SELECT count() FROM {t:Identifier}', { t: 'system.one' }).catch(() => 'refused'),
    'refused',
  );
  assert.equal(Number(await value('SELECT count() FROM system.{t:Identifier}', { t: 'one' })), 1);
  const at = new Date(1_700_000_000_123);
  assert.equal(
    await value("SELECT toString({d:DateTime64(3, 'UTC')})", { d: at }),
    '2023-11-14 22:13:20.123',
  );
  assert.deepEqual(await value('SELECT {m:Map(String, UInt8)}', { m: { a: 1 } }), { a: 1 });
});

test('concurrent requests do not see one another’s parameters and settings', limit, async () => {
  const asked = Array.from({ length: 40 }, (_, index) =>
    value("SELECT concat({p:String}, ':', toString(getSetting('max_threads')))", { p: String(index) }),
  );
  const found = await Promise.all(asked);
  assert.deepEqual(
    found.map((text) => String(text).split(':')[0]),
    asked.map((_, index) => String(index)),
  );
  const error = await errorOf(() => value('SELECT {p:String}'));
  assert.equal(error.type, 'UNKNOWN_QUERY_PARAMETER');
});

test('inserts: arrays, strings, streams, TSV, gzip, each one insert', limit, async () => {
  await client.command({ query: 'CREATE TABLE ways (a UInt32, b String) ENGINE = MergeTree ORDER BY a' });
  const rows = [
    { a: 1, b: "x'\t\n\\" },
    { a: 2, b: 'é' },
  ];
  await client.insert({ table: 'ways', values: rows, format: 'JSONEachRow' });
  await client.insert({
    table: 'skilltrace.ways',
    values: Readable.from([{ a: 3, b: 'c' }]),
    format: 'JSONEachRow',
    columns: ['a', 'b'],
  });
  await client.insert({
    table: 'ways',
    values: Readable.from('4\td\n5\te\n', { objectMode: false }),
    format: 'TabSeparated',
  });
  await client.insert({
    table: 'ways',
    values: [{ a: 6 }],
    format: 'JSONEachRow',
    columns: { except: ['b'] },
  });
  await client.command({ query: "INSERT INTO ways VALUES (7, 'a;b -- c')" });
  await client.command({ query: 'INSERT INTO ways SELECT 8, toString(8)' });
  // Longer than a statement may be, its rows apart.
  await client.command({ query: `INSERT INTO ways VALUES (11, '${';'.repeat(300_000)}')` });
  await insertAndCount('/', 'INSERT INTO ways (a, b) SETTINGS async_insert = 0 FORMAT TSV\n9\ti\n');
  const text = '/?query=INSERT+INTO+ways+FORMAT+JSONEachRow';
  await insertAndCount(text, gzipSync('{"a":10,"b":"z"}\n'), { 'Content-Encoding': 'gzip' });
  const found = await client.query({ query: 'SELECT a, b FROM ways ORDER BY a', format: 'JSONEachRow' });
  const expected = [
    ...rows,
    ['c'],
    ['d'],
    ['e'],
    [''],
    ['a;b -- c'],
    ['8'],
    ['i'],
    ['z'],
    [';'.repeat(300_000)],
  ];
  assert.deepEqual(
    (await found.json<{ b: string }>()).map((row) => row.b),
    expected.map((row) => (Array.isArray(row) ? row[0] : row.b)),
  );
});

test('a large TSV body in many chunks is one part and all or nothing', limit, async () => {
  await client.command({ query: 'CREATE TABLE large (a UInt32, b String) ENGINE = MergeTree ORDER BY a' });
  const line = 'z'.repeat(300);
  const text = `${Array.from({ length: 100_000 }, (_, index) => `${index}\t${line}`).join('\n')}\n`;
  const path = '/?query=INSERT+INTO+large+(a,b)+FORMAT+TabSeparated';
  assert.equal((await insertAndCount(path, text)).written_rows, '100000');
  assert.equal(
    (await insertAndCount(path, gzipSync(text), { 'Content-Encoding': 'gzip' })).written_rows,
    '100000',
  );
  const bad = await server.fetch(path, { method: 'POST', body: `${text}oops\tx\n` });
  assert.equal(bad.status, 400);
  assert.equal(bad.headers.get('x-clickhouse-exception-code'), '27');
  await bad.text();
  assert.equal(Number(await value('SELECT count() FROM large')), 200_000);
});

test('a retried insert with its token doubles neither rows nor its view', limit, async () => {
  const window = 'SETTINGS non_replicated_deduplication_window = 10000';
  await client.command({
    query: `CREATE TABLE raw (k UInt32, v UInt32) ENGINE = MergeTree ORDER BY k ${window}`,
  });
  await client.command({
    query: `CREATE TABLE sums (k UInt32, n UInt64) ENGINE = SummingMergeTree ORDER BY k ${window}`,
  });
  await client.command({
    query: 'CREATE MATERIALIZED VIEW to_sums TO sums AS SELECT k, count() AS n FROM raw GROUP BY k',
  });
  const body =
    "INSERT INTO raw SETTINGS insert_deduplication_token='b', deduplicate_blocks_in_dependent_materialized_views=1 FORMAT TSV\n7\t7\n";
  const send = async () => {
    const settings = 'insert_deduplication_token=a&deduplicate_blocks_in_dependent_materialized_views=1';
    await insertAndCount(`/?query=INSERT+INTO+raw+FORMAT+TSV&${settings}`, '1\t1\n1\t2\n2\t3\n');
    await insertAndCount('/', body);
  };
  await send();
  await send();
  assert.equal(Number(await value('SELECT count() FROM raw')), 4);
  assert.equal(Number(await value('SELECT sum(n) FROM sums')), 4);
});

test('errors carry status, code and type', limit, async () => {
  const cases: [string, string, string][] = [
    ['SELEC 1', '62', 'SYNTAX_ERROR'],
    ['SELECT * FROM nowhere', '60', 'UNKNOWN_TABLE'],
    ['SELECT nothing FROM system.one', '47', 'UNKNOWN_IDENTIFIER'],
    ['SELECT nofunction(1)', '46', 'UNKNOWN_FUNCTION'],
    ["SELECT throwIf(1, 'mine')", '395', 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO'],
    ['SELECT 1; SELECT 2', '62', 'SYNTAX_ERROR'],
    ['SELECT * FROM none.t', '81', 'UNKNOWN_DATABASE'],
  ];
  for (const [query, code, type] of cases) {
    for (const format of ['JSON', 'JSONEachRow'] as const) {
      const error = await errorOf(() => client.query({ query, format }).then((rows) => rows.text()));
      assert.deepEqual([error.code, error.type], [code, type], query);
    }
  }
  const setting = await server.fetch('/?query=SELECT+1&no_such_setting=1');
  assert.deepEqual([setting.status, setting.headers.get('x-clickhouse-exception-code')], [404, '115']);
  assert.match(await setting.text(), /^Code: 115\. DB::Exception: .*\(UNKNOWN_SETTING\)\n$/);
});

test('binary inserts are taken as well; what is no UTF-8 is no statement', limit, async () => {
  await client.command({ query: 'CREATE TABLE binary (a UInt32, b String) ENGINE = MergeTree ORDER BY a' });
  const rows = Buffer.from([7, 0, 0, 0, 2, 0xff, 0x0a, 8, 0, 0, 0, 0]);
  const done = await insertAndCount('/?query=INSERT+INTO+binary+FORMAT+RowBinary', rows);
  assert.equal(done.written_rows, '2');
  assert.equal(await value("SELECT groupArray((a, hex(b))) = [(7, 'FF0A'), (8, '')] FROM binary"), 1);
  // A table without rows, as a backup has it.
  const none = await insertAndCount('/?query=INSERT+INTO+binary+FORMAT+CSVWithNames', '"a","b"\n');
  assert.equal(none.written_rows, '0');
  const odd = await server.fetch('/', { method: 'POST', body: Buffer.from("SELECT '\xff'", 'latin1') });
  assert.deepEqual([odd.status, odd.headers.get('x-clickhouse-exception-code')], [400, '62']);
  await odd.text();
});

test('rows reach a folder whose name is a pattern to the engine', limit, async (t) => {
  const folder = await temporaryFolder();
  t.after(() => folder.remove());
  const beside = await startClickHouse(join(folder.path, 'a{b,c}*?'));
  t.after(() => beside.stop());
  const own = beside.client();
  t.after(() => own.close());
  await own.command({ query: 'CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a' });
  await own.insert({ table: 't', values: [{ a: 1 }, { a: 2 }], format: 'JSONEachRow' });
  const found = await own.query({ query: 'SELECT sum(a) AS a FROM t', format: 'JSONEachRow' });
  assert.deepEqual(await found.json(), [{ a: 3 }]);
});

test('what curl users do', limit, async () => {
  const text = async (path: string, init = {}) => (await server.fetch(path, init)).text();
  assert.equal(await text('/?query=SELECT+1'), '1\n');
  assert.equal(await text('/', { method: 'POST', body: 'SELECT 1' }), '1\n');
  assert.equal(await text('/?query=SELECT&', { method: 'POST', body: '2' }), '2\n');
  assert.equal(await text('/?query=SELECT+1+AS+a&default_format=JSONEachRow'), '{"a":1}\n');
  assert.equal(await text('/?query=SELECT+currentDatabase()&database=system'), 'system\n');
  assert.equal(await text('/system?query=SELECT+currentDatabase()'), 'system\n');
  assert.equal(await text('/?query=SELECT+currentDatabase()'), 'skilltrace\n');
  const read = await server.fetch(`/?query=${encodeURIComponent('CREATE TABLE g (a Int8) ENGINE = Memory')}`);
  assert.deepEqual([read.status, read.headers.get('x-clickhouse-exception-code')], [500, '164']);
  await read.text();
  const named = await text('/?query=SELECT+number+n+FROM+numbers(2)&default_format=TabSeparatedWithNames');
  assert.equal(named, 'n\n0\n1\n');
  assert.equal((await server.fetch('/no/such/path')).status, 404);
  assert.equal((await server.fetch('/nodb?query=SELECT+1')).status, 404);
  assert.equal((await server.fetch('/', { method: 'DELETE' })).status, 404);
});

test('credentials by header, basic auth and query; wrong ones are code 516', limit, async () => {
  const { name, password } = serviceAccount;
  const basic = { Authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}` };
  assert.equal((await server.fetch('/?query=SELECT+1', { headers: basic })).status, 200);
  const given = new URLSearchParams({ user: name, password, query: 'SELECT 1' });
  assert.equal((await server.fetch(`/?${given}`, { headers: {} })).status, 200);
  for (const headers of [
    {},
    { 'X-ClickHouse-User': name },
    { 'X-ClickHouse-User': name, 'X-ClickHouse-Key': 'no' },
  ]) {
    const refused = await server.fetch('/?query=SELECT+1', { headers });
    assert.deepEqual([refused.status, refused.headers.get('x-clickhouse-exception-code')], [403, '516']);
    assert.match(await refused.text(), /\(AUTHENTICATION_FAILED\)\n$/);
  }
});

test('gzip both ways with the client', limit, async () => {
  const packed = createClient({
    url: server.url,
    username: serviceAccount.name,
    password: serviceAccount.password,
    database: 'skilltrace',
    compression: { request: true, response: true },
  });
  try {
    await packed.command({ query: 'CREATE TABLE packed (a UInt32) ENGINE = MergeTree ORDER BY a' });
    const values = Array.from({ length: 5000 }, (_, a) => ({ a }));
    await packed.insert({ table: 'packed', values, format: 'JSONEachRow' });
    const rows = await packed.query({ query: 'SELECT a FROM packed ORDER BY a', format: 'JSONEachRow' });
    assert.deepEqual(await rows.json(), values);
  } finally {
    await packed.close();
  }
});

test(
  'large answers: whole documents stay one document, rows stream, an error in the middle shows',
  limit,
  async () => {
    const query = 'SELECT number FROM numbers(200000)';
    for (const format of ['JSON', 'JSONCompact'] as const) {
      const answer = await (await client.query({ query, format })).json<unknown>();
      assert.deepEqual([answer.rows, answer.data.length], [200_000, 200_000]);
    }
    const names = await (
      await server.fetch(`/?query=${encodeURIComponent(`${query} FORMAT CSVWithNames`)}`)
    ).text();
    assert.equal(names.split('\n').filter((line) => line === '"number"').length, 1);
    const hidden = await (
      await server.fetch(
        `/?query=${encodeURIComponent(`SELECT '--', number FROM numbers(100000) FORMAT/**/JSON`)}`,
      )
    ).json();
    assert.equal((hidden as { rows: number }).rows, 100_000);
    const streamed = await client.query({
      query: 'SELECT number FROM numbers(3000000)',
      format: 'JSONEachRow',
    });
    let rows = 0;
    for await (const block of streamed.stream()) rows += block.length;
    assert.equal(rows, 3_000_000);
    const failing = 'SELECT throwIf(number = 2000000) FROM numbers(3000000) SETTINGS max_threads = 1';
    await assert.rejects(async () => {
      const cut = await client.query({ query: failing, format: 'JSONEachRow' });
      for await (const block of cut.stream()) rows += block.length;
    });
    const tooLarge = await errorOf(() =>
      client.query({ query: 'SELECT number FROM numbers(30000000)', format: 'JSON' }),
    );
    assert.equal(tooLarge.type, 'TOO_MANY_ROWS_OR_BYTES');
  },
);

test('a slow analyst delays nobody; who hangs up frees the engine', limit, async () => {
  const analyst = server.client(analystAccount);
  const slow = 'SELECT sum(sipHash64(number, 1)) FROM numbers(300000000000)';
  const hangUp = new AbortController();
  let slowEnded = false;
  const waiting = analyst
    .query({ query: slow, format: 'TabSeparated', abort_signal: hangUp.signal })
    .catch(() => {
      slowEnded = true;
    });
  for (let index = 0; index < 20; index += 1) assert.equal(Number(await value(`SELECT ${index}`)), index);
  await client.insert({ table: 'ways', values: [{ a: 11, b: '' }], format: 'JSONEachRow' });
  assert.equal((await client.ping()).success, true);
  const planning = client.query({ query: 'SELECT (SELECT sleep(3))', format: 'TabSeparated' });
  assert.equal((await client.ping()).success, true);
  assert.equal(slowEnded, false);
  await (await planning).text();
  hangUp.abort();
  await waiting;
  const next = await analyst.query({ query: 'SELECT 1', format: 'TabSeparated' });
  assert.equal(await next.text(), '1\n');
  await analyst.close();
});

test('a slow reader that is cut off at its limit takes nobody else with it', limit, async () => {
  const headers = { 'X-ClickHouse-User': analystAccount.name, 'X-ClickHouse-Key': analystAccount.password };
  const ask = (path: string, body: string) => server.fetch(path, { method: 'POST', body, headers });
  const unread = await ask('/?max_execution_time=1', "SELECT repeat('x', 1000) FROM numbers(10000000)");
  const next = await ask('/', 'SELECT 1');
  assert.deepEqual([next.status, await next.text()], [200, '1\n']);
  await assert.rejects(unread.text());
});

test('clients that hang up at once leave no query behind', limit, async () => {
  const analyst = server.client(analystAccount);
  const slow = 'SELECT sum(sipHash64(number, 2)) FROM numbers(300000000000)';
  for (let index = 0; index < 15; index += 1) {
    const hangUp = new AbortController();
    const asked = analyst.query({ query: slow, format: 'TabSeparated', abort_signal: hangUp.signal });
    const refused = assert.rejects(asked);
    await new Promise((resolve) => setTimeout(resolve, index * 4));
    hangUp.abort();
    await refused;
  }
  const next = await analyst.query({ query: 'SELECT 1', format: 'TabSeparated' });
  assert.equal(await next.text(), '1\n');
  await analyst.close();
});

test('asynchronous inserts arrive too', limit, async () => {
  await client.command({ query: 'CREATE TABLE later (a UInt32) ENGINE = MergeTree ORDER BY a' });
  const clickhouse_settings = { async_insert: 1, wait_for_async_insert: 1 } as const;
  await client.insert({ table: 'later', values: [{ a: 1 }], format: 'JSONEachRow', clickhouse_settings });
  assert.equal(Number(await value('SELECT count() FROM later')), 1);
});
