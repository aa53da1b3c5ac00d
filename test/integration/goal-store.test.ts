import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { createGoalStore, type GoalWrite, storeGoalStatus } from '../../src/store/learners/goals.js';
import { journalKey, learnerKey, partitionOf } from '../../src/store/redis/keys.js';
import { openDeployment } from '../../src/store/redis/server/deployment.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';

const tenant = 'default';
const userId = 'back\\slash';
const partition = partitionOf(tenant, userId, 16);
const now = 1_800_000_000_000;
const url = await startTestRedis({ after });
const redis = await redisOf({ after }, url);
const goals = createGoalStore(redis, 16);

beforeEach(async () => {
  await redis.flushall();
  await openDeployment(redis, async () => false);
});

const setGoal = (targetScore: number | null, change: Partial<GoalWrite> = {}): GoalWrite => ({
  tenant,
  userId,
  setting: targetScore === null ? null : { targetScore, targetDate: '2099-01-01' },
  ifMatch: null,
  now,
  ...change,
});

test('The goal store writes each change to the journal, with times that increase whatever the clock shows', async () => {
  for (const write of [setGoal(900), setGoal(910), setGoal(null), setGoal(920, { now: now - 5000 })])
    assert.equal((await goals.write(write)).status, 'written');
  const entries = await redis.xrange(journalKey(partition), '-', '+');
  const expected = ['900\t2099-01-01', '910\t2099-01-01', '\\N\t\\N', '920\t2099-01-01'];
  for (const [i, [, fields]] of entries.entries())
    assert.deepEqual(fields, ['k', 'goal', 'r', `${now + i}\tdefault\tback\\\\slash\t${expected[i]}`]);
  assert.equal(entries.length, expected.length);
  const found = await goals.read(tenant, userId);
  assert.deepEqual(found?.value, {
    targetScore: 920,
    targetDate: '2099-01-01',
    updatedAt: now + 3,
    status: null,
  });
});

test('storeGoalStatus keeps the version of the goal, and writes nothing after a change of the goal', async () => {
  const key = learnerKey(partition, tenant, userId);
  const location = { partition, tenant, userId };
  const readRecord = async (): Promise<string> => (await redis.hget(key, 'G')) ?? '';
  await goals.write(setGoal(900));
  const first = await goals.read(tenant, userId);
  for (const status of ['at_risk', 'reached'] as const) {
    await storeGoalStatus(redis, location, await readRecord(), status);
    const found = await goals.read(tenant, userId);
    assert.deepEqual(found, { value: { ...first?.value, status }, tag: first?.tag });
  }
  const old = await readRecord();
  assert.equal((await goals.write(setGoal(900, { ifMatch: [first?.tag ?? ''] }))).status, 'written');
  await storeGoalStatus(redis, location, old, 'on_track');
  assert.equal((await goals.read(tenant, userId))?.value.status, null);
  await redis.del(key);
  await storeGoalStatus(redis, location, old, 'on_track');
  assert.equal(await redis.exists(key), 0, 'an erased learner');
  const closed = await redisOf({ after }, url);
  closed.disconnect();
  await assert.rejects(storeGoalStatus(closed, location, old, 'on_track'), { code: 'UNAVAILABLE' });
});

test('The goal store writes nothing if the journal is full or Redis came back empty', async () => {
  const limited = createGoalStore(redis, 16, 2);
  const unavailable = { code: 'UNAVAILABLE' };
  await limited.write(setGoal(900));
  await limited.write(setGoal(910));
  await assert.rejects(limited.write(setGoal(920)), unavailable);
  assert.equal((await limited.read(tenant, userId))?.value.targetScore, 910);
  await redis.flushall();
  for (const ifMatch of [null, '*', ['x']] as const)
    for (const score of [930, null])
      await assert.rejects(limited.write(setGoal(score, { ifMatch })), unavailable);
  assert.equal(await redis.xlen(journalKey(partition)), 0);
});
