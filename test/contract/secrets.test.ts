/** Keys, passwords and user ids appear in no log line, response, metric, process list, and in no other file or table. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { RedisClient } from '../../src/store/redis/connection/client.js';
import { learnerKey, metaKey, partitionOf } from '../../src/store/redis/keys.js';
import { connectWarehouse, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { callerOf, openWire } from '../support/http/http.js';
import { routeRequests } from '../support/http/route-requests.js';
import { nameOf, routeTable } from '../support/http/route-table.js';
import { keysThatSay } from '../support/inspect/traces.js';
import { dataFolder, redisOf } from '../support/servers/service.js';
import { type Launched, launchService, runService } from '../support/servers/service-process.js';
import { tempDir } from '../support/temp.js';
import { waitFor, waitUntilHealthy } from '../support/wait.js';

const secret = (name: string): string => `${name}-${randomBytes(12).toString('hex')}`;

function assertNone(secrets: readonly string[], text: string, where: string): void {
  for (const one of secrets) {
    const at = text.indexOf(one);
    assert.ok(at < 0, `${where}: ${text.slice(Math.max(0, at - 300), at + 100)}`);
  }
}

const filesBelow = (dir: string): string[] =>
  unlessMissing(() => readdirSync(dir, { withFileTypes: true }), []).flatMap((entry) =>
    entry.isDirectory() ? filesBelow(join(dir, entry.name)) : entry.isFile() ? [join(dir, entry.name)] : [],
  );

const bytesOf = (file: string): Buffer => unlessMissing(() => readFileSync(file), Buffer.alloc(0));

/** Files and folders can disappear, because the engine merges parts during the search. */
function unlessMissing<Value>(read: () => Value, otherwise: Value): Value {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return otherwise;
    throw error;
  }
}

interface Secrets {
  readonly keys: { readonly good: string; readonly inFile: string; readonly wrong: string };
  readonly learner: string;
}

/** Sends requests of all kinds, valid and invalid, and searches each response. */
async function searchResponses(
  port: number,
  { keys, learner }: Secrets,
  secrets: readonly string[],
): Promise<void> {
  const ids = {
    ...{ userId: learner, skillId: 's', eventId: secret('event'), erasureId: '1-0' },
    webhookId: 'wh_none',
  };
  for (const key of Object.values(keys)) {
    for (const route of routeTable.filter(({ method }) => method !== 'DELETE')) {
      const parts = routeRequests[nameOf(route)]?.(ids) ?? {};
      const response = await callerOf({ port }, key)
        .raw({ method: route.method, ...parts })
        .then(
          ({ headers, text }) => JSON.stringify(headers) + text,
          (error: Error) => cutExport(route.path, error),
        );
      assertNone(secrets, response, nameOf(route));
    }
    const bad = await callerOf({ port }, key).raw({ body: `{"user_id":"${learner}","skill_id":7` });
    assertNone([...secrets, learner], bad.text, 'the response to invalid JSON');
  }
  for (const bytes of [`GET /${keys.good} HTTP/1.1\r\n`, `X-API-Key: ${keys.good}\r\n\r\n`]) {
    const wire = openWire(port);
    wire.send(bytes);
    await wire.next({ limitMs: 1000 }).catch(() => null);
    wire.end();
  }
}

/** An export is cut when ClickHouse stops; the error contains the part that arrived. */
function cutExport(path: string, error: Error): string {
  if (!path.endsWith('/export')) throw error;
  return error.message;
}

async function startSearched(t: TestContext, dir: string, { keys }: Secrets): Promise<Launched> {
  const file = join(await tempDir(t), 'keys');
  writeFileSync(file, `${keys.inFile}:other:1000000\n`, { mode: 0o600 });
  return launchService(t, {
    DATA_DIR: dir,
    LOG_LEVEL: 'trace',
    API_PROCESSES: '2',
    API_KEYS: `${keys.good}:school:1000000`,
    API_KEYS_FILE: file,
  });
}

test('The service shows no key, password or user id in logs, responses, metrics, files and tables', async (t) => {
  const folder = await dataFolder();
  const known: Secrets = {
    keys: { good: secret('good'), inFile: secret('in-file'), wrong: secret('wrong') },
    learner: secret('learner'),
  };
  const service = await startSearched(t, folder.path, known);
  t.after(folder.remove);
  const read = (name: string) => JSON.parse(readFileSync(join(folder.path, name), 'utf8'));
  const passwords: string[] = Object.values(read('secrets.json'));
  assert.equal(passwords.length, 3);
  const secrets = [...Object.values(known.keys), ...passwords];

  await searchResponses(service.port, known, secrets);
  const argv = execFileSync('ps', ['-A', '-o', 'args'], { encoding: 'utf8', maxBuffer: 2 ** 26 });
  assertNone(secrets, argv, 'the process list');
  const endpoints = read('endpoints.json');
  assert.deepEqual(Object.keys(endpoints).sort(), ['analyst_url', 'clickhouse_url', 'redis_url']);
  const { redis_url, clickhouse_url } = endpoints;
  const redis = await redisOf(t, redis_url);
  await waitUntilHealthy(callerOf(service, known.keys.good));
  for (const one of secrets) assert.deepEqual(await keysThatSay(redis, one), []);
  assertNone(secrets, await readTables(clickhouse_url), 'ClickHouse');
  assertFiles(folder.path, secrets);
  await damage(redis, known.learner);
  const defect = await callerOf(service, known.keys.good).get(`/api/v1/mastery/${known.learner}`);
  assert.equal(defect.status, 500);
  assertNone([...secrets, known.learner], defect.text, 'the response to a defect');

  for (const { pid } of Object.values<{ pid: number }>(read('servers.json'))) process.kill(pid, 'SIGKILL');
  await searchResponses(service.port, known, secrets);
  await waitFor('the restart of the servers', async () => {
    return (await callerOf(service, known.keys.good).get('/readyz')).status === 200;
  });
  await service.stop();
  const log = service.written();
  for (const level of [20, 40, 50]) assert.ok(log.includes(`"level":${level}`), `lines of level ${level}`);
  assertNone([...secrets, known.learner], log, 'the log');
});

/** Makes the record of the learner unreadable, so that requests fail with 500 and a log line. */
async function damage(redis: RedisClient, learner: string): Promise<void> {
  const partitions = Number(await redis.hget(metaKey, 'partitions'));
  const partition = partitionOf('school', learner, partitions);
  await redis.hset(learnerKey(partition, 'school', learner), 'L', 'zz');
}

/** The content of all tables, with the statements that ClickHouse remembers. */
async function readTables(url: string): Promise<string> {
  const client = connectWarehouse(url);
  try {
    const names = await selectRows<{ name: string }>(client, 'SHOW TABLES');
    const texts: string[] = [];
    for (const name of [...names.map((row) => row.name), 'system.processes', 'system.settings']) {
      texts.push(
        await (await client.query({ query: `SELECT * FROM ${name}`, format: 'TabSeparated' })).text(),
      );
    }
    assert.ok(names.length > 5);
    return texts.join('\n');
  } finally {
    await client.close();
  }
}

/** Only these files contain passwords, and only their owner can read them. */
function assertFiles(dir: string, secrets: readonly string[]): void {
  const holders = filesBelow(dir).filter((file) => secrets.some((one) => bytesOf(file).includes(one)));
  const names = holders.map((file) => file.slice(dir.length + 1)).sort();
  assert.deepEqual(names, ['endpoints.json', 'redis/redis.conf', 'secrets.json']);
  for (const file of holders) assert.equal(statSync(file).mode & 0o777, 0o600, file);
}

test('The startup reports invalid settings without their secrets', async (t) => {
  const [one, two, three] = [secret('a'), secret('b'), secret('c')];
  const [four, five] = [secret('d'), secret('e')];
  const file = join(await tempDir(t), 'keys');
  writeFileSync(file, `${three} with blanks\n${four}:a:b:c:d\n`);
  const { written, ended } = runService(t, {
    API_KEYS: `${one}:bad tenant:100,${two}:default:many`,
    API_KEYS_FILE: file,
    REDIS_URL: `redis://user:${five}@host:port`,
    CLICKHOUSE_URL: `ftp://user:${one}@host/a/b?password=${two}`,
  });
  await ended();
  const output = written();
  for (const name of ['API_KEYS', 'API_KEYS_FILE', 'REDIS_URL', 'CLICKHOUSE_URL'])
    assert.match(output, new RegExp(`${name}: `));
  assertNone([one, two, three, four, five], output, 'the error messages');
});

test('The service logs unavailable servers without their passwords', async (t) => {
  const folder = await dataFolder();
  const [first, second] = [secret('first'), secret('second')];
  const { written, ended } = runService(t, {
    DATA_DIR: folder.path,
    LOG_LEVEL: 'trace',
    ROLE: 'api',
    API_KEYS: `${first}:default:100`,
    REDIS_URL: `redis://user:${second}@127.0.0.1:1`,
    CLICKHOUSE_URL: `http://user:${second}@127.0.0.1:1/database`,
  });
  t.after(folder.remove);
  await waitFor('the first log line', () => written() !== '');
  await ended('SIGTERM');
  assertNone([first, second], written(), 'the log');
});
