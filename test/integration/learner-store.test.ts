/** What Redis stores of learners. Also runs on a Redis Cluster (full/cluster). */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, test } from 'node:test';
import type { ItemRecord } from '../../src/domain/tracing/learner-states.js';
import { newItemTrace } from '../../src/domain/tracing/traces.js';
import { indices } from '../../src/lists.js';
import {
  CommitSession,
  type CommitStatus,
  type SessionOptions,
} from '../../src/store/learners/commit-session.js';
import {
  emptyIds,
  idBytes,
  openIds,
  resultBytes,
  type StoredIds,
} from '../../src/store/learners/event-ids.js';
import { decodeGoal } from '../../src/store/learners/goals.js';
import type { LearnerCommit, LearnerQuery } from '../../src/store/learners/learner-commands.js';
import { readEventIds, readLearnerStates, readPacked } from '../../src/store/learners/learner-reads.js';
import { hashItem } from '../../src/store/models/item-store.js';
import { openHotConnections } from '../../src/store/redis/connection/hot-connection.js';
import {
  acceptedCountsKey,
  eventIdsKey,
  itemTracesKey,
  learnerKey,
  metaKey,
  outboxKey,
  stateVersion,
} from '../../src/store/redis/keys.js';
import { openDeployment } from '../../src/store/redis/server/deployment.js';
import { countAnswers } from '../support/builders/answers.js';
import { waitingLines } from '../support/builders/attempt-rows.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';

const url = await startTestRedis({ after });
const redis = await redisOf({ after }, url);
const open = () => openDeployment(redis, async () => false);
await open();
const connections = openHotConnections(url, 0, async () => redis);
after(connections.close);

const second = 1_700_000_000;
const tenant = 'default';

/** A learner in a partition that no other test uses. */
let partitions = 0;
const freshLearner = () => ({ partition: partitions++, tenant, userId: 'ünïcode 🙂 learner' });
type Learner = ReturnType<typeof freshLearner>;

const startSession = async ({ partition }: Learner, options: Partial<SessionOptions> = {}) =>
  new CommitSession(await connections.forPartition(partition), {
    ...{ maxOutboxRows: 1000, importId: null },
    ...options,
  });
const queryOf = (learner: Learner, parts: Partial<LearnerQuery> = {}): LearnerQuery => ({
  ...learner,
  ...{ skillIds: [], eventIdHashes: [], itemHashes: [] },
  ...parts,
});

/** @param between runs after the load */
async function commitLearners(
  commits: readonly LearnerCommit[],
  options?: Partial<SessionOptions>,
  between?: () => Promise<unknown>,
): Promise<CommitStatus[]> {
  const session = await startSession(commits[0] as LearnerCommit, options);
  await session.load(commits.map((commit) => queryOf(commit)));
  await between?.();
  return session.commit(commits);
}

async function loadLearner(query: LearnerQuery, options?: Partial<SessionOptions>) {
  const { learners } = await (await startSession(query, options)).load([query]);
  return learners[0];
}

/** One right answer of a new learner. */
function firstCommit(learner: Learner): LearnerCommit {
  const states = countAnswers([{ isCorrect: true }]);
  return {
    ...learner,
    learner: { ...states.learner, version: 1 },
    skills: [['algebra', states.skills[0]]],
    rows: ['row 1', 'row 2'],
    arrivalDays: [20_000, 20_001],
    ids: addIds(emptyIds, freshIds(1)),
    ...{ itemGeneration: 0, items: [], importLine: 0, webhookEvents: [], goalCheckAt: null },
  };
}

function freshIds(count: number): Map<Buffer, Buffer> {
  const ids = new Map(indices(count).map(() => [randomBytes(idBytes), randomBytes(resultBytes)]));
  for (const record of ids.values()) record.writeUInt32LE(second, 0);
  return ids;
}

function addIds(stored: StoredIds, added: ReadonlyMap<Buffer, Buffer>) {
  const ids = openIds(stored);
  for (const [id, record] of added) ids.add(id, record, second);
  return ids.changes();
}

test('The learner store loads and reads committed learners, event ids and outbox rows', async () => {
  const learner = freshLearner();
  const [[id, record]] = freshIds(1) as unknown as [[Buffer, Buffer]];
  const absent = randomBytes(idBytes);
  const commit = { ...firstCommit(learner), ids: addIds(emptyIds, new Map([[id, record]])) };
  assert.deepEqual(await commitLearners([commit]), ['committed']);
  const parts = { skillIds: ['algebra', 'other'], eventIdHashes: [id, absent] };
  const loaded = await loadLearner(queryOf(learner, parts));
  assert.deepEqual(loaded?.learner, commit.learner);
  assert.deepEqual(loaded?.skills, [commit.skills[0]?.[1], null]);
  const ids = openIds(loaded?.ids ?? emptyIds);
  assert.deepEqual([ids.find(id, second), ids.find(absent, second)], [record, null]);
  assert.deepEqual((await readEventIds(redis, learner, [id])).find(id, second), record);
  assert.deepEqual(await waitingLines(redis, learner.partition), commit.rows);
  assert.deepEqual((await readLearnerStates(redis, learner))?.skills, new Map(commit.skills));
});

test('The learner store reads many learners with their goals in the order of the request', async () => {
  const learner = freshLearner();
  const names = indices(30).map((i) => `learner-${i}`);
  await commitLearners(names.map((userId) => firstCommit({ ...learner, userId })));
  const goal = { targetScore: 1200, targetDate: null, updatedAt: 5 };
  const goalKey = learnerKey(learner.partition, tenant, 'learner-7');
  await redis.hset(goalKey, 'G', JSON.stringify({ v: 1, ...goal }));
  const locations = ['unknown', ...names].map((userId) => ({ ...learner, userId }));
  const [none, ...found] = (await readPacked(redis, locations)).map((packed) => packed.unpack());
  assert.equal(none, null);
  const read = found.map((states) => [
    ...[states?.learner.attempts, states?.skills.map(([skillId]) => skillId)],
    states?.goalRecord && decodeGoal(states.goalRecord),
  ]);
  const expected = names.map((name) => [
    1,
    ['algebra'],
    name === 'learner-7' ? { ...goal, status: null } : null,
  ]);
  assert.deepEqual(read, expected);
});

test('The learner store writes nothing after a conflict, and counts accepted answers by day', async () => {
  const learner = freshLearner();
  const { partition } = learner;
  const key = learnerKey(partition, tenant, learner.userId);
  const commits = [firstCommit(learner), firstCommit({ ...learner, userId: 'other' })];
  const between = () => redis.hset(key, 'G', '{}');
  assert.deepEqual(await commitLearners(commits, {}, between), ['conflict', 'conflict']);
  assert.deepEqual(await redis.hgetall(key), { G: '{}' });
  const others = [
    eventIdsKey(partition, tenant, 'other'),
    outboxKey(partition),
    acceptedCountsKey(partition),
  ];
  assert.equal(await redis.exists(...others), 0);
  assert.deepEqual(await commitLearners(commits), ['committed', 'committed']);
  assert.equal((await waitingLines(redis, partition)).length, 4);
  const accepted = { 'default:20000': '2', 'default:20001': '2' };
  assert.deepEqual(await redis.hgetall(acceptedCountsKey(partition)), accepted);
});

test('openDeployment reports whether the stored state has an older or a newer version', async () => {
  const openWith = async (version: string) => {
    await redis.hset(metaKey, 'model_version', version);
    return open();
  };
  const [version = 0, layout = 0] = stateVersion.split('.').map(Number);
  for (const storedVersion of [`${version + 1}.1`, `${version}.${layout + 1}`, `${version}.${layout + 10}`])
    assert.deepEqual(await openWith(storedVersion), { state: 'newer', storedVersion, partitions: 16 });
  for (const storedVersion of [`${version - 1}.${layout}`, `${version}.${layout - 1}`, `${version}`, ''])
    assert.deepEqual(await openWith(storedVersion), { state: 'older', storedVersion, partitions: 16 });
  assert.equal((await openWith(stateVersion)).state, 'ready');
});

test('The learner store returns the line of an import only to the same import', async () => {
  const learner = freshLearner();
  const commit = { ...firstCommit(learner), importLine: 41 };
  assert.deepEqual(await commitLearners([commit], { importId: 'file-a' }), ['committed']);
  const lines: (number | undefined)[] = [];
  for (const importId of ['file-a', 'file-b', null])
    lines.push((await loadLearner(queryOf(learner), { importId }))?.importLine);
  assert.deepEqual(lines, [41, 0, 0]);
});

test('An event id takes at most 64 bytes of Redis if a learner has four or more', async (t) => {
  const { partition } = freshLearner();
  for (const count of [4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 60, 63, 65, 80, 200, 1000, 5000]) {
    const learner = { partition, tenant, userId: `user-${10_000 + count}` };
    const added = freshIds(count);
    const commit = { ...firstCommit(learner), ids: addIds(emptyIds, added) };
    assert.deepEqual(await commitLearners([commit]), ['committed']);
    const key = eventIdsKey(partition, tenant, learner.userId);
    const perId = Number(await redis.memory('USAGE', key, 'SAMPLES', 0)) / count;
    if ([4, 20, 60, 200, 5000].includes(count)) t.diagnostic(`${count} ids: ${perId.toFixed(1)} bytes each`);
    assert.ok(perId <= 64, `${perId} bytes per id with ${count} ids`);
    const found = await readEventIds(redis, learner, [...added.keys()]);
    for (const [id, record] of added) assert.deepEqual(found.find(id, second), record);
  }
});

test('The learner store loads one bucket for one event id, and keeps the other ids when it writes', async () => {
  const learner = freshLearner();
  const added = freshIds(200);
  await commitLearners([{ ...firstCommit(learner), ids: addIds(emptyIds, added) }]);
  const more = freshIds(1);
  const loaded = await loadLearner(queryOf(learner, { eventIdHashes: [...more.keys()] }));
  assert.ok((loaded?.ids.buckets.size ?? 0) <= 1);
  const ids = addIds(loaded?.ids ?? emptyIds, more);
  assert.deepEqual(await commitLearners([{ ...firstCommit(learner), ids }]), ['committed']);
  const all = [...added.keys(), ...more.keys()];
  const found = await readEventIds(redis, learner, all);
  assert.ok(all.every((id) => found.find(id, second) !== null));
});

const itemRecord = (generation: number, right: number): ItemRecord => ({
  generation,
  trace: { ...newItemTrace, right, otherSkillAnswers: 7, at: second },
});

/** A commit that starts the generations after `from` up to `to`. */
function itemCommit(
  learner: Learner,
  [from, to]: readonly [number, number],
  items: Record<string, ItemRecord>,
): LearnerCommit {
  const first = firstCommit(learner);
  return {
    ...first,
    learner: { ...first.learner, items: { generation: to, size: 1 } },
    ids: [],
    itemGeneration: from,
    items: Object.entries(items).map(([name, item]) => [hashItem(name), item]),
  };
}

test('The learner store keeps the items of two generations and loads the newest record', async () => {
  const learner = freshLearner();
  const names = ['a', 'b', 'c', 'd', 'e', 'expired'];
  // A batch of many items can skip whole generations.
  const [a, b, c, d] = [itemRecord(1, 3), itemRecord(0, 2), itemRecord(2, 4), itemRecord(5, 5)];
  const [earlierA, e, expired] = [itemRecord(0, 1), itemRecord(4, 6), itemRecord(3, 1)];
  const steps = [
    [[0, 0], { a: earlierA, b }, { a: earlierA, b }],
    [[0, 1], { a }, { a, b }],
    [[1, 2], { c }, { a, c }],
    [[2, 5], { d, e, expired }, { d, e }],
  ] as const;
  for (const [generations, written, expected] of steps) {
    await commitLearners([itemCommit(learner, generations, written)]);
    const loaded = await loadLearner(queryOf(learner, { itemHashes: names.map(hashItem) }));
    const found = names.flatMap((name, i) => (loaded?.items[i] ? [[name, loaded.items[i]]] : []));
    assert.deepEqual(Object.fromEntries(found), expected);
  }
});

test('A stored item takes at most 32 bytes of Redis with its hash', async () => {
  const learner = freshLearner();
  const count = 128;
  const items = Object.fromEntries(indices(count).map((i) => [`item ${i}`, itemRecord(0, i)]));
  await commitLearners([itemCommit(learner, [0, 0], items)]);
  const key = itemTracesKey(learner.partition, 0, tenant, learner.userId);
  assert.equal(await redis.hlen(key), count);
  const perItem = Number(await redis.memory('USAGE', key)) / count;
  assert.ok(perItem <= 32, `${perItem} bytes per item`);
});
