import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import type { Redis } from 'ioredis';
import { formulaVersion } from '../../src/domain/base/formula-version.js';
import type { ItemRecord } from '../../src/domain/tracing/learner-states.js';
import { newItemTrace } from '../../src/domain/tracing/traces.js';
import {
  CommitSession,
  type CommitStatus,
  type SessionOptions,
} from '../../src/store/learners/commit-session.js';
import {
  emptyIds,
  type IdFields,
  idBytes,
  openIds,
  resultBytes,
  type StoredIds,
} from '../../src/store/learners/event-ids.js';
import { decodeGoal } from '../../src/store/learners/goals.js';
import type { LearnerCommit, LearnerQuery } from '../../src/store/learners/learner-commands.js';
import { readEventIds, readLearnerStates, readPacked } from '../../src/store/learners/learner-reads.js';
import { hashItem } from '../../src/store/models/item-store.js';
import { connectRedis, waitUntilReady } from '../../src/store/redis/connection/client.js';
import { type HotConnection, openHotConnections } from '../../src/store/redis/connection/hot-connection.js';
import {
  acceptedCountsKey,
  eventIdsKey,
  learnerKey,
  markerKey,
  metaKey,
  outboxKey,
  stateVersion,
} from '../../src/store/redis/keys.js';
import { openDeployment } from '../../src/store/redis/server/deployment.js';
import { countAnswers } from '../support/builders/answers.js';
import { waitingLines } from '../support/builders/attempt-rows.js';
import { startTestRedis } from '../support/servers/embedded.js';

const maxOutboxRows = 1000;
const noAttempts = async (): Promise<boolean> => false;

interface Store {
  readonly client: Redis;
  readonly hot: HotConnection;
}

async function connect(t: TestContext): Promise<Store> {
  const url = await startTestRedis(t);
  const client = connectRedis(url) as Redis;
  t.after(() => client.disconnect());
  await waitUntilReady(client, 5000);
  await openDeployment(client, noAttempts);
  const connections = openHotConnections(url, 0, async () => client);
  t.after(connections.close);
  return { client, hot: await connections.forPartition(nobody.partition) };
}

interface Try extends Partial<SessionOptions> {
  /** Done between reading and writing. */
  readonly meanwhile?: () => Promise<unknown>;
}

async function commitLearners(
  { hot }: Store,
  commits: readonly LearnerCommit[],
  { meanwhile, ...options }: Try = {},
): Promise<CommitStatus[]> {
  const session = new CommitSession(hot, { maxOutboxRows, importId: null, ...options });
  await session.load(commits.map(({ userId }) => queryOf({ userId })));
  await meanwhile?.();
  return session.commit(commits);
}

async function loadLearner({ hot }: Store, query: LearnerQuery, importId: string | null = null) {
  const { learners } = await new CommitSession(hot, { maxOutboxRows, importId }).load([query]);
  return learners[0];
}

const queryOf = (asked: Partial<LearnerQuery>): LearnerQuery => ({
  ...nobody,
  ...{ skillIds: [], eventIdHashes: [], itemHashes: [] },
  ...asked,
});

const second = 1_700_000_000;
const nobody = { partition: 3, tenant: 'default', userId: 'ünïcode 🙂 learner' };

/** One right answer on a new learner. */
function firstCommit(userId = nobody.userId): LearnerCommit {
  const { learner, skill } = countAnswers([{ isCorrect: true }]);
  return {
    ...nobody,
    userId,
    learner: { ...learner, version: 1 },
    skills: [['algebra', skill]],
    rows: ['row 1', 'row 2'],
    arrivalDays: [20_000, 20_001],
    ids: idsTaken(emptyIds, [[randomBytes(idBytes), answerAt(second)]]),
    itemGeneration: 0,
    items: [],
    importLine: 0,
    webhookEvents: [],
    goalCheckAt: null,
  };
}

/** A record of an answer, which leads with the second it came in. */
function answerAt(at: number): Buffer {
  const record = randomBytes(resultBytes);
  record.writeUInt32LE(at, 0);
  return record;
}

/** What a commit writes of ids that were not found. */
function idsTaken(stored: StoredIds, taken: readonly (readonly [id: Buffer, answer: Buffer])[]): IdFields {
  const ids = openIds(stored);
  for (const [id, answer] of taken) ids.add(id, answer, answer.readUInt32LE(0));
  return ids.changes();
}

test('what is committed is what is loaded, together with ids and rows', async (t) => {
  const store = await connect(t);
  const { client } = store;
  const [id, answer, absent] = [randomBytes(idBytes), answerAt(second), randomBytes(idBytes)];
  const commit = { ...firstCommit(), ids: idsTaken(emptyIds, [[id, answer]]) };
  assert.deepEqual(await commitLearners(store, [commit]), ['committed']);
  const loaded = await loadLearner(
    store,
    queryOf({ skillIds: ['algebra', 'other'], eventIdHashes: [id, absent] }),
  );
  assert.deepEqual(loaded?.learner, commit.learner);
  assert.deepEqual(loaded?.skills, [commit.skills[0]?.[1], null]);
  const ids = openIds(loaded?.ids ?? emptyIds);
  assert.deepEqual(
    [id, absent].map((one) => ids.find(one, second)),
    [answer, null],
  );
  assert.deepEqual((await readEventIds(client, nobody, [id])).find(id, second), answer);
  assert.equal((await waitingLines(client, 3)).length, 2);
  assert.deepEqual((await readLearnerStates(client, nobody))?.skills, new Map(commit.skills));
});

test('many learners are read at once, in the order in which they were asked for, goals and all', async (t) => {
  const store = await connect(t);
  const { client } = store;
  const ids = Array.from({ length: 30 }, (_, i) => `learner-${i}`);
  await commitLearners(
    store,
    ids.map((userId) => firstCommit(userId)),
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
  const store = await connect(t);
  const { client } = store;
  const idsOf = (userId: string) => client.hgetallBuffer(eventIdsKey(3, nobody.tenant, userId));
  const key = learnerKey(3, nobody.tenant, nobody.userId);
  const meanwhile = () => client.hset(key, 'G', '{}');
  const commits = [firstCommit(), firstCommit('somebody else')];
  assert.deepEqual(await commitLearners(store, commits, { meanwhile }), ['conflict', 'conflict']);
  assert.deepEqual(await client.hgetall(key), { G: '{}' });
  assert.deepEqual(await idsOf('somebody else'), {});
  assert.equal(await client.exists(outboxKey(3), acceptedCountsKey(3)), 0, 'what was refused is not counted');
  assert.deepEqual(await commitLearners(store, commits), ['committed', 'committed']);
  assert.equal((await waitingLines(client, 3)).length, 4);
  const accepted = { 'default:20000': '2', 'default:20001': '2' };
  assert.deepEqual(await client.hgetall(acceptedCountsKey(3)), accepted);
});

test('a full outbox refuses, and so does a Redis without marks for a new learner', async (t) => {
  const store = await connect(t);
  const { client } = store;
  await commitLearners(store, [firstCommit()]);
  const refused = firstCommit('second');
  assert.deepEqual(await commitLearners(store, [refused], { maxOutboxRows: 2 }), ['outbox-full']);
  // As an upgrade moves it, or as another version has it: who counts by other formulas counts nothing.
  await client.rename(markerKey(3), markerKey(3, `${formulaVersion - 1}.2`));
  assert.deepEqual(await commitLearners(store, [refused]), ['not-restored']);
  assert.equal(await client.exists(eventIdsKey(3, nobody.tenant, 'second')), 0, 'no id is taken');
  assert.deepEqual(await openDeployment(client, async () => true), { state: 'lost' });
});

test('who keeps learners otherwise is told how', async (t) => {
  const store = await connect(t);
  const { client } = store;
  const found = async (noted: string | null) => {
    await (noted === null
      ? client.hdel(metaKey, 'model_version')
      : client.hset(metaKey, 'model_version', noted));
    return openDeployment(client, noAttempts);
  };
  const [version = 0, layout = 0] = stateVersion.split('.').map(Number);
  for (const kept of [`${version + 1}.1`, `${version}.${layout + 1}`, `${version}.${layout + 10}`])
    assert.deepEqual(await found(kept), { state: 'newer', storedVersion: kept, partitions: 16 });
  for (const kept of [`${version - 1}.${layout}`, `${version}.${layout - 1}`, `${version}`])
    assert.deepEqual(await found(kept), { state: 'older', storedVersion: kept, partitions: 16 });
  assert.deepEqual(await found(null), { state: 'older', storedVersion: '', partitions: 16 });
});

test('an import mark is kept with the commit and read back only by that import', async (t) => {
  const store = await connect(t);
  const lineOf = async (importId: string | null) =>
    (await loadLearner(store, queryOf({}), importId))?.importLine;
  const commit = { ...firstCommit(), importLine: 41 };
  assert.deepEqual(await commitLearners(store, [commit], { importId: 'file-a' }), ['committed']);
  assert.deepEqual([await lineOf('file-a'), await lineOf('file-b'), await lineOf(null)], [41, 0, 0]);
});

/** Everything of a new learner's ids. */
function fieldsOfIds(count: number): Map<Buffer, Buffer> {
  return new Map(Array.from({ length: count }, () => [randomBytes(idBytes), answerAt(second)] as const));
}

test('an event id takes at most 64 bytes of Redis from the fourth on, and every one is found again', async (t) => {
  const store = await connect(t);
  const { client } = store;
  const few = Array.from({ length: 77 }, (_, i) => i + 4);
  for (const count of [...few, 200, 1000, 2000, 5000]) {
    const userId = `user-${10_000 + count}`;
    const taken = fieldsOfIds(count);
    const commit = { ...firstCommit(userId), ids: idsTaken(emptyIds, [...taken]) };
    assert.deepEqual(await commitLearners(store, [commit]), ['committed']);
    const key = eventIdsKey(3, 'default', userId);
    const perId = Number(await client.memory('USAGE', key, 'SAMPLES', 0)) / count;
    if ([4, 20, 60, 200, 5000].includes(count)) t.diagnostic(`${count} ids: ${perId.toFixed(1)} bytes each`);
    assert.ok(perId <= 64, `${perId} bytes per id of ${count}`);
    const found = await readEventIds(client, { ...nobody, userId }, [...taken.keys()]);
    for (const [id, answer] of taken) assert.deepEqual(found.find(id, second), answer);
  }
});

test('a learner of whom little is asked shows nothing of its other ids', async (t) => {
  const store = await connect(t);
  const { client } = store;
  const taken = fieldsOfIds(200);
  await commitLearners(store, [{ ...firstCommit(), ids: idsTaken(emptyIds, [...taken]) }]);
  const id = randomBytes(idBytes);
  const loaded = await loadLearner(store, queryOf({ eventIdHashes: [id] }));
  assert.ok((loaded?.ids.buckets.size ?? 0) <= 1);
  // What is written then stands beside the others.
  const ids = idsTaken(loaded?.ids ?? emptyIds, [[id, answerAt(second)]]);
  const commit = { ...firstCommit(), ids };
  assert.deepEqual(await commitLearners(store, [commit]), ['committed']);
  const all = [...taken.keys(), id];
  const found = await readEventIds(client, nobody, all);
  assert.ok(all.every((one) => found.find(one, second) !== null));
});

/** An item as it is remembered after that many right answers. */
const remembered = (generation: number, right: number): ItemRecord => ({
  generation,
  trace: { ...newItemTrace, right, otherSkillAnswers: 7, at: 1_700_000_000 },
});

/** A commit that writes items into the generation that is current then. */
function itemCommit(
  version: number,
  from: number,
  to: number,
  items: Record<string, ItemRecord>,
): LearnerCommit {
  const base = firstCommit();
  return {
    ...base,
    learner: { ...base.learner, version: version + 1, items: { generation: to, size: 1 } },
    ids: [],
    itemGeneration: from,
    items: Object.entries(items).map(([name, item]) => [hashItem(name), item]),
  };
}

const loadItems = async (store: Store, names: readonly string[]) =>
  (await loadLearner(store, queryOf({ itemHashes: names.map(hashItem) })))?.items;

test('items are read from both generations, the newer figures first, and old generations go', async (t) => {
  const store = await connect(t);
  const commit = (...args: Parameters<typeof itemCommit>) => commitLearners(store, [itemCommit(...args)]);
  const names = ['a', 'b', 'never'];
  await commit(0, 0, 0, { a: remembered(0, 1), b: remembered(0, 2) });
  assert.deepEqual(await loadItems(store, names), [remembered(0, 1), remembered(0, 2), null]);
  await commit(1, 0, 1, { a: remembered(1, 3) });
  assert.deepEqual(await loadItems(store, names), [remembered(1, 3), remembered(0, 2), null]);
  await commit(2, 1, 2, { c: remembered(2, 4) });
  assert.deepEqual(await loadItems(store, ['a', 'b', 'c']), [remembered(1, 3), null, remembered(2, 4)]);
  // A batch of many items may pass over whole generations.
  await commit(3, 2, 5, { d: remembered(5, 5), e: remembered(4, 6), gone: remembered(3, 1) });
  assert.deepEqual(await loadItems(store, ['a', 'c', 'd', 'e', 'gone']), [
    null,
    null,
    remembered(5, 5),
    remembered(4, 6),
    null,
  ]);
});

test('a refused commit leaves the items alone', async (t) => {
  const store = await connect(t);
  const { client } = store;
  await commitLearners(store, [itemCommit(0, 0, 0, { a: remembered(0, 1) })]);
  const late = itemCommit(0, 0, 2, { a: remembered(2, 9) });
  const meanwhile = () => client.hset(learnerKey(3, nobody.tenant, nobody.userId), 'G', '{}');
  assert.deepEqual(await commitLearners(store, [late], { meanwhile }), ['conflict']);
  assert.deepEqual(await loadItems(store, ['a']), [remembered(0, 1)]);
});

test('a remembered item takes at most 32 bytes of Redis, its hash included', async (t) => {
  const store = await connect(t);
  const { client } = store;
  const count = 128;
  const items = Object.fromEntries(Array.from({ length: count }, (_, i) => [`item ${i}`, remembered(0, i)]));
  await commitLearners(store, [itemCommit(0, 0, 0, items)]);
  const key = `st:{p3}:h0:${nobody.tenant}:${nobody.userId}`;
  assert.equal(await client.hlen(key), count);
  const perItem = Number(await client.memory('USAGE', key)) / count;
  t.diagnostic(`${perItem.toFixed(1)} bytes per remembered item`);
  assert.ok(perItem <= 32, `${perItem} bytes per item`);
});
