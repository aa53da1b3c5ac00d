/** Commits of several learners in one transaction, next to concurrent writes and failures of Redis. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Redis } from 'ioredis';
import { newItemTrace } from '../../src/domain/tracing/traces.js';
import { CommitSession, type CommitStatus, WatchLostError } from '../../src/store/learners/commit-session.js';
import { emptyIds, hashEventId, openIds, resultBytes } from '../../src/store/learners/event-ids.js';
import type {
  LearnerCommit,
  LearnerLocation,
  LearnerQuery,
  LoadedLearner,
} from '../../src/store/learners/learner-commands.js';
import { hashItem } from '../../src/store/models/item-store.js';
import { type HotConnection, openHotConnection } from '../../src/store/redis/connection/hot-connection.js';
import {
  learnerKey,
  markerKey,
  outboxKey,
  partitionPrefix,
  replicationProbeKey,
} from '../../src/store/redis/keys.js';
import { createCommandEncoder } from '../../src/store/redis/wire/command-encoder.js';
import { countAnswers } from '../support/builders/answers.js';
import { waitingLines } from '../support/builders/attempt-rows.js';
import { assertAsync, fc } from '../support/builders/properties.js';
import { roundsOf } from '../support/runner/long-form.js';
import { startBlackHole } from '../support/servers/black-hole.js';
import { redisOf, startBareRedis } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const tenant = 'default';
const second = 1_700_000_000;

async function connectHot(url: string, replicas = 0): Promise<HotConnection> {
  const connection = openHotConnection(url, replicas);
  after(connection.close);
  await connection.waitUntilReady();
  return connection;
}
const connect = async (url: string): Promise<Redis> => (await redisOf({ after }, url)) as Redis;
const portOf = (url: string): number => Number(new URL(url).port);

/** The second Redis gets the same commits one by one. */
const [server, singleServer] = [await startBareRedis({ after }), await startBareRedis({ after })];
const [redis, singleRedis] = [await connect(server.url), await connect(singleServer.url)];
const hot = await connectHot(server.url);
const otherHot = await connectHot(server.url);
const singleHot = await connectHot(singleServer.url);

/** Each test has separate partitions. */
let partitionCount = 0;
async function freshPartitions(count: number): Promise<number[]> {
  const partitions = Array.from({ length: count }, () => partitionCount++);
  for (const client of [redis, singleRedis])
    await Promise.all(partitions.map((partition) => client.set(markerKey(partition), 'restored')));
  return partitions;
}

const locate = (partition: number, userId = 'learner'): LearnerLocation => ({ partition, tenant, userId });
const freshLearner = async () => locate((await freshPartitions(1))[0] as number);

const skillNames = ['algebra', 'ünïcode 🙂', ''];
const itemNames = ['a', 'b', 'c', 'd', 'é'];
const numbers = (from: number, count: number) => Array.from({ length: count }, (_, i) => `${from + i}`);

/** The changes of a commit. `generations`: new generations of items. */
interface Draft {
  readonly right: readonly boolean[];
  readonly skills: readonly string[];
  readonly rows: readonly string[];
  readonly ids: readonly string[];
  readonly items: readonly (readonly [name: string, generationsBack: number])[];
  readonly generations: number;
}
const oneAnswer: Draft = {
  ...{ right: [true], skills: ['algebra'], rows: ['row'] },
  ...{ ids: [], items: [], generations: 0 },
};

function addIds(names: readonly string[], loaded: LoadedLearner | undefined) {
  const ids = openIds(loaded?.ids ?? emptyIds);
  for (const id of names.map(hashEventId)) {
    const record = Buffer.concat([Buffer.alloc(4), id, id, id]).subarray(0, resultBytes);
    ids.add(id, record, second);
  }
  return ids.changes();
}

/** The commit of one answer after the loaded state. */
function buildCommit(
  location: LearnerLocation,
  draft: Partial<Draft> = {},
  loaded?: LoadedLearner,
): LearnerCommit {
  const { right, skills, rows, ids, items, generations } = { ...oneAnswer, ...draft };
  const {
    learner,
    skills: [skill],
  } = countAnswers(right.map((isCorrect) => ({ isCorrect })));
  const { version, items: window } = loaded?.learner ?? { version: 0, items: learner.items };
  const generation = window.generation + generations;
  const trace = { ...newItemTrace, right: right.length, otherSkillAnswers: 7, at: second };
  return {
    ...location,
    learner: { ...learner, version: version + 1, items: { generation, size: items.length } },
    skills: skills.map((skillId) => [skillId, skill]),
    rows,
    arrivalDays: rows.map((_, i) => Math.floor(second / 86_400) - (i % 2)),
    ids: addIds(ids, loaded),
    itemGeneration: window.generation,
    items: items.map(([name, back]) => [
      hashItem(name),
      { generation: Math.max(0, generation - back), trace },
    ]),
    ...{ importLine: 0, webhookEvents: [], goalCheckAt: null },
  };
}

const queryOf = (location: LearnerLocation, ids: readonly string[] = []): LearnerQuery => ({
  ...location,
  skillIds: [...skillNames, 'never answered'],
  eventIdHashes: ids.map(hashEventId),
  itemHashes: itemNames.map(hashItem),
});

const openSession = (connection: HotConnection, maxOutboxRows = 1_000_000): CommitSession =>
  new CommitSession(connection, { maxOutboxRows, importId: null });

type Batch = readonly (readonly [LearnerLocation, Partial<Draft>?])[];

interface Attempt {
  readonly connection?: HotConnection;
  readonly maxOutboxRows?: number;
  /** Runs between load and commit. */
  readonly between?: () => Promise<unknown>;
}

async function attempt(
  batch: Batch,
  { connection = hot, maxOutboxRows, between }: Attempt = {},
): Promise<CommitStatus[]> {
  const session = openSession(connection, maxOutboxRows);
  const { learners } = await session.load(batch.map(([location, draft]) => queryOf(location, draft?.ids)));
  await between?.();
  return session.commit(batch.map(([location, draft], i) => buildCommit(location, draft, learners[i])));
}

async function readKey(client: Redis, key: string): Promise<unknown> {
  const type = await client.type(key);
  if (type === 'hash') {
    const flat = (await client.callBuffer('HGETALL', key)) as Buffer[];
    const texts = flat.map((one) => one.toString('hex'));
    return new Map(texts.flatMap((field, i) => (i % 2 === 0 ? [[field, texts[i + 1]] as const] : [])));
  }
  if (type === 'stream')
    return (await client.xrange(key, '-', '+')).flatMap(([, [, rows = '']]) => rows.split('\n'));
  return client.get(key);
}

/** Everything in some partitions, by key. */
async function readAll(client: Redis, partitions: readonly number[]): Promise<Map<string, unknown>> {
  const contents = new Map<string, unknown>();
  for (const partition of partitions)
    for (const key of (await client.keys(`${partitionPrefix(partition)}:*`)).sort())
      contents.set(key, await readKey(client, key));
  return contents;
}

const drafts = fc.uniqueArray(
  fc.record({
    learner: fc.nat(5),
    right: fc.array(fc.boolean(), { minLength: 1, maxLength: 4 }),
    skills: fc.subarray([...skillNames]),
    rows: fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 3 }),
    idCount: fc.oneof({ weight: 4, arbitrary: fc.nat(3) }, { weight: 1, arbitrary: fc.nat(120) }),
    items: fc.uniqueArray(fc.tuple(fc.constantFrom(...itemNames), fc.nat(2)), { selector: ([name]) => name }),
    generations: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(3) }),
  }),
  { minLength: 1, selector: ({ learner }) => learner },
);
type Step = typeof drafts extends fc.Arbitrary<infer Drafts> ? Drafts : never;

/** Commits the step as a batch in one Redis and learner by learner in the other. */
async function commitTwice(step: Step, locateOne: (learner: number) => LearnerLocation, idCounts: number[]) {
  const queries = step.map(({ learner, idCount }) =>
    queryOf(locateOne(learner), [...numbers(0, (idCounts[learner] ?? 0) + idCount), 'new']),
  );
  const session = openSession(hot);
  const loaded = await session.load(queries);
  const commits = step.map(({ learner, idCount, ...draft }, i) => {
    const count = idCounts[learner] ?? 0;
    idCounts[learner] = count + idCount;
    return buildCommit(locateOne(learner), { ...draft, ids: numbers(count, idCount) }, loaded.learners[i]);
  });
  const statuses = commits.map(() => 'committed');
  assert.deepEqual(await session.commit(commits), statuses);
  for (const [i, commit] of commits.entries()) {
    const single = openSession(singleHot);
    assert.deepEqual((await single.load([queries[i] as LearnerQuery])).learners, [loaded.learners[i]]);
    assert.deepEqual(await single.commit([commit]), ['committed']);
  }
  const { learners } = await openSession(hot).load(queries);
  for (const [i, { learner }] of commits.entries()) assert.deepEqual(learners[i]?.learner, learner);
}

test('CommitSession writes and loads a batch like its learners one by one', async () => {
  await assertAsync(
    fc.asyncProperty(fc.array(drafts, { minLength: 1, maxLength: 6 }), async (steps) => {
      const partitions = await freshPartitions(3);
      const locateOne = (learner: number) =>
        locate(partitions[learner % 3] as number, `${tenant}:é${learner}`);
      const idCounts: number[] = [];
      for (const step of steps) await commitTwice(step, locateOne, idCounts);
      assert.deepEqual(await readAll(redis, partitions), await readAll(singleRedis, partitions));
    }),
    { numRuns: roundsOf(15, 60) },
  );
});

const concurrentChanges: Record<string, (location: LearnerLocation) => Promise<unknown>> = {
  'another process commits a learner': (location) =>
    attempt([[location, { ids: ['other'] }]], { connection: otherHot }),
  'a learner is deleted and answers again': async (location) => {
    await redis.del(learnerKey(location.partition, tenant, location.userId));
    await attempt([[location, { ids: ['other'] }]], { connection: otherHot });
  },
  'a goal is written': ({ partition, userId }) =>
    redis.hset(learnerKey(partition, tenant, userId), 'G', '{}'),
  'the marker of a partition is deleted': ({ partition }) => redis.del(markerKey(partition)),
};

for (const [change, run] of Object.entries(concurrentChanges)) {
  test(`CommitSession writes nothing of a batch if ${change} after the load`, async () => {
    const partitions = await freshPartitions(2);
    const locations = partitions.map((partition) => locate(partition));
    const batchOf = (draft: Partial<Draft>): Batch => locations.map((location) => [location, draft]);
    assert.deepEqual(await attempt(batchOf({ ids: ['first'] })), ['committed', 'committed']);
    let before = new Map<string, unknown>();
    const between = async () => {
      await run(locations[1] as LearnerLocation);
      before = await readAll(redis, partitions);
    };
    const draft = { ids: ['second'], items: [['a', 0]] as const, generations: 1 };
    assert.deepEqual(await attempt(batchOf(draft), { between }), ['conflict', 'conflict']);
    assert.deepEqual(await readAll(redis, partitions), before);
  });
}

test('CommitSession rejects the learners of a full outbox and of a partition that is not restored', async () => {
  const [full, lost, sound] = (await freshPartitions(3)) as [number, number, number];
  assert.deepEqual(await attempt([[locate(lost, 'known'), { ids: ['a'] }]]), ['committed']);
  await redis.del(markerKey(lost));
  const batch: Batch = [
    [locate(full, 'first'), { rows: ['1', '2', '3'] }],
    [locate(full, 'second'), { rows: ['4', '5', '6'] }],
    [locate(full, 'third'), { rows: ['7'] }],
    [locate(lost, 'new')],
    [locate(lost, 'known')],
    [locate(sound, 'new')],
  ];
  const [c, o, n] = ['committed', 'outbox-full', 'not-restored'];
  assert.deepEqual(await attempt(batch, { maxOutboxRows: 4 }), [c, c, o, n, n, c]);
  assert.equal((await waitingLines(redis, full)).length, 6);
  assert.deepEqual(await attempt(batch.slice(2, 4), { maxOutboxRows: 6 }), [o, n]);
  assert.equal(await redis.exists(learnerKey(full, tenant, 'third'), learnerKey(lost, tenant, 'new')), 0);
});

test('CommitSession throws UNAVAILABLE if Redis has no memory for a write or does not serve reads', async () => {
  const learner = await freshLearner();
  const before = await readAll(redis, [learner.partition]);
  const unavailable = { code: 'UNAVAILABLE' };
  try {
    const between = () => redis.config('SET', 'maxmemory', 1);
    await assert.rejects(attempt([[learner]], { between }), unavailable);
  } finally {
    await redis.config('SET', 'maxmemory', 0);
  }
  assert.deepEqual(await readAll(redis, [learner.partition]), before);
  await redis.config('SET', 'replica-serve-stale-data', 'no');
  try {
    // A replica that never reached its master: no server listens on this port.
    await redis.replicaof('127.0.0.1', 1);
    await assert.rejects(attempt([[learner]]), unavailable);
  } finally {
    await redis.replicaof('NO', 'ONE');
    await redis.config('SET', 'replica-serve-stale-data', 'yes');
  }
  assert.deepEqual(await attempt([[learner]]), ['committed']);
});

test('A CommitSession commits although a learner changed that only the previous session watched', async () => {
  const { partition } = await freshLearner();
  const [abandoned, other] = [locate(partition, 'abandoned'), locate(partition, 'other')];
  await openSession(hot).load([queryOf(abandoned)]);
  assert.deepEqual(await attempt([[abandoned]], { connection: otherHot }), ['committed']);
  assert.deepEqual(await attempt([[other]]), ['committed']);
  assert.deepEqual(await attempt([[abandoned]]), ['committed']);
});

test('A CommitSession rejects loads and commits once a newer one watches, and keeps that watch', async () => {
  const [partition, otherPartition] = (await freshPartitions(2)) as [number, number];
  const [learner, old] = [locate(partition), locate(partition, 'old')];
  const oldSession = openSession(hot);
  await oldSession.load([queryOf(old)]);
  const between = async () => {
    await assert.rejects(oldSession.load([queryOf(locate(otherPartition))]), WatchLostError);
    assert.deepEqual(await oldSession.commit([buildCommit(old)]), ['conflict']);
    await attempt([[learner]], { connection: otherHot });
  };
  assert.deepEqual(await attempt([[learner]], { between }), ['conflict']);
});

test('CommitSession watches the learners of all its loads', async () => {
  const { partition } = await freshLearner();
  const learners = [locate(partition, 'first'), locate(partition, 'second')] as const;
  const session = openSession(hot);
  for (const learner of learners) await session.load([queryOf(learner)]);
  await attempt([[learners[0]]], { connection: otherHot });
  const commits = learners.map((learner) => buildCommit(learner));
  assert.deepEqual(await session.commit(commits), ['conflict', 'conflict']);
});

/** Redis closes the connection, which then reconnects. */
async function replaceConnection(): Promise<void> {
  const request = createCommandEncoder(64);
  request.writeCommand('CLIENT', 'ID');
  const [id] = (await hot.send(request)) as [number];
  const before = hot.currentSocket();
  await redis.client('KILL', 'ID', id);
  await waitFor('the next connection', async () => {
    await hot.waitUntilReady();
    return hot.currentSocket() !== before;
  });
}

test('CommitSession rejects loads and commits after its connection was replaced', async () => {
  const learner = await freshLearner();
  const before = await readAll(redis, [learner.partition]);
  assert.deepEqual(await attempt([[learner]], { between: replaceConnection }), ['conflict']);
  assert.deepEqual(await readAll(redis, [learner.partition]), before);
  const session = openSession(hot);
  await replaceConnection();
  await assert.rejects(session.load([queryOf(learner)]), WatchLostError);
  assert.deepEqual(await attempt([[learner]]), ['committed']);
});

test('CommitSession does not confirm a write or a repeated id that the replica lacks', async () => {
  const replica = await startBareRedis({ after });
  const copy = await connect(replica.url);
  await redis.config('SET', 'repl-diskless-sync-delay', 0);
  // Without a file in the working directory.
  await copy.config('SET', 'repl-diskless-load', 'swapdb');
  await copy.config('SET', 'masterauth', new URL(server.url).password);
  await copy.replicaof('127.0.0.1', portOf(server.url));
  const connection = await connectHot(server.url, 1);
  const learner = await freshLearner();
  await waitFor('the replica', async () => /state=online/.test(await redis.info('replication')));
  const waitForReplica = async (): Promise<void> => {
    await redis.set(replicationProbeKey(learner.partition), '');
    assert.equal(await redis.wait(1, 4000), 1);
  };
  await waitForReplica();
  assert.deepEqual(await attempt([[learner, { ids: ['a'] }]], { connection }), ['committed']);
  replica.signal('SIGSTOP');
  try {
    await assert.rejects(attempt([[learner]], { connection }), /not replicated yet/);
    const repeated = openSession(connection).load([queryOf(learner, ['a'])]);
    await assert.rejects(repeated, /not replicated yet/);
    assert.ok(await openSession(connection).load([queryOf(learner, ['unknown'])]));
  } finally {
    replica.signal('SIGCONT');
  }
  await waitForReplica();
  assert.deepEqual(await attempt([[learner]], { connection }), ['committed']);
});

test('Connections leave a Redis that became a replica for the master behind the same address', async () => {
  const next = await startBareRedis({ after });
  const nextRedis = await connect(next.url);
  await nextRedis.config('SET', 'requirepass', new URL(server.url).password);
  const learner = await freshLearner();
  await nextRedis.set(markerKey(learner.partition), 'restored');
  const proxy = await startBlackHole({ after }, portOf(server.url));
  const url = Object.assign(new URL(server.url), { port: proxy.port }).href;
  const [connection, plain] = await Promise.all([connectHot(url), connect(url)]);
  assert.deepEqual(await attempt([[learner]], { connection }), ['committed']);
  proxy.setTarget(portOf(next.url));
  // A replica that never reached its master: no server listens on this port.
  await redis.replicaof('127.0.0.1', 1);
  try {
    await assert.rejects(attempt([[learner]], { connection }), { code: 'UNAVAILABLE' });
    await connection.waitUntilReady();
    assert.deepEqual(await attempt([[learner]], { connection }), ['committed']);
    await assert.rejects(plain.set('elsewhere', ''), /READONLY/);
    const write = () => plain.set('elsewhere', '').catch(() => null);
    await waitFor('the other connection', async () => (await write()) === 'OK');
  } finally {
    await redis.replicaof('NO', 'ONE');
  }
  assert.equal(await nextRedis.xlen(outboxKey(learner.partition)), 1);
});
