import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import type { Redis } from 'ioredis';
import type { RememberedItem } from '../../src/domain/item-window.js';
import { modelVersion } from '../../src/domain/params.js';
import type { ItemTrace } from '../../src/domain/prediction/traces.js';
import { connectRedis, isCluster, type RedisClient, whenReady } from '../../src/store/client.js';
import { openDeployment } from '../../src/store/deployment.js';
import { idBytes } from '../../src/store/event-ids.js';
import { decodeGoal } from '../../src/store/goal-codec.js';
import { forgetOldIds, idWindowSeconds } from '../../src/store/id-window.js';
import { hashItem } from '../../src/store/item-id.js';
import { acceptedKey, learnerKey, markerKey, metaKey, outboxKey } from '../../src/store/keys.js';
import { readLearner, readPacked } from '../../src/store/learner-reads.js';
import type { LearnerCommit } from '../../src/store/learner-records.js';
import { commitLearners, loadLearners } from '../../src/store/learner-store.js';
import { countAnswers } from '../support/answers.js';
import { startTestRedis } from '../support/embedded.js';

const outboxBound = 1000;
const noAttempts = async (): Promise<boolean> => false;

async function connect(t: TestContext): Promise<Redis> {
  const client = connectRedis(await startTestRedis(t)) as Redis;
  t.after(() => client.disconnect());
  await whenReady(client, 5000);
  await openDeployment(client, noAttempts);
  return client;
}

const nobody = { partition: 3, tenant: 'default', userId: 'ünïcode 🙂 learner' };

/** One right answer on a new learner. */
function firstCommit(userId = nobody.userId): LearnerCommit {
  const { learner, skill } = countAnswers([{ isCorrect: true }]);
  return {
    ...nobody,
    userId,
    expectedVersion: 0,
    learner: { ...learner, version: 1 },
    skills: [['algebra', skill]],
    rows: ['row 1', 'row 2'],
    arrivalDays: [20_000, 20_001],
    firstAnswers: [[randomBytes(idBytes), answerAt(1_700_000_000)]],
    itemGeneration: 0,
    items: [],
    importLine: 0,
  };
}

/** A record of an answer's usual size, which leads with the second it came in. */
function answerAt(second: number): Buffer {
  const record = randomBytes(21);
  record.writeUInt32LE(second, 0);
  return record;
}

test('what is committed is what is loaded, together with ids and rows', async (t) => {
  const client = await connect(t);
  const commit = firstCommit();
  assert.deepEqual(await commitLearners(client, [commit], null, outboxBound), ['committed']);
  const [id, answer] = commit.firstAnswers[0] as readonly [Buffer, Buffer];
  const query = {
    ...nobody,
    skillIds: ['algebra', 'other'],
    eventIds: [id, randomBytes(idBytes)],
    itemIds: [],
  };
  const [loaded] = await loadLearners(client, [query], null, true);
  assert.deepEqual(loaded?.learner, commit.learner);
  assert.deepEqual(loaded?.skills, [commit.skills[0]?.[1], null]);
  assert.deepEqual(loaded?.firstAnswers, [answer, null]);
  assert.equal((await client.xrange(outboxKey(3), '-', '+')).length, 2);
  assert.deepEqual((await readLearner(client, nobody))?.skills, new Map(commit.skills));
});

test('many learners are read at once, in the order in which they were asked for, goals and all', async (t) => {
  const client = await connect(t);
  const ids = Array.from({ length: 30 }, (_, i) => `learner-${i}`);
  await commitLearners(
    client,
    ids.map((userId) => firstCommit(userId)),
    null,
    outboxBound,
  );
  const goal = { targetScore: 1200, targetDate: null, updatedAt: 5 };
  await client.hset(learnerKey(3, 'default', 'learner-7'), 'G', JSON.stringify({ v: 1, ...goal }));
  const places = ['nobody', ...ids].map((userId) => ({ ...nobody, userId }));
  const [none, ...found] = (await readPacked(client, places)).map((packed) => packed.unpack());
  assert.equal(none, null);
  assert.deepEqual(
    found.map((learner) => [
      learner?.learner.attempts,
      learner?.skills.map(([skillId]) => skillId),
      learner?.goalRecord && decodeGoal(learner.goalRecord),
    ]),
    ids.map((id) => [1, ['algebra'], id === 'learner-7' ? goal : null]),
  );
});

test('a state that somebody else wrote is never overwritten, and nothing of the commit happens', async (t) => {
  const client = await connect(t);
  await commitLearners(client, [firstCommit()], null, outboxBound);
  const other = firstCommit('somebody else');
  assert.deepEqual(await commitLearners(client, [firstCommit(), other], null, outboxBound), [
    'conflict',
    'committed',
  ]);
  assert.equal(await client.xlen(outboxKey(3)), 4);
  assert.equal(await client.llen('st:{p3}:i:q'), 2);
  const accepted = { 'default:20000': '2', 'default:20001': '2' };
  assert.deepEqual(await client.hgetall(acceptedKey(3)), accepted, 'what was refused is not counted');
});

test('an id that is taken refuses the whole commit, and leaves no other id taken', async (t) => {
  const client = await connect(t);
  const first = firstCommit();
  await commitLearners(client, [first], null, outboxBound);
  const [taken] = first.firstAnswers[0] as readonly [Buffer, Buffer];
  const fresh = randomBytes(idBytes);
  const again: LearnerCommit = {
    ...first,
    expectedVersion: 1,
    learner: { ...first.learner, version: 2 },
    firstAnswers: [fresh, taken].map((id) => [id, answerAt(1_700_000_001)]),
  };
  assert.deepEqual(await commitLearners(client, [again], null, outboxBound), ['repeated']);
  const query = { ...nobody, skillIds: [], eventIds: [fresh, taken], itemIds: [] };
  const [loaded] = await loadLearners(client, [query], null, true);
  assert.deepEqual(loaded?.firstAnswers, [null, first.firstAnswers[0]?.[1]]);
  assert.equal(loaded?.learner?.version, 1);
  assert.equal(await client.llen('st:{p3}:i:q'), 1);
  assert.equal(await client.xlen(outboxKey(nobody.partition)), 2);
});

test('a full outbox refuses, and so does a Redis without marks for a new learner', async (t) => {
  const client = await connect(t);
  await commitLearners(client, [firstCommit()], null, outboxBound);
  const refused = firstCommit('second');
  assert.deepEqual(await commitLearners(client, [refused], null, 2), ['outbox-full']);
  // As an upgrade moves it, or as another version has it: who counts by other formulas counts nothing.
  await client.rename(markerKey(3), markerKey(3, modelVersion - 1));
  assert.deepEqual(await commitLearners(client, [refused], null, outboxBound), ['not-restored']);
  assert.equal(await client.hlen('st:{p3}:i:0'), 1, 'no id is taken');
  assert.deepEqual(await openDeployment(client, async () => true), { state: 'emptied' });
  const other = { partitions: 16, replacing: false };
  await client.hset(metaKey, 'model_version', modelVersion + 1);
  const newer = { ...other, state: 'newer', version: modelVersion + 1 };
  assert.deepEqual(await openDeployment(client, noAttempts), newer);
  await client.hdel(metaKey, 'model_version');
  assert.deepEqual(await openDeployment(client, noAttempts), { ...other, state: 'older', version: 3 });
});

test('an import mark is kept with the commit and read back only by that import', async (t) => {
  const client = await connect(t);
  await commitLearners(client, [{ ...firstCommit(), importLine: 41 }], 'file-a', outboxBound);
  const query = { ...nobody, skillIds: [], eventIds: [], itemIds: [] };
  const lines = await Promise.all(
    ['file-a', 'file-b', null].map(
      async (id) => (await loadLearners(client, [query], id, true))[0]?.importLine,
    ),
  );
  assert.deepEqual(lines, [41, 0, 0]);
});

/** Commits so many ids, all of one second, and returns them. */
async function keepIds(
  client: Redis,
  count: number,
  second: number,
  makeId: () => Buffer = () => randomBytes(idBytes),
): Promise<Buffer[]> {
  const ids: Buffer[] = [];
  const perCommit = 500;
  for (let done = 0; done < count; done += perCommit) {
    const firstAnswers = Array.from({ length: perCommit }, (): readonly [Buffer, Buffer] => [
      makeId(),
      answerAt(second),
    ]);
    const commit = { ...firstCommit(`learner ${second} ${done}`), rows: [], arrivalDays: [], firstAnswers };
    assert.deepEqual(await commitLearners(client, [commit], null, outboxBound), ['committed']);
    ids.push(...firstAnswers.map(([id]) => id));
  }
  return ids;
}

const findIds = async (client: Redis, eventIds: readonly Buffer[]): Promise<number> => {
  const [loaded] = await loadLearners(
    client,
    [{ ...nobody, skillIds: [], eventIds, itemIds: [] }],
    null,
    true,
  );
  return loaded?.firstAnswers.filter((answer) => answer !== null).length ?? 0;
};

/** Of all masters where this is a Cluster, but for what they have on the way to their replicas and to the disk. */
async function usedMemory(client: RedisClient): Promise<number> {
  const servers = isCluster(client) ? client.nodes('master') : [client];
  const infos = await Promise.all(servers.map((server) => server.info('memory')));
  const sum = (name: string): number =>
    infos.reduce((total, info) => total + Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]), 0);
  const onTheWay = ['mem_replication_backlog', 'mem_clients_slaves', 'mem_aof_buffer'];
  return onTheWay.reduce((rest, name) => rest - sum(name), sum('used_memory'));
}

test('an event id takes at most 64 bytes of Redis, and every one is found again', async (t) => {
  const client = await connect(t);
  const count = 50_000;
  const learnerBytes = 640 * (count / 500);
  const before = await usedMemory(client);
  const ids = await keepIds(client, count, 1_700_000_000);
  const perId = ((await usedMemory(client)) - before - learnerBytes) / count;
  t.diagnostic(`${perId.toFixed(1)} bytes per event id`);
  assert.ok(perId <= 64, `${perId} bytes per id`);
  let found = 0;
  for (let i = 0; i < count; i += 1000) found += await findIds(client, ids.slice(i, i + 1000));
  assert.equal(found, count);
});

test('ids that were made to meet in one bucket are moved and found again like others', async (t) => {
  const client = await connect(t);
  let made = 0;
  /** In bucket 0 until there are 257 buckets, then all of them in the last one. */
  const meeting = (): Buffer => {
    const id = Buffer.alloc(idBytes);
    id.writeUInt32LE(256, 0);
    id.writeUInt32LE(made++, 4);
    return id;
  };
  const ids = await keepIds(client, 10_000, 1_700_000_000, meeting);
  await keepIds(client, 1000, 1_700_000_001);
  assert.ok((await client.hlen('st:{p3}:i:256')) >= ids.length);
  assert.equal(await findIds(client, ids.slice(0, 5000)), 5000);
});

test('ids are forgotten after a day, and the oldest first where there are too many', async (t) => {
  const client = await connect(t);
  const now = 1_700_000_000;
  const expired = await keepIds(client, 500, now - idWindowSeconds - 1);
  const old = await keepIds(client, 1000, now - 7200);
  const young = await keepIds(client, 1000, now - 60);
  assert.equal(await forgetOldIds(client, 16, 5000, now * 1000), idWindowSeconds);
  assert.equal(await findIds(client, expired), 0);
  assert.equal(await findIds(client, [...old, ...young]), 2000);
  assert.equal(await forgetOldIds(client, 16, 1200, now * 1000), 7200);
  assert.equal(await findIds(client, young), 1000);
  assert.equal(await findIds(client, old), 200);
});

/** An item as it is remembered after that many right answers. */
const remembered = (generation: number, right: number): RememberedItem<ItemTrace> => ({
  generation,
  trace: { right, wrong: 0, wrongRun: 0, elsewhere: 7, at: 1_700_000_000 },
});

/** A commit that writes items into the generation that is current then. */
function itemCommit(
  version: number,
  from: number,
  to: number,
  items: Record<string, RememberedItem<ItemTrace>>,
): LearnerCommit {
  const base = firstCommit();
  return {
    ...base,
    expectedVersion: version,
    learner: { ...base.learner, version: version + 1, items: { generation: to, size: 1 } },
    firstAnswers: [],
    itemGeneration: from,
    items: Object.entries(items).map(([name, item]) => [hashItem(name), item]),
  };
}

const loadItems = async (client: Redis, names: readonly string[]) => {
  const query = { ...nobody, skillIds: [], eventIds: [], itemIds: names.map(hashItem) };
  return (await loadLearners(client, [query], null, true))[0]?.items;
};

test('items are read from both generations, the newer figures first, and old generations go', async (t) => {
  const client = await connect(t);
  const commit = (...args: Parameters<typeof itemCommit>) =>
    commitLearners(client, [itemCommit(...args)], null, outboxBound);
  const names = ['a', 'b', 'never'];
  await commit(0, 0, 0, { a: remembered(0, 1), b: remembered(0, 2) });
  assert.deepEqual(await loadItems(client, names), [remembered(0, 1), remembered(0, 2), null]);
  await commit(1, 0, 1, { a: remembered(1, 3) });
  assert.deepEqual(await loadItems(client, names), [remembered(1, 3), remembered(0, 2), null]);
  await commit(2, 1, 2, { c: remembered(2, 4) });
  assert.deepEqual(await loadItems(client, ['a', 'b', 'c']), [remembered(1, 3), null, remembered(2, 4)]);
  // A batch of many items may pass over whole generations.
  await commit(3, 2, 5, { d: remembered(5, 5), e: remembered(4, 6), gone: remembered(3, 1) });
  assert.deepEqual(await loadItems(client, ['a', 'c', 'd', 'e', 'gone']), [
    null,
    null,
    remembered(5, 5),
    remembered(4, 6),
    null,
  ]);
});

test('a refused commit leaves the items alone', async (t) => {
  const client = await connect(t);
  await commitLearners(client, [itemCommit(0, 0, 0, { a: remembered(0, 1) })], null, outboxBound);
  const late = itemCommit(0, 0, 2, { a: remembered(2, 9) });
  assert.deepEqual(await commitLearners(client, [late], null, outboxBound), ['conflict']);
  assert.deepEqual(await loadItems(client, ['a']), [remembered(0, 1)]);
});

test('a remembered item takes at most 32 bytes of Redis, its hash included', async (t) => {
  const client = await connect(t);
  const count = 128;
  const items = Object.fromEntries(Array.from({ length: count }, (_, i) => [`item ${i}`, remembered(0, i)]));
  await commitLearners(client, [itemCommit(0, 0, 0, items)], null, outboxBound);
  const key = `st:{p3}:h0:${nobody.tenant}:${nobody.userId}`;
  assert.equal(await client.hlen(key), count);
  const perItem = Number(await client.memory('USAGE', key)) / count;
  t.diagnostic(`${perItem.toFixed(1)} bytes per remembered item`);
  assert.ok(perItem <= 32, `${perItem} bytes per item`);
});
