/** A Redis without its data before the first answer, and data folders that are copied or lose a part. */
import assert from 'node:assert/strict';
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { allScopes, hashKey } from '../../src/contracts/access/access.js';
import { createJournal } from '../../src/store/outbox/journal.js';
import { readLastRows } from '../../src/store/outbox/outbox.js';
import { journalKey } from '../../src/store/redis/keys.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { countNewerRows } from '../../src/warehouse/reads/stored-state.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf, event } from '../support/http/http.js';
import { countOf, storedOnce } from '../support/inspect/warehouse.js';
import {
  clickhouseOf,
  keysOf,
  redisOf,
  type Service,
  startBareRedis,
  startService,
} from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';
import { askUntil, waitFor } from '../support/wait.js';

const redis = await startBareRedis({ after });
const service = await startService({ after }, { redisUrl: redis.url });
const caller = callerOf(service, service.key);
const clickhouse = clickhouseOf({ after }, service);
const ready = () => caller.get('/readyz');
const waitForReadyz = (status: number) =>
  waitFor(`/readyz to respond ${status}`, async () => (await ready()).status === status);

test('A service without stored data becomes ready again after Redis came back empty', async () => {
  await waitFor('the deployment', async () => (await countOf(clickhouse, 'deployments')) > 0);
  await redis.kill();
  await waitForReadyz(503);
  await redis.start();
  await waitForReadyz(200);
});

test('A rebuild restores settings, webhooks and revoked keys of a service without answers', async (t) => {
  const env = { DATA_DIR: service.dataDir, REDIS_URL: redis.url };
  const { store, ...keys } = await keysOf(t, service);
  const admin = callerOf(service, await keys.add({ scopes: allScopes }));
  const put = async (path: string, body: object) =>
    assert.equal((await admin.call({ method: 'PUT', path, body: JSON.stringify(body) })).status, 200);

  const [goal, skill, mapping] = ['/api/v1/goals/ada', '/api/v1/skills/algebra', '/api/v1/xapi-mapping'];
  await put(goal, { target_score: 1200, target_date: '2099-01-31' });
  await put(skill, { name: 'A\\N \\t', section: 'math', weight: 2 });
  await put(mapping, { home_page: 'http://before.example/' });
  await put(mapping, {
    home_page: 'http://lms.example/',
    skills: { 'http://lms.example/skills/1': 'algebra' },
  });
  await clickhouse.command({ query: 'OPTIMIZE TABLE xapi_mappings FINAL' });
  assert.equal(await countOf(clickhouse, 'xapi_mappings'), 1, 'only the latest mapping stays');

  const webhooks = '/api/v1/webhooks';
  const addWebhook = async (...event_types: string[]) => {
    const body = JSON.stringify({ url: 'https://hooks.example.org/', event_types, description: 'Küche' });
    const { status, json } = await admin.call({ path: webhooks, body });
    assert.equal(status, 201);
    return json.data;
  };
  const enabled = await addWebhook('goal.reached', 'goal.at_risk');
  const [disabled, deleted] = [await addWebhook('*'), await addWebhook('*')];
  const setEnabled = (id: string, enabled: boolean) =>
    admin.call({ method: 'PATCH', path: `${webhooks}/${id}`, body: JSON.stringify({ enabled }) });
  assert.equal((await setEnabled(disabled.webhook_id, false)).status, 200);
  const deletePath = `${webhooks}/${deleted.webhook_id}`;
  assert.equal((await admin.call({ method: 'DELETE', path: deletePath })).status, 200);

  const [kept, revoked, revokedByHash] = [await keys.add(), await keys.add(), await keys.add()];
  const grant = { tenant: 'default', requestsPerMinute: null, scopes: allScopes };
  await store.save({ ...grant, keyHash: hashKey('development'), development: true });
  for (const name of [service.key, revoked, hashKey(revokedByHash).slice(0, 12)])
    assert.equal((await runCommand('keys', env, 'revoke', name)).code, 0);

  const getData = async (path: string) => (await admin.get(path)).json.data;
  const readSettings = () => Promise.all([goal, skill, mapping].map(getData));
  const settings = await readSettings();
  const storedWebhooks = "webhooks FINAL WHERE url = '' OR disabled_reason = 'request'";
  for (const [rows, table] of [
    [1, 'goal_changes'],
    [1, 'skill_changes'],
    [2, storedWebhooks],
    [6, '(SELECT DISTINCT key_id FROM api_keys)'],
    [3, '(SELECT DISTINCT key_id FROM api_keys WHERE revoked_at IS NOT NULL)'],
  ] as const)
    await waitFor(`${table} in ClickHouse`, async () => (await countOf(clickhouse, table)) === rows);
  const storedKeys = await store.all();
  assert.equal(storedKeys.length, 6);

  await redis.kill();
  await redis.start();
  const reason = await askUntil('the reason', ready, ({ text }) => text.includes('Redis is empty'));
  assert.equal(reason.status, 503);
  assert.match(reason.text, /npm run rebuild/);
  assert.match(reason.text, /revoked keys/);
  // Configures a revoked key and a new one while Redis does not have the revoked keys.
  const fresh = { key: 'fresh', tenant: 'default', requestsPerMinute: 100 };
  const apiKeys = [{ ...fresh, key: service.key }, fresh];
  const second = await startService(t, { dataDir: service.dataDir, role: 'api', apiKeys });
  assert.equal((await callerOf(second, service.key).get('/api/v1/skills')).status, 503);
  assert.deepEqual(await store.all(), [], 'a start before the rebuild adds no key');
  assert.equal((await runCommand('keys', env, 'create', '--key', revoked)).code, 0);

  const rebuilt = await runCommand('rebuild', env);
  assert.equal(rebuilt.code, 0, rebuilt.err);
  await waitForReadyz(200);
  await waitFor('the new key', async () => (await store.findActive(hashKey('fresh'))) !== null);
  const byHash = (list: typeof storedKeys) => new Map(list.map((key) => [key.keyHash, key]));
  const restoredKeys = (await store.all()).filter(({ keyHash }) => keyHash !== hashKey('fresh'));
  assert.deepEqual(byHash(restoredKeys), byHash(storedKeys));
  for (const one of [caller, callerOf(second, null)]) {
    const statusOf = async (key: string) => (await one.get('/api/v1/skills', { 'X-API-Key': key })).status;
    for (const key of [service.key, revoked, revokedByHash]) assert.equal(await statusOf(key), 401, key);
    for (const key of [kept, 'fresh']) assert.equal(await statusOf(key), 200, key);
  }
  assert.deepEqual(await readSettings(), settings);

  const { secret, ...webhook } = enabled;
  const disabledWebhook = { ...webhook, enabled: false, disabled_reason: 'restored' };
  assert.deepEqual(await getData(`${webhooks}/${enabled.webhook_id}`), disabledWebhook);
  assert.equal((await getData(`${webhooks}/${disabled.webhook_id}`)).disabled_reason, 'request');
  assert.equal((await getData(webhooks)).webhooks.length, 2);
  const conflict = await setEnabled(enabled.webhook_id, true);
  assert.deepEqual([conflict.status, conflict.json.error.code], [409, 'CONFLICT']);
  const rotate = async (id: string) =>
    (await admin.call({ path: `${webhooks}/${id}/rotate-secret` })).json.data;
  const rotated = await rotate(enabled.webhook_id);
  assert.deepEqual(rotated, { ...webhook, secret: rotated.secret });
  assert.notEqual(rotated.secret, secret);
  assert.equal((await rotate(disabled.webhook_id)).enabled, false);
});

test('The service drains its journal at a stop and reports parked rows in health', async (t) => {
  const client = await redisOf(t, redis.url);
  const admin = callerOf(service, 'fresh');
  await client.xadd(`${journalKey(0)}:parked`, '*', 'k', 'goal');
  assert.equal((await admin.get('/api/v1/health')).json.data.checks.pipeline.parked, 1);
  const goal = { method: 'PUT', path: '/api/v1/goals/late', body: '{"target_score":900}' };
  assert.equal((await admin.call(goal)).status, 200);
  const since = performance.now();
  assert.equal(await service.stop(), true);
  const tookMs = performance.now() - since;
  const goals = await countOf(clickhouse, "goals WHERE user_id = 'late'");
  const { journalLength } = await createJournal(client, defaultPartitions).facts();
  // The last run has at least three seconds. If ClickHouse takes longer, the row stays in Redis.
  const isPending = tookMs > 3000 && goals === 0 && journalLength === 1;
  assert.ok(goals === 1 || isPending, `${goals} goals, ${journalLength} pending after ${tookMs} ms`);
});

test('A data folder works at another path, after a rebuild without Redis, and with an older Redis', async (t) => {
  const dir = await tempDir(t);
  const [original, copy] = [join(dir, 'original'), join(dir, 'copy')];
  const start = (dataDir: string) => startService(t, { dataDir });
  const track = (service: Service, number: number) =>
    callerOf(service, service.key).track(event({ user_id: 'ada', event_id: `e-${number}` }));
  const addAnswer = async (service: Service, number: number): Promise<void> => {
    assert.equal((await track(service, number)).status, 200);
    await storedOnce(clickhouseOf(t, service), number);
  };
  const readLast = async (service: Service) =>
    readLastRows(await redisOf(t, service.redisUrl), defaultPartitions);
  const countUnknown = async (service: Service, last = readLast(service)): Promise<number> =>
    countNewerRows(clickhouseOf(t, service), await last);

  const before = await start(original);
  await addAnswer(before, 1);
  const first = await track(before, 1);
  assert.ok(await before.stop());
  cpSync(original, copy, { recursive: true });
  rmSync(join(copy, 'redis'), { recursive: true });
  const rebuilt = await runCommand('rebuild', { DATA_DIR: copy }, '--json');
  assert.deepEqual([rebuilt.code, JSON.parse(rebuilt.out).learners], [0, 1], rebuilt.err);

  const restored = await start(copy);
  const replay = await track(restored, 1);
  assert.equal(replay.headers['idempotent-replayed'], 'true');
  assert.deepEqual(replay.json.data, first.json.data);
  assert.equal(await countUnknown(restored), 0);
  await addAnswer(restored, 2);
  assert.ok(await restored.stop());

  rmSync(join(copy, 'redis'), { recursive: true });
  cpSync(join(original, 'redis'), join(copy, 'redis'), { recursive: true });
  const older = await start(copy);
  assert.equal((await track(older, 1)).headers['idempotent-replayed'], 'true');
  const last = readLast(older);
  assert.equal(await countUnknown(older, last), 1, 'only ClickHouse has the second answer');
  await addAnswer(older, 3);
  assert.equal(await countUnknown(older), 0, 'newer answers hide it');
  assert.equal(await countUnknown(older, last), 1, 'the state before them still shows it');
  assert.ok(await older.stop());
});
