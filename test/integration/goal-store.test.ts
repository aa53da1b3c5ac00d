/** Goals in Redis: what one step writes, and when it refuses. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { ApiError } from '../../src/errors.js';
import { createGoalStore, type GoalWrite } from '../../src/store/learners/goals.js';
import { readLearnerStates, readPacked } from '../../src/store/learners/learner-reads.js';
import { type RedisClient, waitUntilReady } from '../../src/store/redis/connection/client.js';
import { journalKey, learnerKey, partitionOf } from '../../src/store/redis/keys.js';
import { openDeployment } from '../../src/store/redis/server/deployment.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';

const partitions = 16;
const tenant = 'default';
const userId = 'back\\slash';
const partition = partitionOf(tenant, userId, partitions);
const now = 1_800_000_000_000;

async function connect(t: TestContext): Promise<RedisClient> {
  const client = await redisOf(t, await startTestRedis(t));
  await waitUntilReady(client, 5000);
  await openDeployment(client, async () => false);
  return client;
}

const change = (targetScore: number | null, others: Partial<GoalWrite> = {}): GoalWrite => ({
  tenant,
  userId,
  setting: targetScore === null ? null : { targetScore, targetDate: '2099-01-01' },
  ifMatch: null,
  now,
  ...others,
});

const unavailable = (error: unknown): boolean => error instanceof ApiError && error.code === 'UNAVAILABLE';

test('each change is noted beside it, with a later time, whatever the clock says', async (t) => {
  const client = await connect(t);
  const goals = createGoalStore(client, partitions);
  for (const write of [change(900), change(910), change(null), change(920, { now: now - 5000 })]) {
    assert.equal((await goals.write(write)).status, 'written');
  }
  const entries = await client.xrange(journalKey(partition), '-', '+');
  assert.deepEqual(
    entries.map(([, fields]) => fields),
    [
      ['k', 'goal', 'r', `${now}\tdefault\tback\\\\slash\t900\t2099-01-01`],
      ['k', 'goal', 'r', `${now + 1}\tdefault\tback\\\\slash\t910\t2099-01-01`],
      ['k', 'goal', 'r', `${now + 2}\tdefault\tback\\\\slash\t\\N\t\\N`],
      ['k', 'goal', 'r', `${now + 3}\tdefault\tback\\\\slash\t920\t2099-01-01`],
    ],
  );
  const found = await goals.read(tenant, userId);
  assert.deepEqual(found?.value, { targetScore: 920, targetDate: '2099-01-01', updatedAt: now + 3 });
});

test('a tag stands for one content at one time', async (t) => {
  const goals = createGoalStore(await connect(t), partitions);
  const first = await goals.write(change(900));
  assert.equal(first.status, 'written');
  const tag = 'tag' in first ? first.tag : '';
  assert.equal((await goals.read(tenant, userId))?.tag, tag);
  assert.deepEqual(await goals.write(change(910, { ifMatch: [] })), { status: 'mismatch' });
  assert.deepEqual(await goals.write(change(910, { ifMatch: ['', 'x', tag.slice(1)] })), {
    status: 'mismatch',
  });
  assert.equal((await goals.write(change(910, { ifMatch: ['x', tag] }))).status, 'written');
  assert.deepEqual(await goals.write(change(null, { ifMatch: [tag] })), { status: 'mismatch' });
  assert.equal((await goals.write(change(null, { ifMatch: '*' }))).status, 'written');
  assert.deepEqual(await goals.write(change(null, { ifMatch: '*' })), { status: 'absent' });
  assert.deepEqual(await goals.write(change(920, { ifMatch: '*' })), { status: 'mismatch' });
  assert.equal(await goals.read(tenant, userId), null);
});

test('nothing is written where the journal is full, or where Redis came back empty', async (t) => {
  const client = await connect(t);
  const goals = createGoalStore(client, partitions, 2);
  await goals.write(change(900));
  await goals.write(change(910));
  await assert.rejects(goals.write(change(920)), unavailable);
  assert.equal((await goals.read(tenant, userId))?.value.targetScore, 910);
  await client.flushall();
  for (const ifMatch of [null, '*', ['x']] as const) {
    await assert.rejects(goals.write(change(930, { ifMatch })), unavailable);
    await assert.rejects(goals.write(change(null, { ifMatch })), unavailable);
  }
  assert.equal(await client.xlen(journalKey(partition)), 0);
});

test('a goal alone makes no learner, alone or among many', async (t) => {
  const client = await connect(t);
  await createGoalStore(client, partitions).write(change(900));
  const place = { partition, tenant, userId };
  assert.equal(await readLearnerStates(client, place), null);
  const packed = await readPacked(client, [place, { ...place, userId: 'nobody' }]);
  assert.deepEqual(
    packed.map((learner) => learner.unpack()),
    [null, null],
  );
  assert.deepEqual(await readPacked(client, []), []);
});

test('a goal of a newer version of the service is refused, not guessed', async (t) => {
  const client = await connect(t);
  await client.hset(learnerKey(partition, tenant, userId), 'G', '{"v":2,"updatedAt":1}');
  await assert.rejects(createGoalStore(client, partitions).read(tenant, userId), /not known to this version/);
});
