/** Event ids that are over are looked for in Redis: they go, the others stay, and a commit beside it loses nothing. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, test } from 'node:test';
import { maxListpackBytes } from '../../src/contracts/settings/redis-settings.js';
import { CommitSession } from '../../src/store/learners/commit-session.js';
import {
  emptyIds,
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
/** Ids that were taken here or before are over, however clocks differ. */
const over = now - idWindowSeconds - 3600;

const placeOf = (userId: string) => ({
  partition: partitionOf('default', userId, partitions),
  tenant: 'default',
  userId,
});
const keyOf = (userId: string): string => eventIdsKey(placeOf(userId).partition, 'default', userId);
const freshIds = (count: number): Buffer[] => Array.from({ length: count }, () => randomBytes(idBytes));

/** What a request writes of ids. */
function taken(stored: StoredIds, ids: readonly Buffer[], second: number) {
  const opened = openIds(stored);
  for (const id of ids) opened.add(id, Buffer.alloc(resultBytes), second);
  return opened.changes();
}

/** Ids of a learner who has none, by the second at which they were taken; as they stand where nobody writes any more. */
async function put(userId: string, seconds: Readonly<Record<number, number>>): Promise<Buffer[]> {
  const takenAt = Object.entries(seconds).flatMap(([second, count]) => Array(count).fill(Number(second)));
  const ids = freshIds(takenAt.length);
  const byId = new Map(ids.map((id, i) => [id.toString('hex'), takenAt[i]]));
  // As of one second, for whoever writes a bucket leaves out what is over.
  const changes = taken(emptyIds, ids, takenAt[0]);
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
  const stored = await readEventIds(redis, placeOf(userId), ids);
  return ids.filter((id) => stored.find(id, second) !== null).length;
}

const sweep = (): Promise<number> => sweepIds(redis, 1000 * now);

test('what is over goes, what is not stays, and where nothing is left the hash goes', async () => {
  const gone = await put('gone', { [over - 86_400]: 3, [over]: 70 });
  const mixed = await put('mixed', { [over - 5]: 40, [over]: 40, [over + 1]: 1, [now - 60]: 300 });
  const fresh = await put('fresh', { [now - 1]: 5 });
  const ledger = await redis.hgetBuffer(keyOf('mixed'), ledgerField);
  assert.equal(await sweep(), gone.length + 80);
  assert.equal(await redis.exists(keyOf('gone')), 0);
  assert.equal(await countFound('mixed', mixed, over + 2), 301, 'clocks may differ');
  assert.equal(await countFound('mixed', mixed.slice(-300)), 300);
  assert.deepEqual(await redis.hgetBuffer(keyOf('mixed'), ledgerField), ledger);
  assert.equal(await countFound('fresh', fresh), 5);
  const left = await redis.hgetallBuffer(keyOf('mixed'));
  const entries = Object.entries(left).filter(([field]) => field !== ledgerField);
  assert.equal(
    entries.reduce((sum, [, { length }]) => sum + length, 0),
    301 * entryBytes,
  );
  assert.equal(await sweep(), 0, 'once');
});

test('of many learners in all partitions each is looked at', async () => {
  const names = Array.from({ length: 1200 }, (_, i) => `one of many ${i}`);
  await Promise.all(names.map((name, i) => put(name, i % 3 === 0 ? { [now]: 1 } : { [over]: 1 + (i % 2) })));
  const sum = names.reduce((total, _, i) => total + (i % 3 === 0 ? 0 : 1 + (i % 2)), 0);
  assert.equal(await sweep(), sum);
  const there = await Promise.all(names.map((name) => redis.exists(keyOf(name))));
  assert.deepEqual(
    there,
    names.map((_, i) => (i % 3 === 0 ? 1 : 0)),
  );
});

/** A request of a learner, with something done between its reading and its writing. */
async function commit(userId: string, ids: readonly Buffer[], meanwhile = sweep) {
  const place = placeOf(userId);
  const session = new CommitSession(await hot.forPartition(place.partition), {
    importId: null,
    maxOutboxRows: 1_000_000,
  });
  const {
    learners: [loaded],
  } = await session.load([{ ...place, skillIds: [], eventIdHashes: ids, itemHashes: [] }]);
  await meanwhile();
  const { learner } = countAnswers([{ isCorrect: true }]);
  return session.commit([
    {
      ...place,
      learner: { ...learner, version: (loaded?.learner?.version ?? 0) + 1 },
      ...{ skills: [], rows: [], arrivalDays: [], items: [], itemGeneration: 0, importLine: 0 },
      ...{ webhookEvents: [], goalCheckAt: null },
      ids: taken(loaded?.ids ?? emptyIds, ids, now),
    },
  ]);
}

test('a look between reading and writing loses nothing and refuses nothing', async () => {
  const user = 'committed';
  await put(user, { [over]: 200 });
  const ids = freshIds(30);
  assert.deepEqual(await commit(user, ids), ['committed']);
  assert.equal(await countFound(user, ids), ids.length);
  const more = freshIds(100);
  assert.deepEqual(await commit(user, more), ['committed']);
  await sweep();
  assert.equal(await countFound(user, [...ids, ...more]), 130);
  const count = (await redis.hgetBuffer(keyOf(user), ledgerField))?.readUInt32LE(0);
  assert.equal(count, 330, 'none is counted anew');
});

test('looks beside many requests lose nothing', async () => {
  const user = 'busy';
  await put(user, { [over]: 500 });
  const all: Buffer[] = [];
  let done = false;
  const looking = (async () => {
    while (!done) await sweep();
  })();
  try {
    for (let i = 0; i < 60; i++) {
      const ids = freshIds(1 + (i % 7));
      assert.deepEqual(await commit(user, ids, async () => 0), ['committed']);
      all.push(...ids);
    }
  } finally {
    done = true;
    await looking;
  }
  assert.equal(await countFound(user, all), all.length);
});

test('one process looks every few hours', async () => {
  assert.deepEqual([await acquireSweepTurn(redis), await acquireSweepTurn(redis)], [true, false]);
  const ttl = await redis.ttl(eventIdSweepKey);
  assert.ok(ttl > 3 * 3600 && ttl <= 4 * 3600, `${ttl}`);
  // Another 24 hours, an hour for clocks, a turn and one that was missed: within 36 hours ids are gone.
  assert.ok(24 + 1 + (2 * ttl) / 3600 < 36);
});

test('a learner whose name holds what is looked for is left alone', async () => {
  const name = 'x}:e:y';
  const key = learnerKey(placeOf(name).partition, 'default', name);
  await redis.hset(key, { sx: Buffer.alloc(70), sy: Buffer.alloc(96) });
  const ids = await put(name, { [over]: 2, [now]: 1 });
  assert.equal(await sweep(), 2);
  assert.deepEqual([await redis.hlen(key), await countFound(name, ids)], [2, 1]);
});

test('a hash that outgrew its compact form returns to it', async () => {
  await redis.config('SET', 'hash-max-listpack-value', maxListpackBytes);
  const ids = await put('busy', { [over]: 5000, [now]: 60 });
  assert.equal(await redis.object('ENCODING', keyOf('busy')), 'hashtable');
  assert.equal(await sweep(), 5000);
  assert.equal(await redis.object('ENCODING', keyOf('busy')), 'listpack');
  assert.equal(await countFound('busy', ids), 60);
});
