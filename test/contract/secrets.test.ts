/** Keys, passwords and user ids appear in no log line, response, metric, process list, and in no other file or table. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { learnerKey, partitionOf } from '../../src/store/redis/keys.js';
import { connectWarehouse, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { callerOf, openWire } from '../support/http/http.js';
import { routeRequests } from '../support/http/route-requests.js';
import { nameOf, routeTable } from '../support/http/route-table.js';
import { keysThatSay } from '../support/inspect/traces.js';
import { redisOf } from '../support/servers/service.js';
import { type Launched, launchService } from '../support/servers/service-process.js';
import { dataFolder, tempDir } from '../support/temp.js';
import { askUntil, waitUntilHealthy } from '../support/wait.js';

const secret = (name: string): string => `${name}-${randomBytes(12).toString('hex')}`;

function assertNone(secrets: readonly string[], text: string, where: string): void {
  for (const one of secrets) {
    const at = text.indexOf(one);
    assert.ok(at < 0, `${where}: ${text.slice(Math.max(0, at - 300), at + 100)}`);
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
          // An export is cut when ClickHouse stops; the error contains the part that arrived.
          (error: Error) => (route.path.endsWith('/export') ? error.message : Promise.reject(error)),
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

test('The service restarts killed servers, and shows no key, password or user id in logs, responses, metrics, files and tables', async (t) => {
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
  // An unreadable record leads to a response with 500 and a line in the log.
  const record = learnerKey(partitionOf('school', known.learner, 16), 'school', known.learner);
  await redis.hset(record, 'L', 'zz');
  const defect = await callerOf(service, known.keys.good).get(`/api/v1/mastery/${known.learner}`);
  assert.equal(defect.status, 500);
  assertNone([...secrets, known.learner], defect.text, 'the response to a defect');

  for (const { pid } of Object.values<{ pid: number }>(read('servers.json'))) process.kill(pid, 'SIGKILL');
  await searchResponses(service.port, known, secrets);
  const metrics = await askUntil(
    'the restart of the servers',
    () => callerOf(service, null).raw({ method: 'GET', path: '/metrics' }),
    ({ text }) =>
      ['redis', 'clickhouse'].every((name) => new RegExp(`^skilltrace_${name}_up\\S* 1$`, 'm').test(text)),
  );
  assert.equal((await callerOf(service, null).raw({ method: 'GET', path: '/readyz' })).status, 200);
  assert.match(metrics.text, /^skilltrace_clickhouse_restarts_total\{reason="died",process="all"\} 1$/m);
  await service.stop();
  const log = service.written();
  for (const level of [20, 40, 50]) assert.ok(log.includes(`"level":${level}`), `lines of level ${level}`);
  assertNone([...secrets, known.learner], log, 'the log');
});

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
  const words = secrets.flatMap((one) => ['-e', one]);
  const { stdout } = spawnSync('grep', ['-rlsaF', ...words, '.'], { cwd: dir, encoding: 'utf8' });
  const names = stdout.trimEnd().split('\n').sort();
  assert.deepEqual(names, ['./endpoints.json', './redis/redis.conf', './secrets.json']);
  for (const name of names) assert.equal(statSync(join(dir, name)).mode & 0o777, 0o600, name);
}
