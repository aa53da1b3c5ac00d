/** Learners by plain commands: the same as by scripts, and nothing where somebody else was there. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Redis } from 'ioredis';
import { ApiError } from '../../src/errors.js';
import { sendBundle, transactionOf } from '../../src/store/bundle.js';
import { connectRedis, whenReady, whileRedisServes } from '../../src/store/client.js';
import { type CommandBytes, createCommandBytes } from '../../src/store/command-bytes.js';
import { hashEventId } from '../../src/store/event-ids.js';
import { bucketOf } from '../../src/store/id-buckets.js';
import { forgetOldIds, idWindowSeconds } from '../../src/store/id-window.js';
import { hashItem } from '../../src/store/item-id.js';
import {
  idCountKey,
  idQueueKey,
  learnerKey,
  markerKey,
  outboxKey,
  partitionPrefix,
} from '../../src/store/keys.js';
import type {
  CommitStatus,
  LearnerCommit,
  LearnerQuery,
  LoadedLearner,
} from '../../src/store/learner-records.js';
import { commitLearners, loadLearners } from '../../src/store/learner-store.js';
import { watchLearners } from '../../src/store/watched-learners.js';
import { countAnswers } from '../support/answers.js';
import { fc } from '../support/properties.js';
import { startBareRedis } from '../support/service.js';

const moment = { timeout: 30_000 };
const tenant = 'default';
const outboxBound = 1_000_000;
const [server, scriptServer] = await Promise.all([startBareRedis({ after }), startBareRedis({ after })]);
/** `plain` and `other` are connections to one Redis; to `scripted`'s Redis everything goes by scripts. */
const [plain, other, scripted] = (await Promise.all(
  [server.url, server.url, scriptServer.url].map(connect),
)) as [Redis, Redis, Redis];

async function connect(url: string): Promise<Redis> {
  const client = connectRedis(url) as Redis;
  client.on('error', () => undefined);
  after(() => client.disconnect());
  await whenReady(client, 5000);
  // Redis knows the script from now on, so that what is ordered first is done first.
  await client.growIds('unused', 1);
  return client;
}

/** Each test has partitions of its own, marked as those of a deployment are. */
let partitions = 0;
async function freshPartitions(count: number): Promise<number[]> {
  const fresh = Array.from({ length: count }, () => partitions++);
  for (const client of [plain, scripted]) {
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
const idOf = ({ userId }: Place, id: string): Buffer => hashEventId(tenant, userId, id);

/** A record of an answer's usual size, which leads with the second it came in. */
function answerOf(id: Buffer, at: number): Buffer {
  const record = Buffer.concat([Buffer.alloc(4), id, id]).subarray(0, 21);
  record.writeUInt32LE(at, 0);
  return record;
}

/** The commit that follows on what was read. */
function commitOf(place: Place, draft: Partial<Draft>, loaded?: LoadedLearner, at = second): LearnerCommit {
  const { right, skills, rows, ids, items, generations } = { ...oneAnswer, ...draft };
  const { learner, skill } = countAnswers(right.map((isCorrect) => ({ isCorrect })));
  const { version, items: window } = loaded?.learner ?? { version: 0, items: learner.items };
  const generation = window.generation + generations;
  const trace = { right: right.length, wrong: 0, wrongRun: 0, elsewhere: 7, at };
  return {
    ...place,
    expectedVersion: version,
    learner: { ...learner, version: version + 1, items: { generation, size: items.length } },
    skills: skills.map((skillId) => [skillId, skill]),
    rows,
    arrivalDays: rows.map((_, i) => Math.floor(at / 86_400) - (i % 2)),
    firstAnswers: ids.map((id) => [idOf(place, id), answerOf(idOf(place, id), at)]),
    itemGeneration: window.generation,
    items: items.map(([name, back]) => [
      hashItem(name),
      { generation: Math.max(0, generation - back), trace },
    ]),
    importLine: 0,
  };
}

const queryOf = (place: Place, ids: readonly string[] = []): LearnerQuery => ({
  ...place,
  skillIds: [...skillNames, 'never answered'],
  eventIds: ids.map((id) => idOf(place, id)),
  itemIds: itemNames.map(hashItem),
});

type Batch = readonly (readonly [Place, Partial<Draft>])[];
const queriesOf = (batch: Batch): LearnerQuery[] => batch.map(([place]) => queryOf(place));

/** A try as a worker makes it, with something done in between. */
async function attempt(
  client: Redis,
  batch: Batch,
  { meanwhile = async () => undefined as unknown, bound = outboxBound, at = second } = {},
): Promise<CommitStatus[]> {
  const watched = watchLearners(client, bound);
  const loaded = await watched.load(queriesOf(batch));
  assert.ok(loaded, 'it is as was thought');
  await meanwhile();
  return watched.commit(batch.map(([place, draft], i) => commitOf(place, draft, loaded[i], at)));
}

const byScripts = async (client: Redis, batch: Batch, bound = outboxBound): Promise<CommitStatus[]> => {
  const loaded = await loadLearners(client, queriesOf(batch), null, true);
  const commits = batch.map(([place, draft], i) => commitOf(place, draft, loaded[i]));
  return commitLearners(client, commits, null, bound);
};

const hex = (bytes: readonly Buffer[]): string[] => bytes.map((one) => one.toString('hex'));

async function fieldsOf(client: Redis, key: string): Promise<[field: Buffer, value: string][]> {
  const fields = (await client.callBuffer('HGETALL', key)) as Buffer[];
  return Array.from({ length: fields.length / 2 }, (_, i) => [
    fields[2 * i] as Buffer,
    (fields[2 * i + 1] as Buffer).toString('hex'),
  ]);
}

async function contentOf(client: Redis, key: string): Promise<unknown> {
  const type = await client.type(key);
  if (type === 'hash')
    return new Map((await fieldsOf(client, key)).map(([name, value]) => [`${hex([name])}`, value]));
  if (type === 'list') return hex(await client.lrangeBuffer(key, 0, -1));
  if (type === 'stream') return (await client.xrange(key, '-', '+')).map(([, fields]) => fields);
  return client.get(key);
}

/** Values by key. */
type Contents = Map<string, unknown>;

const bucketNumber = /:i:(\d+)$/;

/** All that a partition has by key; of its ids those in any bucket, each of which is where it belongs. */
async function contentsOf(client: Redis, partition: number): Promise<Contents> {
  const contents: Contents = new Map();
  const ids = new Map<string, string>();
  const buckets = Number((await client.get(idCountKey(partition))) ?? 1);
  for (const key of (await client.keys(`${partitionPrefix(partition)}:*`)).sort()) {
    const bucket = bucketNumber.exec(key)?.[1];
    if (bucket === undefined && key !== idCountKey(partition))
      contents.set(key, await contentOf(client, key));
    if (bucket === undefined) continue;
    for (const [id, answer] of await fieldsOf(client, key)) {
      assert.equal(bucketOf(id, buckets), Number(bucket));
      ids.set(id.toString('hex'), answer);
    }
  }
  return contents.set('ids', ids);
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

/** Reads and commits the same by plain commands in one Redis and by scripts in the other. */
async function takeStep(step: Step, place: (learner: number) => Place, taken: Map<number, string[]>) {
  const queries = step.map(({ learner }) => queryOf(place(learner), [...(taken.get(learner) ?? []), 'new']));
  const watched = watchLearners(plain, outboxBound);
  const loaded = await watched.load(queries);
  assert.deepEqual(loaded, await loadLearners(scripted, queries, null, true));
  const commits = step.map(({ learner, ids, ...draft }, i) => {
    const known = taken.get(learner) ?? [];
    const fresh = numbers(known.length, ids);
    taken.set(learner, [...known, ...fresh]);
    return commitOf(place(learner), { ...draft, ids: fresh }, loaded?.[i]);
  });
  const done = step.map(() => 'committed');
  assert.deepEqual(await watched.commit(commits), done);
  assert.deepEqual(await commitLearners(scripted, commits, null, outboxBound), done);
}

test('plain commands write and read what the scripts do', moment, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(drafts, { minLength: 1, maxLength: 6 }), async (steps) => {
      const own = await freshPartitions(3);
      const place = (learner: number) => placeOf(own[learner % 3] as number, `${tenant}:é${learner}`);
      const taken = new Map<number, string[]>();
      for (const step of steps) await takeStep(step, place, taken);
      assert.deepEqual(await allContents(plain, own), await allContents(scripted, own));
      const queries = [...taken].map(([learner, ids]) => queryOf(place(learner), ids));
      const [byPlain, byScript] = await Promise.all(
        [plain, scripted].map((client) => loadLearners(client, queries, null, true)),
      );
      assert.deepEqual(byPlain, byScript);
    }),
    { numRuns: 60 },
  );
});

const disturbances: Record<string, (own: Place) => Promise<unknown>> = {
  'a learner was written': (own) => byScripts(other, [[own, { ids: ['theirs'] }]]),
  'a goal was written': ({ partition, userId }) =>
    other.hset(learnerKey(partition, tenant, userId), 'G', '{}'),
  'a partition got more buckets': ({ partition }) => other.growIds(partitionPrefix(partition), 2),
  'a marker is gone': ({ partition }) => other.del(markerKey(partition)),
};

for (const [what, disturb] of Object.entries(disturbances)) {
  test(`${what} between reading and writing: all is refused, and nothing is written`, moment, async () => {
    const own = await freshPartitions(2);
    const [one, two] = own.map((partition) => placeOf(partition, 'learner')) as [Place, Place];
    const batch = (draft: Partial<Draft>): Batch => [one, two].map((place) => [place, draft]);
    assert.deepEqual(await attempt(plain, batch({ ids: ['first'] })), ['committed', 'committed']);
    let before: Contents[] = [];
    const meanwhile = async () => {
      await disturb(two);
      before = await allContents(other, own);
    };
    const draft = { ids: ['second'], items: [['a', 0]] as const, generations: 1 };
    assert.deepEqual(await attempt(plain, batch(draft), { meanwhile }), ['conflict', 'conflict']);
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
  for (const client of [plain, scripted]) {
    await byScripts(client, [[known, { ids: ['a'] }]]);
    await client.del(markerKey(emptied));
  }
  const statuses = await attempt(plain, batch, { bound: 4 });
  assert.deepEqual(statuses, [
    'committed',
    'committed',
    'outbox-full',
    'not-restored',
    'not-restored',
    'committed',
  ]);
  assert.deepEqual(await byScripts(scripted, batch, 4), statuses);
  const own = [full, emptied, sound];
  assert.deepEqual(await allContents(plain, own), await allContents(scripted, own));
  assert.equal(await plain.xlen(outboxKey(full)), 6);
  assert.deepEqual(await attempt(plain, batch.slice(2, 4), { bound: 6 }), ['outbox-full', 'not-restored']);
});

test('a Redis without memory for more is unavailable, and nothing is written', moment, async () => {
  const own = await freshPartitions(1);
  const place = placeOf(own[0] as number, 'learner');
  const before = await allContents(other, own);
  const meanwhile = () => other.config('SET', 'maxmemory', 1);
  try {
    await assert.rejects(attempt(plain, [[place, {}]], { meanwhile }), { code: 'UNAVAILABLE' });
  } finally {
    await other.config('SET', 'maxmemory', 0);
  }
  assert.deepEqual(await allContents(other, own), before);
  assert.deepEqual(await attempt(plain, [[place, {}]]), ['committed']);
});

test('a transaction that Redis refuses as a whole for its memory is unavailable', moment, async () => {
  const told = new Set<string>();
  try {
    // Somewhere on the way memory suffices for every command that is queued, and no longer for EXEC.
    for (let more = 0; more < 40_000 && !told.has('EXECABORT'); more += 100) {
      told.add(await refusedWith(more));
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
  const writing = whileRedisServes(sendBundle(plain, largeTransaction(), 5000).then(transactionOf));
  const error = await writing.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (error === null) return '';
  assert.ok(error instanceof ApiError && error.code === 'UNAVAILABLE', `${error}`);
  return (error.cause as Error).message.split(' ', 1)[0] as string;
}

function largeTransaction(): CommandBytes {
  const request = createCommandBytes(16_384);
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
  // Its number of buckets is known from now on, so the bundle is what is refused.
  assert.deepEqual(await attempt(plain, [[place, {}]]), ['committed']);
  await other.config('SET', 'replica-serve-stale-data', 'no');
  try {
    // Nobody listens there: a replica that never met its master.
    await other.replicaof('127.0.0.1', 1);
    await assert.rejects(attempt(plain, [[place, {}]]), { code: 'UNAVAILABLE' });
  } finally {
    await other.replicaof('NO', 'ONE');
    await other.config('SET', 'replica-serve-stale-data', 'yes');
  }
  assert.deepEqual(await attempt(plain, [[place, {}]]), ['committed']);
});

const perCommit = 80;

/** Commits so many ids, all of one second. */
async function keepIds(place: Place, from: number, count: number, at: number): Promise<void> {
  for (let done = from; done < from + count; done += perCommit) {
    const draft = { rows: [], ids: numbers(done, perCommit) };
    assert.deepEqual(await attempt(plain, [[place, draft]], { at }), ['committed']);
  }
}

const foundOf = (loaded: readonly LoadedLearner[] | null): number | null =>
  loaded?.flatMap(({ firstAnswers }) => firstAnswers).filter((answer) => answer !== null).length ?? null;
const findWatched = async (client: Redis, place: Place, ids: readonly string[]): Promise<number | null> =>
  foundOf(await watchLearners(client, outboxBound).load([queryOf(place, ids)]));
const findByScript = async (place: Place, ids: readonly string[]): Promise<number | null> =>
  foundOf(await loadLearners(other, [queryOf(place, ids)], null, true));

test('ids get more buckets as they become more, are found both ways, and are forgotten', moment, async () => {
  const [partition] = (await freshPartitions(1)) as [number];
  const place = placeOf(partition, 'learner');
  assert.equal(await findWatched(other, place, ['0']), 0, 'the other connection knows one bucket');
  const count = 50 * perCommit;
  await keepIds(place, 0, count / 2, second);
  await keepIds(place, count / 2, count / 2, second + 60);
  const ids = numbers(0, count);
  const buckets = Number(await plain.get(idCountKey(partition)));
  assert.ok(buckets * 45 > count - 2 * perCommit && buckets * 40 <= count, `${buckets} buckets`);
  const sizes = await Promise.all(
    numbers(0, buckets).map((bucket) => plain.hlen(`${partitionPrefix(partition)}:i:${bucket}`)),
  );
  assert.equal(
    sizes.reduce((a, b) => a + b),
    count,
  );
  assert.ok(Math.max(...sizes) <= 128, `${Math.max(...sizes)} ids in one bucket`);
  assert.equal(await findByScript(place, ids), count);
  assert.equal(await findWatched(plain, place, ids), count);

  assert.equal(await findWatched(other, place, ids), null, 'the number of buckets was another');
  assert.equal(await findWatched(other, place, ids), count);
  assert.deepEqual(await attempt(other, [[place, { ids: ['theirs'] }]], { at: second + 60 }), ['committed']);
  assert.equal(await findByScript(place, ['theirs']), 1);

  await forgetOldIds(plain, partitions, 1e9, (second + idWindowSeconds + 30) * 1000);
  assert.equal(await plain.llen(idQueueKey(partition)), count / 2 + 1);
  for (const find of [findByScript, (at: Place, of: string[]) => findWatched(plain, at, of)]) {
    assert.equal(await find(place, ids.slice(0, count / 2)), 0);
    assert.equal(await find(place, ids.slice(count / 2)), count / 2);
  }
});

test('what a try watched and did not write does not disturb the next one', moment, async () => {
  const [partition] = (await freshPartitions(1)) as [number];
  const [left, taken] = [placeOf(partition, 'left'), placeOf(partition, 'taken')];
  assert.deepEqual(foundOf(await watchLearners(plain, outboxBound).load([queryOf(left)])), 0);
  assert.deepEqual(await byScripts(other, [[left, {}]]), ['committed']);
  assert.deepEqual(await attempt(plain, [[taken, {}]]), ['committed']);
  assert.deepEqual(await attempt(plain, [[left, {}]]), ['committed']);
});

test('a try that was left alone does not take away what the next one watches', moment, async () => {
  const [known, unknown] = (await freshPartitions(2)) as [number, number];
  const place = placeOf(known, 'learner');
  await watchLearners(plain, outboxBound).load([queryOf(placeOf(known, 'nobody'))]);
  // It asks for the number of buckets first, so what it reads would go out after what the next one watches.
  const left = watchLearners(plain, outboxBound).load([queryOf(placeOf(unknown, 'left'))]);
  const meanwhile = async () => {
    assert.equal(await left, null);
    await byScripts(other, [[place, {}]]);
  };
  assert.deepEqual(await attempt(plain, [[place, {}]], { meanwhile }), ['conflict']);
});

test('what was read in parts is watched as a whole', moment, async () => {
  const [partition] = (await freshPartitions(1)) as [number];
  const places = [placeOf(partition, 'first'), placeOf(partition, 'second')];
  const watched = watchLearners(plain, outboxBound);
  for (const place of places) assert.ok(await watched.load([queryOf(place)]));
  await byScripts(other, [[places[0] as Place, {}]]);
  assert.deepEqual(await watched.commit(places.map((place) => commitOf(place, {}))), [
    'conflict',
    'conflict',
  ]);
});

/** Its connection is closed by Redis, and it connects again. */
async function replaceConnection(client: Redis): Promise<void> {
  const closed = new Promise((resolve) => client.once('close', resolve));
  await other.client('KILL', 'ID', await client.client('ID'));
  await closed;
  await whenReady(client, 5000);
}

test('on another connection than it was read over nothing is read or written', moment, async () => {
  const own = await freshPartitions(1);
  const place = placeOf(own[0] as number, 'learner');
  const before = await allContents(other, own);
  const meanwhile = () => replaceConnection(plain);
  assert.deepEqual(await attempt(plain, [[place, { ids: ['a'] }]], { meanwhile }), ['conflict']);
  assert.deepEqual(await allContents(other, own), before);
  const watched = watchLearners(plain, outboxBound);
  await replaceConnection(plain);
  assert.equal(await watched.load([queryOf(place)]), null);
  assert.deepEqual(await attempt(plain, [[place, { ids: ['a'] }]]), ['committed']);
});
