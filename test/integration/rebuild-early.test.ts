/** A Redis that came back empty before the first answer, or while nobody looked: what people set is restored, and a mere start blocks nobody. */
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { allScopes, hashKey } from '../../src/contracts/access/access.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf } from '../support/http/http.js';
import { countOf } from '../support/inspect/warehouse.js';
import { exitAfterTests } from '../support/servers/linger.js';
import {
  clickhouseOf,
  dataFolder,
  keysOf,
  startBareRedis,
  startService,
} from '../support/servers/service.js';
import { askUntil, waitFor } from '../support/wait.js';

exitAfterTests();

const grant = { tenant: 'default', requestsPerMinute: null, scopes: allScopes };

async function stage(t: TestContext) {
  const redis = await startBareRedis(t);
  const service = await startService(t, { redisUrl: redis.url });
  const caller = callerOf(service, service.key);
  const ready = () => caller.get('/readyz');
  const becomes = (status: number) => askUntil(`readyz ${status}`, ready, (told) => told.status === status);
  return { redis, service, caller, ready, becomes, clickhouse: clickhouseOf(t, service) };
}

test('a service that was only started goes on with an empty Redis', async (t) => {
  const { redis, clickhouse, becomes } = await stage(t);
  await waitFor('what is told of the deployment', async () => (await countOf(clickhouse, 'deployments')) > 0);
  await redis.kill();
  await becomes(503);
  await redis.start();
  await becomes(200);
});

test('goals and catalogue without any answer are not forgotten in silence', async (t) => {
  const { redis, service, caller, ready, becomes, clickhouse } = await stage(t);
  const put = async (path: string, body: object) =>
    assert.equal((await caller.call({ method: 'PUT', path, body: JSON.stringify(body) })).status, 200);
  const [goal, skill, mapping] = ['/api/v1/goals/ada', '/api/v1/skills/algebra', '/api/v1/xapi-mapping'];
  await put(goal, { target_score: 1200 });
  await put(skill, { section: 'math', weight: 2 });
  const hooks = '/api/v1/webhooks';
  const add = async (event_types: string[]) => {
    const body = JSON.stringify({ url: 'https://hooks.example.org/', event_types, description: 'Küche' });
    const { status, json } = await caller.call({ path: hooks, body });
    assert.equal(status, 201);
    return json.data;
  };
  const [hook, off, gone] = [await add(['goal.reached', 'goal.at_risk']), await add(['*']), await add(['*'])];
  const patch = (id: string, change: object) =>
    caller.call({ method: 'PATCH', path: `${hooks}/${id}`, body: JSON.stringify(change) });
  assert.equal((await patch(off.webhook_id, { enabled: false })).status, 200);
  assert.equal((await caller.call({ method: 'DELETE', path: `${hooks}/${gone.webhook_id}` })).status, 200);
  await put(mapping, { home_page: 'http://before.example/' });
  await put(mapping, {
    home_page: 'http://lms.example/',
    skills: { 'http://lms.example/skills/1': 'algebra' },
  });
  await clickhouse.command({ query: 'OPTIMIZE TABLE xapi_mappings FINAL' });
  assert.equal(await countOf(clickhouse, 'xapi_mappings'), 1, 'of a MiB each only the last is kept');
  const get = async (path: string) => (await caller.get(path)).json.data;
  const read = () => Promise.all([goal, skill, mapping].map(get));
  const before = await read();
  await waitFor('the goal in ClickHouse', async () => (await countOf(clickhouse, 'goal_changes')) > 0);
  await waitFor('the skill in ClickHouse', async () => (await countOf(clickhouse, 'skill_changes')) > 0);
  const stored = () => countOf(clickhouse, "webhooks FINAL WHERE url = '' OR disabled_reason = 'request'");
  await waitFor('the webhooks in ClickHouse', async () => (await stored()) === 2);
  // Told after the changes: a Redis that is lost in between has no key to restore.
  await waitFor('the key in ClickHouse', async () => (await countOf(clickhouse, 'api_keys')) > 0);

  await redis.kill();
  await redis.start();
  const told = await askUntil('the reason', ready, ({ text }) => text.includes('came back empty'));
  assert.equal(told.status, 503);
  assert.match(told.text, /npm run rebuild/);

  const env = { DATA_DIR: service.dataDir, REDIS_URL: redis.url };
  const rebuilt = await runCommand('rebuild', env);
  assert.equal(rebuilt.code, 0, rebuilt.err);
  await becomes(200);
  assert.deepEqual(await read(), before);

  const { secret, ...kept } = hook;
  const shown = async (id: string) => (await caller.get(`${hooks}/${id}`)).json.data;
  const restored = { ...kept, enabled: false, disabled_reason: 'restored' };
  assert.deepEqual(await shown(hook.webhook_id), restored);
  assert.equal((await shown(off.webhook_id)).disabled_reason, 'request');
  assert.equal((await caller.get(hooks)).json.data.webhooks.length, 2);
  const refused = await patch(hook.webhook_id, { enabled: true });
  assert.deepEqual([refused.status, refused.json.error.code], [409, 'CONFLICT']);
  const rotate = async (id: string) =>
    (await caller.call({ path: `${hooks}/${id}/rotate-secret` })).json.data;
  const rotated = await rotate(hook.webhook_id);
  assert.deepEqual(rotated, { ...kept, secret: rotated.secret });
  assert.notEqual(rotated.secret, secret);
  assert.equal((await rotate(off.webhook_id)).enabled, false);
});

test('keys that were revoked stay so, although a start names them before Redis is rebuilt', async (t) => {
  const { redis, service, caller, ready, becomes, clickhouse } = await stage(t);
  const { store, ...keys } = await keysOf(t, service);
  const [kept, revoked, byHash] = [await keys.add(), await keys.add(), await keys.add()];
  await store.save({ ...grant, keyHash: hashKey('development'), development: true });
  const env = { DATA_DIR: service.dataDir, REDIS_URL: redis.url };
  for (const name of [service.key, revoked, hashKey(byHash).slice(0, 12)])
    assert.equal((await runCommand('keys', env, 'revoke', name)).code, 0);
  const ended = 'SELECT uniqExact(key_id) AS n FROM api_keys WHERE revoked_at IS NOT NULL';
  await waitFor('their ends in ClickHouse', async () => {
    const [row] = await selectRows<{ n: string }>(clickhouse, ended);
    return Number(row?.n) === 3;
  });
  const before = await store.all();
  assert.equal(before.length, 5);

  await redis.kill();
  await redis.start();
  const told = await askUntil('the reason', ready, ({ text }) => text.includes('came back empty'));
  assert.match(told.text, /revoked keys/);
  // It names the key of the first one, which was revoked, and one that nobody knows yet.
  const fresh = { key: 'fresh', tenant: 'default', requestsPerMinute: 100 };
  const apiKeys = [{ ...fresh, key: service.key }, fresh];
  const second = await startService(t, { dataDir: service.dataDir, role: 'api', apiKeys });
  assert.equal((await callerOf(second, service.key).get('/api/v1/skills')).status, 503);
  assert.deepEqual(await store.all(), [], 'nobody knows yet which of them were revoked');
  // A command may add one meanwhile.
  assert.equal((await runCommand('keys', env, 'create', '--key', revoked)).code, 0);

  const rebuilt = await runCommand('rebuild', env);
  assert.equal(rebuilt.code, 0, rebuilt.err);
  await becomes(200);
  await waitFor('the key that is new', async () => (await store.findActive(hashKey('fresh'))) !== null);
  const inOrder = (a: { keyHash: string }, b: { keyHash: string }) => (a.keyHash < b.keyHash ? -1 : 1);
  const others = (await store.all()).filter(({ keyHash }) => keyHash !== hashKey('fresh'));
  assert.deepEqual(others.sort(inOrder), [...before].sort(inOrder));
  for (const [key, status] of [
    [service.key, 401],
    [revoked, 401],
    [byHash, 401],
    [kept, 200],
    ['fresh', 200],
  ] as const) {
    const asked = [caller, callerOf(second, null)].map((one) =>
      one.get('/api/v1/skills', { 'X-API-Key': key }),
    );
    for (const answer of await Promise.all(asked)) assert.equal(answer.status, status, answer.text);
  }
});

test('a folder that lost its Redis is rebuilt without a running service', async (t) => {
  const { path: dataDir, remove } = await dataFolder();
  const first = await startService(t, { dataDir });
  const answer = { user_id: 'ada', skill_id: 'algebra', is_correct: true, event_id: 'one' };
  const told = await callerOf(first, first.key).track(answer);
  const stored = clickhouseOf(t, first);
  await waitFor('the row', async () => (await countOf(stored, 'attempts')) === 1);
  await first.stop();
  await rm(join(dataDir, 'redis'), { recursive: true });
  const rebuild = (...args: string[]) => runCommand('rebuild', { DATA_DIR: dataDir }, ...args);
  const lost = await rebuild('--verify', '--json');
  assert.deepEqual([lost.code, JSON.parse(lost.out).differing], [1, 1], lost.err);
  const rebuilt = await rebuild('--json');
  assert.deepEqual([rebuilt.code, JSON.parse(rebuilt.out).learners], [0, 1], rebuilt.err);
  const second = await startService(t, { dataDir });
  t.after(remove);
  const again = await callerOf(second, second.key).track(answer);
  assert.equal(again.headers['idempotent-replayed'], 'true');
  assert.deepEqual(again.json.data, told.json.data);
});
