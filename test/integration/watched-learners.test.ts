/** Learners of a batch: written as each would be alone, and not at all where somebody else was there. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect as connectTo, createServer } from 'node:net';
import { after, test } from 'node:test';
import type { Redis } from 'ioredis';
import { newItemTrace } from '../../src/domain/tracing/traces.js';
import { ApiError } from '../../src/errors.js';
import { CommitSession, type CommitStatus, WatchLostError } from '../../src/store/learners/commit-session.js';
import { emptyIds, hashEventId, openIds, resultBytes } from '../../src/store/learners/event-ids.js';
import type {
  LearnerCommit,
  LearnerQuery,
  LoadedLearner,
} from '../../src/store/learners/learner-commands.js';
import { readEventIds } from '../../src/store/learners/learner-reads.js';
import { hashItem } from '../../src/store/models/item-store.js';
import { connectRedis, mapRedisErrors, waitUntilReady } from '../../src/store/redis/connection/client.js';
import { type HotConnection, openHotConnection } from '../../src/store/redis/connection/hot-connection.js';
import {
  learnerKey,
  markerKey,
  outboxKey,
  partitionPrefix,
  replicationProbeKey,
} from '../../src/store/redis/keys.js';
import { type CommandEncoder, createCommandEncoder } from '../../src/store/redis/wire/command-encoder.js';
import { parseTransaction } from '../../src/store/redis/wire/replies.js';
import { countAnswers } from '../support/builders/answers.js';
import { waitingLines } from '../support/builders/attempt-rows.js';
import { assertAsync, fc } from '../support/builders/properties.js';
import { startBareRedis } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const moment = { timeout: 30_000 };
const tenant = 'default';
const outboxBound = 1_000_000;
const [server, aloneServer] = await Promise.all([startBareRedis({ after }), startBareRedis({ after })]);
/** In the other Redis each learner is read and written alone. */
const [other, otherAlone] = (await Promise.all([server.url, aloneServer.url].map(connect))) as [Redis, Redis];
const [hot, theirs, alone] = (await Promise.all(
  [server.url, server.url, aloneServer.url].map((url) => connectHot(url)),
)) as [HotConnection, HotConnection, HotConnection];

async function connectHot(url: string, replicas = 0): Promise<HotConnection> {
  const connection = openHotConnection(url, replicas);
  after(connection.close);
  await connection.waitUntilReady();
  return connection;
}

async function connect(url: string): Promise<Redis> {
  const client = connectRedis(url) as Redis;
  client.on('error', () => undefined);
  after(() => client.disconnect());
  await waitUntilReady(client, 5000);
  return client;
}

/** Each test has partitions of its own, marked as those of a deployment are. */
let partitions = 0;
async function freshPartitions(count: number): Promise<number[]> {
  const fresh = Array.from({ length: count }, () => partitions++);
  for (const client of [other, otherAlone]) {
    await Promise.all(fresh.map((partition) => client.set(markerKey(partition), 'here')));
  }
  return fresh;
}

const skillNames = ['algebra', 'ünïcode 🙂', ''];
const itemNames = ['a', 'b', 'c', 'd', 'é'];
const second = 1_700_000_000;

const numbers = (from: number, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${from + i}`);

/** What a commit does, apart from where and after which one. */
interface Draft {
  readonly right: readonly boolean[];
  readonly skills: readonly string[];
  readonly rows: readonly string[];
  readonly ids: readonly string[];
  readonly items: readonly (readonly [name: string, generationsBack: number])[];
  /** How many generations of items begin. */
  readonly generations: number;
}

const oneAnswer: Draft = {
  right: [true],
  skills: ['algebra'],
  rows: ['row'],
  ids: [],
  items: [],
  generations: 0,
};

interface Place {
  readonly partition: number;
  readonly tenant: string;
  readonly userId: string;
}

const placeOf = (partition: number, userId: string): Place => ({ partition, tenant, userId });
/** A record of an answer, which leads with the second it came in. */
function answerOf(id: Buffer, at: number): Buffer {
  const record = Buffer.concat([Buffer.alloc(4), id, id, id]).subarray(0, resultBytes);
  record.writeUInt32LE(at, 0);
  return record;
}

function idsTaken(names: readonly string[], loaded: LoadedLearner | undefined, at: number) {
  const ids = openIds(loaded?.ids ?? emptyIds);
  for (const id of names.map(hashEventId)) ids.add(id, answerOf(id, at), at);
  return ids.changes();
}

/** The commit that follows on what was read, of the ids that are taken too. */
function commitOf(place: Place, draft: Partial<Draft>, loaded?: LoadedLearner, at = second): LearnerCommit {
  const { right, skills, rows, ids, items, generations } = { ...oneAnswer, ...draft };
  const { learner, skill } = countAnswers(right.map((isCorrect) => ({ isCorrect })));
  const { version, items: window } = loaded?.learner ?? { version: 0, items: learner.items };
  const generation = window.generation + generations;
  const trace = { ...newItemTrace, right: right.length, otherSkillAnswers: 7, at };
  return {
    ...place,
    learner: { ...learner, version: version + 1, items: { generation, size: items.length } },
    skills: skills.map((skillId) => [skillId, skill]),
    rows,
    arrivalDays: rows.map((_, i) => Math.floor(at / 86_400) - (i % 2)),
    ids: idsTaken(ids, loaded, at),
    itemGeneration: window.generation,
    items: items.map(([name, back]) => [
      hashItem(name),
      { generation: Math.max(0, generation - back), trace },
    ]),
    importLine: 0,
    webhookEvents: [],
    goalCheckAt: null,
  };
}

const queryOf = (place: Place, ids: readonly string[] = []): LearnerQuery => ({
  ...place,
  skillIds: [...skillNames, 'never answered'],
  eventIdHashes: ids.map(hashEventId),
  itemHashes: itemNames.map(hashItem),
});

type Batch = readonly (readonly [Place, Partial<Draft>])[];
const queriesOf = (batch: Batch): LearnerQuery[] => batch.map(([place, { ids }]) => queryOf(place, ids));

const watch = (
  connection: HotConnection,
  bound = outboxBound,
  importId: string | null = null,
): CommitSession => new CommitSession(connection, { maxOutboxRows: bound, importId });

/** A try as a worker makes it, with something done in between. */
async function attempt(
  connection: HotConnection,
  batch: Batch,
  { meanwhile = async () => undefined as unknown, bound = outboxBound, at = second } = {},
): Promise<CommitStatus[]> {
  const watched = watch(connection, bound);
  const loaded = await watched.load(queriesOf(batch));
  await meanwhile();
  return watched.commit(batch.map(([place, draft], i) => commitOf(place, draft, loaded.learners[i], at)));
}

async function oneByOne(batch: Batch, bound = outboxBound): Promise<CommitStatus[]> {
  const statuses: CommitStatus[] = [];
  for (const one of batch) statuses.push(...(await attempt(alone, [one], { bound })));
  return statuses;
}

const hex = (bytes: readonly Buffer[]): string[] => bytes.map((one) => one.toString('hex'));

async function contentOf(client: Redis, key: string): Promise<unknown> {
  const type = await client.type(key);
  if (type === 'hash') {
    const flat = hex((await client.callBuffer('HGETALL', key)) as Buffer[]);
    return new Map(flat.flatMap((field, i) => (i % 2 === 0 ? [[field, flat[i + 1]] as const] : [])));
  }
  if (type === 'stream')
    return (await client.xrange(key, '-', '+')).flatMap(([, [, rows = '']]) => rows.split('\n'));
  return client.get(key);
}

/** Values by key. */
type Contents = Map<string, unknown>;

async function contentsOf(client: Redis, partition: number): Promise<Contents> {
  const contents: Contents = new Map();
  for (const key of (await client.keys(`${partitionPrefix(partition)}:*`)).sort())
    contents.set(key, await contentOf(client, key));
  return contents;
}

const allContents = (client: Redis, of: readonly number[]): Promise<Contents[]> =>
  Promise.all(of.map((partition) => contentsOf(client, partition)));

const subsetOf = (names: readonly string[]) => fc.subarray([...names]);
const drafts = fc.uniqueArray(
  fc.record({
    learner: fc.nat(5),
    right: fc.array(fc.boolean(), { minLength: 1, maxLength: 4 }),
    skills: subsetOf(skillNames),
    rows: fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 3 }),
    ids: fc.oneof({ weight: 4, arbitrary: fc.nat(3) }, { weight: 1, arbitrary: fc.nat(120) }),
    items: fc.uniqueArray(fc.tuple(fc.constantFrom(...itemNames), fc.nat(2)), { selector: ([name]) => name }),
    generations: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(3) }),
  }),
  { minLength: 1, selector: ({ learner }) => learner },
);

type Step = typeof drafts extends fc.Arbitrary<infer Drafts> ? Drafts : never;

/** Reads and commits the same together in one Redis and one by one in the other. */
async function takeStep(step: Step, place: (learner: number) => Place, taken: Map<number, string[]>) {
  const queries = step.map(({ learner, ids }) => {
    const known = taken.get(learner) ?? [];
    return queryOf(place(learner), [...known, ...numbers(known.length, ids), 'new']);
  });
  const watched = watch(hot);
  const loaded = await watched.load(queries);
  const commits = step.map(({ learner, ids, ...draft }, i) => {
    const known = taken.get(learner) ?? [];
    const fresh = numbers(known.length, ids);
    taken.set(learner, [...known, ...fresh]);
    return commitOf(place(learner), { ...draft, ids: fresh }, loaded.learners[i]);
  });
  assert.deepEqual(
    await watched.commit(commits),
    commits.map(() => 'committed'),
  );
  for (const [i, commit] of commits.entries()) {
    const single = watch(alone);
    assert.deepEqual((await single.load([queries[i] as LearnerQuery])).learners, [loaded.learners[i]]);
    assert.deepEqual(await single.commit([commit]), ['committed']);
  }
  const { learners } = await watch(hot).load(queries);
  assert.deepEqual(
    learners.map(({ learner }) => learner),
    commits.map(({ learner }) => learner),
  );
}

test('a batch writes and reads what its learners do alone', moment, async () => {
  await assertAsync(
    fc.asyncProperty(fc.array(drafts, { minLength: 1, maxLength: 6 }), async (steps) => {
      const own = await freshPartitions(3);
      const place = (learner: number) => placeOf(own[learner % 3] as number, `${tenant}:é${learner}`);
      const taken = new Map<number, string[]>();
      for (const step of steps) await takeStep(step, place, taken);
      assert.deepEqual(await allContents(other, own), await allContents(otherAlone, own));
    }),
    { numRuns: 60 },
  );
});

const disturbances: Record<string, (own: Place) => Promise<unknown>> = {
  'a learner was written': (own) => attempt(theirs, [[own, { ids: ['theirs'] }]]),
  'a goal was written': ({ partition, userId }) =>
    other.hset(learnerKey(partition, tenant, userId), 'G', '{}'),
  'a marker is gone': ({ partition }) => other.del(markerKey(partition)),
};

for (const [what, disturb] of Object.entries(disturbances)) {
  test(`${what} between reading and writing: all is refused, and nothing is written`, moment, async () => {
    const own = await freshPartitions(2);
    const [one, two] = own.map((partition) => placeOf(partition, 'learner')) as [Place, Place];
    const batch = (draft: Partial<Draft>): Batch => [one, two].map((place) => [place, draft]);
    assert.deepEqual(await attempt(hot, batch({ ids: ['first'] })), ['committed', 'committed']);
    let before: Contents[] = [];
    const meanwhile = async () => {
      await disturb(two);
      before = await allContents(other, own);
    };
    const draft = { ids: ['second'], items: [['a', 0]] as const, generations: 1 };
    assert.deepEqual(await attempt(hot, batch(draft), { meanwhile }), ['conflict', 'conflict']);
    assert.deepEqual(await allContents(other, own), before);
  });
}

test('a full outbox and a partition that came back empty refuse their own', moment, async () => {
  const [full, emptied, sound] = (await freshPartitions(3)) as [number, number, number];
  const known = placeOf(emptied, 'known');
  const batch: Batch = [
    [placeOf(full, 'first'), { rows: ['1', '2', '3'], ids: ['a'] }],
    [placeOf(full, 'second'), { rows: ['4', '5', '6'], ids: ['a'] }],
    [placeOf(full, 'third'), { rows: ['7'], ids: ['a'] }],
    [placeOf(emptied, 'new'), { ids: ['a'] }],
    [known, { ids: ['b'] }],
    [placeOf(sound, 'new'), { ids: ['a'] }],
  ];
  for (const [connection, client] of [
    [hot, other],
    [alone, otherAlone],
  ] as const) {
    assert.deepEqual(await attempt(connection, [[known, { ids: ['a'] }]]), ['committed']);
    await client.del(markerKey(emptied));
  }
  const statuses = await attempt(hot, batch, { bound: 4 });
  assert.deepEqual(statuses, [
    'committed',
    'committed',
    'outbox-full',
    'not-restored',
    'not-restored',
    'committed',
  ]);
  assert.deepEqual(await oneByOne(batch, 4), statuses);
  const own = [full, emptied, sound];
  assert.deepEqual(await allContents(other, own), await allContents(otherAlone, own));
  assert.equal((await waitingLines(other, full)).length, 6);
  assert.deepEqual(await attempt(hot, batch.slice(2, 4), { bound: 6 }), ['outbox-full', 'not-restored']);
});

test('a Redis without memory for more is unavailable, and nothing is written', moment, async () => {
  const own = await freshPartitions(1);
  const place = placeOf(own[0] as number, 'learner');
  const before = await allContents(other, own);
  const meanwhile = () => other.config('SET', 'maxmemory', 1);
  try {
    await assert.rejects(attempt(hot, [[place, {}]], { meanwhile }), { code: 'UNAVAILABLE' });
  } finally {
    await other.config('SET', 'maxmemory', 0);
  }
  assert.deepEqual(await allContents(other, own), before);
  assert.deepEqual(await attempt(hot, [[place, {}]]), ['committed']);
});

test('a transaction that Redis refuses as a whole for its memory is unavailable', moment, async () => {
  const told = new Set<string>();
  try {
    // Somewhere on the way memory suffices for every command that is queued, and no longer for EXEC. That
    // place is small, and what Redis uses moves a little: each of the ten ways goes over other numbers.
    for (let step = 0; step < 4000 && !told.has('EXECABORT'); step++) {
      told.add(await refusedWith((step * 101) % 40_000));
    }
  } finally {
    await other.config('SET', 'maxmemory', 0);
    await other.del('large');
  }
  assert.ok(told.has('EXECABORT') && told.has('OOM'), [...told].join());
});

/** @param more bytes of memory that are left @returns the code of what was refused, or '' */
async function refusedWith(more: number): Promise<string> {
  const usage = /used_memory:(\d+)/.exec(await other.info('memory')) as RegExpExecArray;
  await other.config('SET', 'maxmemory', Number(usage[1]) + more);
  const writing = mapRedisErrors(
    hot.send(largeTransaction()).then((replies) => parseTransaction(4, replies)),
  );
  const error = await writing.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (error === null) return '';
  assert.ok(error instanceof ApiError && error.code === 'UNAVAILABLE', `${error}`);
  return (error.cause as Error).message.split(' ', 1)[0] as string;
}

function largeTransaction(): CommandEncoder {
  const request = createCommandEncoder(16_384);
  request.command(1, 'MULTI');
  for (const field of numbers(0, 4)) {
    request.command(4, 'HSET');
    for (const word of ['large', field, 'x'.repeat(2000)]) request.text(word);
  }
  request.command(1, 'EXEC');
  return request;
}

test('a Redis that does not serve reads is unavailable', moment, async () => {
  const [partition] = (await freshPartitions(1)) as [number];
  const place = placeOf(partition, 'learner');
  assert.deepEqual(await attempt(hot, [[place, {}]]), ['committed']);
  await other.config('SET', 'replica-serve-stale-data', 'no');
  try {
    // Nobody listens there: a replica that never met its master.
    await other.replicaof('127.0.0.1', 1);
    await assert.rejects(attempt(hot, [[place, {}]]), { code: 'UNAVAILABLE' });
  } finally {
    await other.replicaof('NO', 'ONE');
    await other.config('SET', 'replica-serve-stale-data', 'yes');
  }
  assert.deepEqual(await attempt(hot, [[place, {}]]), ['committed']);
});

/** How many of the ids are remembered. */
const foundOf = (loaded: readonly LoadedLearner[], ids: readonly string[]): number =>
  ids.filter((id) => openIds(loaded[0]?.ids ?? emptyIds).find(hashEventId(id), second)).length;
async function findWatched(place: Place, ids: readonly string[]): Promise<number> {
  const loaded = await watch(hot).load([queryOf(place, ids)]);
  return foundOf(loaded.learners, ids);
}
async function findRead(place: Place, ids: readonly string[]): Promise<number> {
  const hashes = ids.map(hashEventId);
  const found = await readEventIds(other, place, hashes);
  return hashes.filter((id) => found.find(id, second)).length;
}

test('ids are found, by whoever reads them, however many there are', moment, async () => {
  const [partition] = (await freshPartitions(1)) as [number];
  const place = placeOf(partition, 'learner');
  assert.equal(await findWatched(place, ['0']), 0);
  const [perCommit, count] = [400, 2000];
  for (let done = 0; done < count; done += perCommit) {
    const draft = { rows: [], ids: numbers(done, perCommit) };
    assert.deepEqual(await attempt(hot, [[place, draft]]), ['committed']);
  }
  const ids = numbers(0, count);
  assert.equal(await findRead(place, ids), count);
  assert.equal(await findWatched(place, ids), count);
  assert.deepEqual(await attempt(theirs, [[place, { ids: ['theirs'] }]]), ['committed']);
  assert.equal(await findRead(place, [...ids, 'theirs', 'nobody’s']), count + 1);
});

test('what a try watched and did not write does not disturb the next one', moment, async () => {
  const [partition] = (await freshPartitions(1)) as [number];
  const [left, taken] = [placeOf(partition, 'left'), placeOf(partition, 'taken')];
  assert.ok(await watch(hot).load([queryOf(left)]));
  assert.deepEqual(await attempt(theirs, [[left, {}]]), ['committed']);
  assert.deepEqual(await attempt(hot, [[taken, {}]]), ['committed']);
  assert.deepEqual(await attempt(hot, [[left, {}]]), ['committed']);
});

test('a try that was left alone does not take away what the next one watches', moment, async () => {
  const [known, unknown] = (await freshPartitions(2)) as [number, number];
  const place = placeOf(known, 'learner');
  const left = watch(hot);
  const watched = placeOf(known, 'left');
  assert.ok(await left.load([queryOf(watched)]));
  const meanwhile = async () => {
    await assert.rejects(left.load([queryOf(placeOf(unknown, 'left'))]), WatchLostError);
    assert.deepEqual(await left.commit([commitOf(watched, {})]), ['conflict']);
    await attempt(theirs, [[place, {}]]);
  };
  assert.deepEqual(await attempt(hot, [[place, {}]], { meanwhile }), ['conflict']);
});

test('what was read in parts is watched as a whole', moment, async () => {
  const [partition] = (await freshPartitions(1)) as [number];
  const places = [placeOf(partition, 'first'), placeOf(partition, 'second')];
  const watched = watch(hot);
  for (const place of places) assert.ok(await watched.load([queryOf(place)]));
  await attempt(theirs, [[places[0] as Place, {}]]);
  assert.deepEqual(await watched.commit(places.map((place) => commitOf(place, {}))), [
    'conflict',
    'conflict',
  ]);
});

/** Its connection is closed by Redis, and it connects again. */
async function replaceConnection(): Promise<void> {
  const request = createCommandEncoder(64);
  request.command(2, 'CLIENT');
  request.text('ID');
  const [id] = (await hot.send(request)) as [number];
  const before = hot.currentSocket();
  await other.client('KILL', 'ID', id);
  await waitFor('the next connection', async () => {
    await hot.waitUntilReady();
    return hot.currentSocket() !== before;
  });
}

test('on another connection than it was read over nothing is read or written', moment, async () => {
  const own = await freshPartitions(1);
  const place = placeOf(own[0] as number, 'learner');
  const before = await allContents(other, own);
  const meanwhile = replaceConnection;
  assert.deepEqual(await attempt(hot, [[place, { ids: ['a'] }]], { meanwhile }), ['conflict']);
  assert.deepEqual(await allContents(other, own), before);
  const watched = watch(hot);
  await replaceConnection();
  await assert.rejects(watched.load([queryOf(place)]), WatchLostError);
  assert.deepEqual(await attempt(hot, [[place, { ids: ['a'] }]]), ['committed']);
});

test('what replicas do not have is not told as done, nor what others wrote as known', moment, async () => {
  const replica = await startBareRedis({ after });
  const copy = await connect(replica.url);
  await other.config('SET', 'repl-diskless-sync-delay', 0);
  // Else it leaves a file where the tests run, and others read it.
  await copy.config('SET', 'repl-diskless-load', 'swapdb');
  await copy.config('SET', 'masterauth', new URL(server.url).password);
  await copy.replicaof('127.0.0.1', Number(new URL(server.url).port));
  const safe = await connectHot(server.url, 1);
  const [partition] = (await freshPartitions(1)) as [number];
  const place = placeOf(partition, 'learner');
  await waitFor('the replica', async () => /state=online/.test(await other.info('replication')));
  // On a busy machine it takes longer than an answer waits for it.
  const caughtUp = async (): Promise<void> => {
    await other.set(replicationProbeKey(partition), '');
    assert.equal(await other.wait(1, 4000), 1);
  };
  await caughtUp();
  assert.deepEqual(await attempt(safe, [[place, { ids: ['a'] }]]), ['committed']);
  replica.signal('SIGSTOP');
  try {
    await assert.rejects(attempt(safe, [[place, {}]]), /not safe on the replicas/);
    const known = watch(safe).load([queryOf(place, ['a'])]);
    await assert.rejects(known, /not safe on the replicas/);
    assert.ok(await watch(safe).load([queryOf(place, ['unknown'])]));
  } finally {
    replica.signal('SIGCONT');
  }
  await caughtUp();
  assert.deepEqual(await attempt(safe, [[place, {}]]), ['committed']);
});

/** One address behind which the master changes: who is connected stays where it was. */
async function startProxy(firstPort: number): Promise<{ url: string; leadTo(port: number): void }> {
  let target = firstPort;
  const proxy = createServer((client) => {
    const upstream = connectTo(target, '127.0.0.1');
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) {
      socket.on('error', () => undefined);
      socket.on('close', () => [client, upstream].map((one) => one.destroy()));
    }
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  after(() => proxy.close());
  const url = new URL(server.url);
  url.port = `${(proxy.address() as AddressInfo).port}`;
  return {
    url: url.href,
    leadTo: (port) => {
      target = port;
    },
  };
}

test('a Redis that became a replica is left for the one that its address leads to', moment, async () => {
  const next = await startBareRedis({ after });
  const nextClient = await connect(next.url);
  // Of the proxy's connections one password.
  await nextClient.config('SET', 'requirepass', new URL(server.url).password);
  const [partition] = (await freshPartitions(1)) as [number];
  await nextClient.set(markerKey(partition), 'here');
  const proxy = await startProxy(Number(new URL(server.url).port));
  const [moved, plain] = await Promise.all([connectHot(proxy.url), connect(proxy.url)]);
  const place = placeOf(partition, 'learner');
  assert.deepEqual(await attempt(moved, [[place, {}]]), ['committed']);
  proxy.leadTo(Number(new URL(next.url).port));
  // Nobody listens there: a replica that never met its master.
  await other.replicaof('127.0.0.1', 1);
  try {
    await assert.rejects(attempt(moved, [[place, {}]]), { code: 'UNAVAILABLE' });
    await moved.waitUntilReady();
    assert.deepEqual(await attempt(moved, [[place, {}]]), ['committed']);
    await assert.rejects(plain.set('elsewhere', ''), /READONLY/);
    await waitFor(
      'another connection',
      async () => (await plain.set('elsewhere', '').catch(() => null)) === 'OK',
    );
  } finally {
    await other.replicaof('NO', 'ONE');
  }
  assert.equal(await nextClient.xlen(outboxKey(partition)), 1);
});
