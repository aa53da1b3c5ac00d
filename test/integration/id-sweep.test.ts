/** The sweep that removes expired event ids. Also runs on a Redis Cluster (full/cluster). */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, test } from 'node:test';
import { maxListpackBytes } from '../../src/contracts/settings/redis-settings.js';
import { mapNonEmpty, type NonEmpty } from '../../src/domain/base/common.js';
import { indices } from '../../src/lists.js';
import { CommitSession } from '../../src/store/learners/commit-session.js';
import {
  emptyIds,
  encodeFirstResult,
  entryBytes,
  idBytes,
  idWindowSeconds,
  ledgerField,
  openIds,
  resultBytes,
  type StoredIds,
} from '../../src/store/learners/event-ids.js';
import { acquireSweepTurn, sweepIds } from '../../src/store/learners/id-sweep.js';
import { readEventIds } from '../../src/store/learners/learner-reads.js';
import { openHotConnections } from '../../src/store/redis/connection/hot-connection.js';
import { eventIdSweepKey, eventIdsKey, learnerKey, partitionOf } from '../../src/store/redis/keys.js';
import { openDeployment } from '../../src/store/redis/server/deployment.js';
import { countAnswers } from '../support/builders/answers.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';

const url = await startTestRedis({ after });
const redis = await redisOf({ after }, url);
const hot = openHotConnections(url, 0, async () => redis);
after(hot.close);
const { partitions } = (await openDeployment(redis, async () => false)) as { partitions: number };

const now = 1_700_481_600;
/** Ids of this second or earlier are expired, also if clocks differ by an hour. */
const expired = now - idWindowSeconds - 3600;

const tenant = 'default';
const locate = (userId: string) => ({ partition: partitionOf(tenant, userId, partitions), tenant, userId });
const keyOf = (userId: string): string => eventIdsKey(locate(userId).partition, tenant, userId);
const freshIds = (count: number): Buffer[] => indices(count).map(() => randomBytes(idBytes));

const skill = { masteryBefore: 0, masteryAfter: 0, attempts: 0, correct: 0, plateauDetected: false };

function recordOf(skillIds: NonEmpty<string>): Buffer {
  const figures = { skillIds, skills: mapNonEmpty(skillIds, () => skill), advice: null };
  return encodeFirstResult(figures, Buffer.alloc(6), 0);
}

/** The fields that a request writes. @param skillIds of each answer */
function addIds(
  stored: StoredIds,
  ids: readonly Buffer[],
  second: number,
  skillIds: NonEmpty<string> = ['a'],
) {
  const opened = openIds(stored);
  for (const id of ids) opened.add(id, recordOf(skillIds), second);
  return opened.changes();
}

/** Stores ids of a new learner. @param seconds number of ids by the second of their arrival */
async function storeIds(userId: string, seconds: Readonly<Record<number, number>>): Promise<Buffer[]> {
  const addedAt = Object.entries(seconds).flatMap(([second, count]) => Array(count).fill(Number(second)));
  const ids = freshIds(addedAt.length);
  const byId = new Map(ids.map((id, i) => [id.toString('hex'), addedAt[i]]));
  // All with the same second first, because a write to a bucket drops expired ids.
  const changes = addIds(emptyIds, ids, addedAt[0]);
  for (const [field, bucket] of changes) {
    if (field === ledgerField) continue;
    for (let at = 0; at < bucket.length; at += entryBytes) {
      const id = bucket.toString('hex', at, at + idBytes);
      bucket.writeUInt32LE(byId.get(id) as number, at + idBytes);
    }
  }
  await redis.hset(keyOf(userId), ...changes.flat());
  return ids;
}

async function countFound(userId: string, ids: readonly Buffer[], second = now): Promise<number> {
  const stored = await readEventIds(redis, locate(userId), ids);
  return ids.filter((id) => stored.find(id, second) !== null).length;
}

const sweep = (): Promise<number> => sweepIds(redis, 1000 * now);

test('sweepIds removes expired ids, keeps the others, and deletes an empty hash', async () => {
  const removed = await storeIds('removed', { [expired - 86_400]: 3, [expired]: 70 });
  const mixedAges = { [expired - 5]: 40, [expired]: 40, [expired + 1]: 1, [now - 60]: 300 };
  const mixed = await storeIds('mixed', mixedAges);
  const fresh = await storeIds('fresh', { [now - 1]: 5 });
  const ledger = await redis.hgetBuffer(keyOf('mixed'), ledgerField);
  assert.equal(await sweep(), removed.length + 80);
  assert.equal(await redis.exists(keyOf('removed')), 0);
  assert.equal(await countFound('mixed', mixed, expired + 2), 301);
  assert.equal(await countFound('mixed', mixed.slice(-300)), 300);
  assert.deepEqual(await redis.hgetBuffer(keyOf('mixed'), ledgerField), ledger);
  assert.equal(await countFound('fresh', fresh), 5);
  const left = await redis.hgetallBuffer(keyOf('mixed'));
  const buckets = Object.entries(left).flatMap(([field, bytes]) => (field === ledgerField ? [] : [bytes]));
  assert.equal(Buffer.concat(buckets).length, 301 * entryBytes);
  assert.equal(await sweep(), 0);
});

test('sweepIds counts and removes the id of an answer with several skills once, and completely', async () => {
  const key = keyOf('several skills');
  const skillIds = ['a', 'b', 'c'] as const;
  const [old, fresh] = [freshIds(200), freshIds(100)];
  // In another order than by time, because a write to a bucket drops expired ids.
  const buckets = [addIds(emptyIds, old, expired, skillIds), addIds(emptyIds, fresh, now, skillIds)];
  for (const [field, bucket] of buckets[0] ?? []) await redis.hset(key, field, bucket);
  for (const [field, bucket] of buckets[1] ?? []) {
    const before = (await redis.hgetBuffer(key, field)) ?? Buffer.alloc(0);
    await redis.hset(key, field, field === ledgerField ? bucket : Buffer.concat([before, bucket]));
  }
  assert.equal(await sweep(), 200);
  const stored = await readEventIds(redis, locate('several skills'), fresh);
  for (const id of fresh) assert.equal(stored.find(id, now)?.length, resultBytes + 2 * entryBytes);
  assert.equal(await countFound('several skills', old, expired + 1), 0);
});

test('sweepIds covers all learners of all partitions', async () => {
  // Every third learner has a fresh id; the others have one or two expired ids.
  const names = indices(600).map((i) => `one of many ${i}`);
  await Promise.all(
    names.map((name, i) => storeIds(name, i % 3 === 0 ? { [now]: 1 } : { [expired]: 1 + (i % 2) })),
  );
  assert.equal(await sweep(), 600);
  for (const [i, name] of names.entries()) assert.equal(await redis.exists(keyOf(name)), i % 3 === 0 ? 1 : 0);
});

/** Commits an answer with ids. @param between runs after the load */
async function commit(userId: string, ids: readonly Buffer[], between = sweep) {
  const location = locate(userId);
  const options = { importId: null, maxOutboxRows: 1_000_000 };
  const session = new CommitSession(await hot.forPartition(location.partition), options);
  const query = { ...location, skillIds: [], eventIdHashes: ids, itemHashes: [] };
  const [loaded] = (await session.load([query])).learners;
  await between();
  const { learner } = countAnswers([{ isCorrect: true }]);
  const change = {
    ...{ skills: [], rows: [], arrivalDays: [], items: [], itemGeneration: 0, importLine: 0 },
    ...{ webhookEvents: [], goalCheckAt: null },
    learner: { ...learner, version: (loaded?.learner?.version ?? 0) + 1 },
    ids: addIds(loaded?.ids ?? emptyIds, ids, now),
  };
  return session.commit([{ ...location, ...change }]);
}

test('sweepIds between load and commit causes neither a lost id nor a conflict', async () => {
  const user = 'committed';
  await storeIds(user, { [expired]: 200 });
  const ids = freshIds(30);
  assert.deepEqual(await commit(user, ids), ['committed']);
  assert.equal(await countFound(user, ids), ids.length);
  const more = freshIds(100);
  assert.deepEqual(await commit(user, more), ['committed']);
  await sweep();
  assert.equal(await countFound(user, [...ids, ...more]), 130);
  const count = (await redis.hgetBuffer(keyOf(user), ledgerField))?.readUInt32LE(0);
  assert.equal(count, 330);
});

test('sweepIds loses no ids of concurrent commits', async () => {
  const user = 'busy';
  await storeIds(user, { [expired]: 500 });
  const all: Buffer[] = [];
  let isDone = false;
  const sweeping = (async () => {
    while (!isDone) await sweep();
  })();
  try {
    for (let i = 0; i < 30; i++) {
      const ids = freshIds(1 + (i % 7));
      assert.deepEqual(await commit(user, ids, async () => 0), ['committed']);
      all.push(...ids);
    }
  } finally {
    isDone = true;
    await sweeping;
  }
  assert.equal(await countFound(user, all), all.length);
});

test('acquireSweepTurn lets one process sweep every four hours, so that ids are removed within 36 hours', async () => {
  assert.deepEqual([await acquireSweepTurn(redis), await acquireSweepTurn(redis)], [true, false]);
  const ttl = await redis.ttl(eventIdSweepKey);
  assert.ok(ttl > 3 * 3600 && ttl <= 4 * 3600, `${ttl}`);
  // 24 hours, an hour for clocks, and two turns, of which the first may be missed.
  assert.ok(24 + 1 + (2 * ttl) / 3600 < 36);
});

test('sweepIds ignores the key of a learner with a user_id that looks like a key of event ids', async () => {
  const name = 'x}:e:y';
  const key = learnerKey(locate(name).partition, tenant, name);
  await redis.hset(key, { sx: Buffer.alloc(70), sy: Buffer.alloc(96) });
  const ids = await storeIds(name, { [expired]: 2, [now]: 1 });
  assert.equal(await sweep(), 2);
  assert.deepEqual([await redis.hlen(key), await countFound(name, ids)], [2, 1]);
});

test('sweepIds restores the compact encoding of a hash that shrinks', async () => {
  await redis.config('SET', 'hash-max-listpack-value', maxListpackBytes);
  const ids = await storeIds('busy', { [expired]: 5000, [now]: 60 });
  assert.equal(await redis.object('ENCODING', keyOf('busy')), 'hashtable');
  assert.equal(await sweep(), 5000);
  assert.equal(await redis.object('ENCODING', keyOf('busy')), 'listpack');
  assert.equal(await countFound('busy', ids), 60);
});
