/** Webhook events of skills: written in the commit that decides them, each once. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { parseLearnerHash } from '../../src/contracts/webhooks/webhook-events.js';
import { indices } from '../../src/lists.js';
import { goalChecksKey, outboxKey, partitionOf } from '../../src/store/redis/keys.js';
import { seeded } from '../support/builders/random.js';
import {
  expectedEvents,
  flatAndSteep,
  sendUntilCounted,
  skillTypes,
} from '../support/builders/skill-events.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf } from '../support/http/http.js';
import { clickhouseOf, keysOf, redisOf, sharedService } from '../support/servers/service.js';
import { subscribe } from '../support/servers/webhook-subscription.js';
import { emptied } from '../support/wait.js';

const service = await sharedService();
const { tenant } = service;
const redis = await redisOf({ after }, service.redisUrl);
const clickhouse = clickhouseOf({ after }, service);
const keys = await keysOf({ after }, service);
const caller = callerOf(service, service.key);
const partition = (userId: string): number => partitionOf(tenant, userId, 16);

const right = (userId: string, i: number) => ({
  ...{ user_id: userId, skill_id: 'a', is_correct: true, event_id: `${userId}-${i}` },
});
for (const i of indices(3)) assert.equal((await caller.track(right('before', i))).status, 200);
const endpoint = await subscribe(redis, tenant, [...skillTypes]);
const messagesOf = async (userId: string) =>
  (await endpoint.messages()).filter(({ data }) => data.user_id === userId);

test('track-answer writes one event for the answer that reaches mastery, for subscribed tenants', async () => {
  const other = callerOf(service, await keys.add({ tenant: 'unsubscribed' }));
  const counted = [];
  for (const i of indices(12)) {
    counted.push((await caller.track(right('ada', i))).json.data);
    await other.track(right('ada', i));
  }
  for (const i of indices(12)) await caller.track(right('ada', i));
  const at = counted.findIndex(({ mastery_after }) => mastery_after >= 0.95);
  const [message, ...more] = await messagesOf('ada');
  assert.deepEqual([more, await messagesOf('before')], [[], []]);
  assert.match(parseLearnerHash(message?.id ?? '') ?? '', /^[\da-f]{32}$/);
  const { type, timestamp, data } = message ?? {};
  assert.equal(type, 'mastery.reached');
  assert.ok(Math.abs(Date.parse(timestamp) - Date.now()) < 120_000);
  const { mastery_after, total_attempts, correct_attempts } = counted[at];
  assert.deepEqual(data, {
    ...{ user_id: 'ada', skill_id: 'a', event_id: `ada-${at}`, occurred_at: timestamp },
    ...{ mastery_after, total_attempts, correct_attempts },
  });
  assert.equal(await redis.zscore(goalChecksKey(partition('ada')), `${tenant}:ada`), null);
});

test('npm run import writes no event and no goal check, and later answers repeat no event', async () => {
  await endpoint.changeTypes([...skillTypes, 'goal.reached']);
  const path = join(service.dataDir, `answers-${tenant}.csv`);
  const lines = indices(12).map((i) => `imported,a,1,${i}`);
  await writeFile(path, `user_id,skill_id,correct,order\n${lines.join('\n')}\n`);
  const { redisUrl: REDIS_URL, clickhouseUrl: CLICKHOUSE_URL, dataDir: DATA_DIR } = service;
  const env = { REDIS_URL, CLICKHOUSE_URL, DATA_DIR };
  const { code, err } = await runCommand('import', env, '--tenant', tenant, path);
  assert.equal(code, 0, err);
  const goalCheck = () => redis.zscore(goalChecksKey(partition('imported')), `${tenant}:imported`);
  assert.equal(await goalCheck(), null);
  const { json } = await caller.track(right('imported', 12));
  assert.ok(json.data.mastery_after > 0.95);
  assert.deepEqual(await messagesOf('imported'), []);
  assert.equal(await goalCheck(), null, 'a check is scheduled without a goal');
  const goal = { method: 'PUT', path: '/api/v1/goals/imported', body: '{"target_score":1400}' };
  assert.equal((await caller.call(goal)).status, 200);
  await redis.zrem(goalChecksKey(partition('imported')), `${tenant}:imported`);
  await caller.track(right('imported', 13));
  const due = Number(await goalCheck()) - Date.now();
  assert.ok(due > 0 && due <= 60_000, `the next check is due in ${due} ms`);
  await endpoint.changeTypes([...skillTypes]);
});

test('Two processes that count answers of one learner write each event once', async () => {
  const callers = [caller, callerOf(await service.second(), service.key)];
  const random = seeded(20_261_201);
  await Promise.all(
    callers.map((by, i) => sendUntilCounted(() => by, flatAndSteep(random, 'hot', 90, `process-${i}`))),
  );
  await emptied(redis, outboxKey(partition('hot')));
  const expected = (await expectedEvents(clickhouse, { tenant, userId: 'hot' })).get('hot') ?? [];
  assert.ok(expected.length >= 3, `only ${expected.length} events are expected`);
  const written = (await messagesOf('hot')).map(({ type, data }) => [type, data.skill_id, data.event_id]);
  assert.deepEqual(written, expected);
});
