/** Events of skills: in the stream with the commit that decides them, once, whatever becomes of the processes. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { parseLearnerHash, type WebhookType } from '../../src/contracts/webhooks/webhook-events.js';
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
import { type Listener, listenFor } from '../support/servers/listener.js';
import { clickhouseOf, keysOf, redisOf, startSecondApi, startService } from '../support/servers/service.js';
import { launchService } from '../support/servers/service-process.js';
import { emptied } from '../support/wait.js';

const service = await startService({ after });
const redis = await redisOf({ after }, service.redisUrl);
const clickhouse = clickhouseOf({ after }, service);
const keys = await keysOf({ after }, service);
const caller = callerOf(service, service.key);

let listener: Listener | undefined;

async function want(...types: WebhookType[]): Promise<void> {
  if (listener === undefined) listener = await listenFor(redis, 'default', types);
  else await listener.askFor(types);
}

/** Of a learner, as the endpoint is to be told. */
const eventsOf = async (userId: string) =>
  ((await listener?.told()) ?? []).filter(({ data }) => data.user_id === userId);

/** That follow from the learner's rows, in their order. */
async function expectedOf(userId: string): Promise<readonly unknown[]> {
  await emptied(redis, outboxKey(partitionOf('default', userId, 16)));
  return (await expectedEvents(clickhouse, { tenant: 'default', userId })).get(userId) ?? [];
}

const told = async (userId: string): Promise<unknown[]> =>
  (await eventsOf(userId)).map(({ type, data }) => [type, data.skill_id, data.event_id]);

const random = seeded(20_261_201);
const answersOf = (userId: string, count: number, name: string) => flatAndSteep(random, userId, count, name);

test('what a tenant asks for is told from the next answer on, to nobody else, and nothing twice', async () => {
  const right = (userId: string, i: number) => ({
    user_id: userId,
    skill_id: 'a',
    is_correct: true,
    event_id: `${i}`,
  });
  for (let i = 0; i < 3; i++) assert.equal((await caller.track(right('before', i))).status, 200);
  await want(...skillTypes);
  const other = callerOf(service, await keys.add({ tenant: 'other' }));
  const counted = [];
  for (let i = 0; i < 12; i++) {
    counted.push((await caller.track(right('ada', i))).json.data);
    await other.track(right('ada', i));
  }
  for (let i = 0; i < 12; i++) await caller.track(right('ada', i));
  const at = counted.findIndex(({ mastery_after }) => mastery_after >= 0.95);
  const [event, ...more] = await eventsOf('ada');
  assert.deepEqual([more, await eventsOf('before')], [[], []]);
  assert.match(parseLearnerHash(event?.id ?? '') ?? '', /^[\da-f]{32}$/);
  const { type, timestamp, data } = event ?? {};
  assert.equal(type, 'mastery.reached');
  assert.ok(Math.abs(Date.parse(timestamp) - Date.now()) < 120_000);
  const { occurred_at, ...figures } = data;
  assert.equal(occurred_at, timestamp);
  const { mastery_after, total_attempts, correct_attempts } = counted[at];
  const ids = { user_id: 'ada', skill_id: 'a', event_id: `${at}` };
  assert.deepEqual(figures, { ...ids, mastery_after, total_attempts, correct_attempts });
  assert.equal(await redis.zcard(goalChecksKey(partitionOf('default', 'ada', 16))), 0);
});

test('an import tells nobody and asks for no check, but what it reached is no news afterwards', async () => {
  await want(...skillTypes, 'goal.reached');
  const path = join(service.dataDir, 'answers.csv');
  const lines = Array.from({ length: 12 }, (_, i) => `imported,a,1,${i}`);
  await writeFile(path, `user_id,skill_id,correct,order\n${lines.join('\n')}\n`);
  const { code, err } = await runCommand('import', { DATA_DIR: service.dataDir }, path);
  assert.equal(code, 0, err);
  const partition = partitionOf('default', 'imported', 16);
  const check = () => redis.zscore(goalChecksKey(partition), 'default:imported');
  assert.equal(await check(), null);
  const { json } = await caller.track({ user_id: 'imported', skill_id: 'a', is_correct: true });
  assert.ok(json.data.mastery_after > 0.95);
  assert.deepEqual(await eventsOf('imported'), []);
  assert.equal(await check(), null, 'without a goal there is nothing to check');
  const goal = { method: 'PUT', path: '/api/v1/goals/imported', body: '{"target_score":1400}' } as const;
  assert.equal((await caller.call(goal)).status, 200);
  await redis.zrem(goalChecksKey(partition), 'default:imported');
  await caller.track({ user_id: 'imported', skill_id: 'a', is_correct: true });
  const due = Number(await check()) - Date.now();
  assert.ok(due > 0 && due <= 60_000, `${due}`);
  await want(...skillTypes);
});

test('two processes that meet on a learner tell each change once', async () => {
  const second = callerOf(await startSecondApi({ after }, service), service.key);
  const lists = ['one', 'two'].map((name) => answersOf('hot', 90, name));
  await Promise.all(lists.map((list, i) => sendUntilCounted(() => (i === 0 ? caller : second), list)));
  const expected = await expectedOf('hot');
  assert.ok(expected.length >= 3, `${expected.length}`);
  assert.deepEqual(await told('hot'), expected);
});

test('a process that is killed at any moment loses no event and invents none', {
  timeout: 240_000,
}, async (t) => {
  const running = await launchService(t, { ROLE: 'api', DATA_DIR: service.dataDir });
  const users = ['kill-1', 'kill-2', 'kill-3'];
  let current = callerOf(running, service.key);
  // What was not answered is sent again, to another process.
  running.child.once('exit', () => {
    current = caller;
  });
  let left = 60 + Math.floor(200 * random());
  const countDown = (): void => {
    left -= 1;
    if (left === 0) running.child.kill('SIGKILL');
  };
  await Promise.all(
    users.map((user) => sendUntilCounted(() => current, answersOf(user, 120, user), countDown)),
  );
  assert.equal(running.child.signalCode, 'SIGKILL');
  for (const user of users) {
    const expected = await expectedOf(user);
    assert.ok(expected.length >= 1, user);
    assert.deepEqual(await told(user), expected);
  }
});
