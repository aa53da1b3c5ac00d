/** Retracting an answer: afterwards the learner is as if the answer had never arrived, in Redis and ClickHouse. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { Redis } from 'ioredis';
import { decodeAttemptRow } from '../../src/contracts/answers/attempt-row.js';
import { encodeModel } from '../../src/contracts/models/stored-model.js';
import {
  resolveSkillModel,
  type SkillModel,
  unfittedModel,
} from '../../src/domain/catalogue/tenant-model.js';
import { startReplay } from '../../src/domain/history/replay.js';
import { computeSum, indices } from '../../src/lists.js';
import { redrive } from '../../src/store/corrections/redrive.js';
import { removeExpiredIds } from '../../src/store/learners/id-sweep.js';
import { decodeLearner } from '../../src/store/learners/learner-codec.js';
import { encodeSnapshot } from '../../src/store/learners/learner-snapshot.js';
import { publishModel } from '../../src/store/models/model-store.js';
import {
  archiveFenceKey,
  eventIdsKey,
  itemTracesKey,
  journalKey,
  learnerKey,
  outboxKey,
  parkedKey,
  partitionOf,
} from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createAnswerArchive } from '../../src/warehouse/maintenance/answer-archive.js';
import { createStoredRows } from '../../src/warehouse/reads/stored-rows.js';
import { awayFromMidnight } from '../support/builders/day.js';
import { askInTurn, erasureDone, takeBack } from '../support/builders/learner-data.js';
import { drawSkills, seeded } from '../support/builders/random.js';
import { auditsOf } from '../support/commands/audits.js';
import { runCommand } from '../support/commands/command.js';
import { type Caller, callerOf, outcomeOf } from '../support/http/http.js';
import { tablesThatSay } from '../support/inspect/traces.js';
import { isLongForm } from '../support/runner/long-form.js';
import { clickhouseOf, keysOf, redisOf, startService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';
import { askUntil, emptied } from '../support/wait.js';

const service = await startService({ after });
const redis = (await redisOf({ after }, service.redisUrl)) as Redis;
const clickhouse = clickhouseOf({ after }, service);
const keys = await keysOf({ after }, service);
const random = seeded(20_261_122);
const below = (n: number): number => Math.floor(n * random());

type Event = Readonly<Record<string, unknown>>;

/** A learner under test, and the caller of its tenant. */
interface Learner {
  readonly tenant: string;
  readonly userId: string;
  readonly partition: number;
  readonly caller: Caller;
}
const learnerIn = async (tenant: string, userId: string): Promise<Learner> => {
  const key = tenant === 'default' ? service.key : await keys.add({ tenant });
  return { tenant, userId, partition: partitionOf(tenant, userId, 16), caller: callerOf(service, key) };
};
const learnerOf = (userId: string): Promise<Learner> => learnerIn('default', userId);

async function track({ caller }: Learner, events: readonly Event[]): Promise<void> {
  const { status, text } = await caller.trackAll(events);
  assert.equal(status, 200, text);
}
const retract = ({ caller, userId }: Learner, eventId: unknown) => takeBack(caller, userId, `${eventId}`);
async function retracted(learner: Learner, eventId: unknown): Promise<void> {
  const { status, text } = await retract(learner, eventId);
  assert.equal(status, 200, text);
}
const erase = ({ caller, userId }: Learner) => caller.send('DELETE', `/api/v1/learners/${userId}`);
const drained = ({ partition }: Learner) => emptied(redis, outboxKey(partition));
const journalDrained = ({ partition }: Learner) => emptied(redis, journalKey(partition));

const select = <Row>({ tenant, userId }: Learner, query: string): Promise<Row[]> =>
  selectRows<Row>(clickhouse, query, { params: { tenant, userId } });
const ofLearner = 'tenant = {tenant:String} AND user_id = {userId:String}';

const eventsOf = ({ userId }: Learner, count: number, name = 'e'): Event[] =>
  indices(count).map((i) => ({
    ...{ user_id: userId, skill_id: `skill ${i % 2}`, is_correct: i % 3 > 0, event_id: `${name}${i}` },
    ...{ item_id: `item ${name} ${i}`, time_spent_seconds: 20 + i },
  }));

const skills = indices(6).map((i) => `skill \\ ${i}`);

/** Batches share no items: a lane reads the facts of an item from other learners again after a while. */
function randomEvent(userId: string, batch: number, i: number): Event {
  return {
    user_id: userId,
    ...drawSkills(skills, random),
    event_id: `event/${batch} ${i}`,
    is_correct: random() < 0.55,
    time_spent_seconds: [null, 2, 25, 90, 3000][below(5)],
    confidence_score: [null, 1, 4, 5][below(4)],
    question_difficulty: [null, -1.25, 0.5, 2][below(4)],
    item_id: random() < 0.2 ? null : `item ${batch}/${below(45)}`,
    occurred_at: new Date(Date.UTC(2026, 2, 1 + 3 * batch + below(4), below(24), i % 60)).toISOString(),
  };
}
const randomHistory = (userId: string, sizes: readonly number[]): Event[][] =>
  sizes.map((size, batch) => indices(size).map((i) => randomEvent(userId, batch, i)));

/** Event ids of the stored rows. Asserts that rows have no gaps, and that rollups and Redis count the same answers. */
async function storedIds(learner: Learner): Promise<string[]> {
  const rows = await select<{ id: string; seq: number; days: number }>(
    learner,
    `SELECT event_id AS id, learner_seq AS seq,
      toUInt32((SELECT sum(attempts) FROM learner_skill_daily WHERE ${ofLearner})) AS days
     FROM attempts WHERE ${ofLearner} ORDER BY learner_seq`,
  );
  assert.deepEqual(
    rows.map(({ seq, days }) => [seq, days]),
    rows.map((_, i) => [i + 1, rows.length]),
  );
  const { json } = await learner.caller.get(`/api/v1/mastery/${learner.userId}`);
  assert.equal(computeSum(valuesOf(json.data?.skills ?? [], 'total_attempts')), rows.length);
  return rows.map(({ id }) => id);
}

const retractedIds = async (learner: Learner): Promise<string[]> => {
  const query = `SELECT event_id AS id FROM taken_back FINAL WHERE ${ofLearner} ORDER BY taken_back_at`;
  return (await select<{ id: string }>(learner, query)).map(({ id }) => id);
};

/** Sums of doubles in another order differ in their last bits. */
const roundDoubles = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_, one) => (typeof one === 'number' ? Number(one.toPrecision(12)) : one)),
  );

/** All records of a learner in Redis, except the version, which starts at random. */
async function recordsOf({ tenant, userId, partition }: Learner): Promise<object> {
  const fieldsOf = async (key: string): Promise<unknown> =>
    Object.entries(await redis.hgetallBuffer(key))
      .filter(([field]) => field !== 'L')
      .map(([field, value]) => [Buffer.from(field).toString('hex'), value.toString('hex')])
      .sort();
  const key = learnerKey(partition, tenant, userId);
  const state = await redis.hgetBuffer(key, 'L');
  return {
    learner: state && roundDoubles({ ...decodeLearner(state), version: 0 }),
    skills: await fieldsOf(key),
    items: await Promise.all(
      [0, 1].map((parity) => fieldsOf(itemTracesKey(partition, parity, tenant, userId))),
    ),
  };
}

async function rowsOf(learner: Learner): Promise<unknown> {
  const queries = [
    `SELECT * EXCEPT (tenant, received_at, partition_id, outbox_ms, outbox_seq, learner_version)
     FROM attempts WHERE ${ofLearner} ORDER BY learner_seq`,
    `SELECT skill_id, toString(day) AS day, sum(attempts) AS attempts, sum(correct) AS correct
     FROM learner_sums WHERE ${ofLearner} AND kind = 'day' GROUP BY skill_id, day ORDER BY skill_id, day`,
    `SELECT skill_id, attempts, correct, active_days, last_day FROM learner_skill_total
     WHERE ${ofLearner} ORDER BY skill_id`,
    `SELECT skill_id, toString(day) AS day, attempts, correct, learners FROM skill_daily
     WHERE tenant = {tenant:String} ORDER BY skill_id, day`,
  ];
  return roundDoubles(await Promise.all(queries.map((query) => select<object>(learner, query))));
}

/** Responses of the API, without fields that depend on the time of the request. */
async function responsesOf({ caller, userId }: Learner): Promise<unknown> {
  const paths = [`mastery/${userId}`, `predictions/${userId}`, `learners/${userId}/attempts?limit=1000`];
  const answers = await Promise.all(paths.map((path) => askInTurn(() => caller.get(`/api/v1/${path}`))));
  const isTimed = (name: string) => /^(received_at|mastery|goal_probability)$/.test(name);
  const bodies = answers.map(({ status, json }) => ({ status, data: json.data }));
  return JSON.parse(JSON.stringify(bodies, (name, value) => (isTimed(name) ? undefined : value)));
}

interface Comparison {
  readonly name: string;
  /** Answers per batch. */
  readonly sizes: readonly number[];
  /** `batch/answer`, both from 0. */
  readonly retractions: readonly string[];
  /** Whether rows are stored in ClickHouse before the retraction; null: in both ways, in the long form only. */
  readonly isStored: boolean | null;
}
const long = [1, 30, 35, 1, 32, 28];
const comparisons: readonly Comparison[] = [
  { name: 'the first answer', sizes: long, retractions: ['0/0'], isStored: true },
  { name: 'an answer in the middle', sizes: long, retractions: ['2/16'], isStored: false },
  { name: 'the last answer', sizes: long, retractions: ['5/27'], isStored: null },
  { name: 'a last answer with a separate commit', sizes: [...long, 1], retractions: ['6/0'], isStored: true },
  { name: 'an answer before the baseline', sizes: [12, 30], retractions: ['0/5'], isStored: false },
  { name: 'two answers', sizes: long, retractions: ['4/3', '1/29'], isStored: true },
];

/**
 * Compares a learner with retractions to another one that never gave these answers, before and after the last batch of the
 * history.
 */
async function compare(
  name: string,
  retractions: readonly string[],
  history: readonly Event[][],
  isStored: boolean,
): Promise<void> {
  await awayFromMidnight();
  const first = await learnerIn(`${name}-with`, 'learner');
  const second = await learnerIn(`${name}-without`, 'learner');
  const further = history.at(-1) ?? [];
  for (const [batch, events] of history.slice(0, -1).entries()) {
    await track(first, events);
    const others = events.filter((_, i) => !retractions.includes(`${batch}/${i}`));
    if (others.length > 0) await track(second, others);
  }
  if (isStored) await drained(first);
  for (const position of retractions) {
    const [batch = 0, i = 0] = position.split('/').map(Number);
    const event = history[batch]?.[i];
    const { status, json, text } = await retract(first, event?.event_id);
    const [firstSkill] = (event?.skill_ids ?? [event?.skill_id]) as unknown[];
    assert.deepEqual([status, json.data?.skill_id], [200, firstSkill], text);
  }
  assert.deepEqual(await recordsOf(first), await recordsOf(second));
  assert.deepEqual(await responsesOf(first), await responsesOf(second));
  for (const each of [first, second]) await track(each, further);
  for (const each of [first, second]) await drained(each);
  assert.deepEqual(await recordsOf(first), await recordsOf(second), 'further answers lead to other records');
  assert.deepEqual(await rowsOf(first), await rowsOf(second));
}

/** p_init of the fitted parameters. */
const pInit = 0.45;

async function publishFit(tenant: string): Promise<void> {
  const fitted: SkillModel = {
    ...resolveSkillModel(unfittedModel, 'any'),
    parameters: { pInit, pLearn: 0.3, pGuess: 0.15, pSlip: 0.08, pForget: 0 },
    ...{ source: 'fitted', version: 1, fittedAt: '2026-01-15T12:00:00.000Z', learners: 230, answers: 4100 },
    difficultyMean: 0,
    times: { answers: 4000, meanSeconds: 60, logMean: Math.log(50), logM2: 900, correct: 3000 },
  };
  const skills = new Map(['skill 0', 'skill 1'].map((id) => [id, fitted]));
  const model = encodeModel({ ...unfittedModel, version: 1, fittedAt: fitted.fittedAt, skills });
  const publication = { tenant, version: 1, basedOn: 0, publishedAt: Date.now(), report: '{}', items: null };
  assert.ok(await publishModel(redis, { ...publication, model }));
}

/** A lane looks for new models now and then: other learners of the partition show when it has the model. */
async function countsWithFit({ caller, tenant, partition }: Learner): Promise<void> {
  let tried = 0;
  const nextLearner = (): string => {
    do tried += 1;
    while (partitionOf(tenant, `other ${tried}`, 16) !== partition);
    return `other ${tried}`;
  };
  await askUntil(
    'the model',
    () => caller.track({ user_id: nextLearner(), skill_id: 'skill 0', is_correct: true }),
    ({ json }) => json.data?.mastery_before === pInit,
  );
}

// Most of the time is waiting. ClickHouse reads of at most four callers are served at a time.
describe('DELETE /learners/{user_id}/attempts/{event_id}', { concurrency: 3 }, () => {
  for (const [i, { name, sizes, retractions, isStored }] of comparisons.entries()) {
    const variants = isLongForm ? [true, false] : [isStored].filter((one) => one !== null);
    for (const variant of variants) {
      const history = randomHistory('learner', [...sizes, 20]);
      test(`leaves no trace of ${name}, ${variant ? 'stored' : 'possibly pending'}`, () =>
        compare(`case-${i}-${variant}`, retractions, history, variant));
    }
  }

  test('removes the only answer with the learner, keeps the goal, and keeps the event id reserved', async () => {
    const learner = await learnerIn('only', 'one');
    const [event = {}] = eventsOf(learner, 1);
    const { caller } = learner;
    assert.equal((await caller.send('PUT', '/api/v1/goals/one', { target_score: 1200 })).status, 200);
    await track(learner, [event]);
    const { status, json } = await retract(learner, 'e0');
    assert.deepEqual([status, json.data.skill, json.data.total_attempts], [200, null, 0]);
    const isUnknown = async () => (await caller.get('/api/v1/mastery/one')).status === 404;
    assert.ok(await isUnknown());
    assert.equal((await caller.get('/api/v1/goals/one')).status, 200);
    const repeated = await caller.track(event);
    assert.deepEqual([repeated.status, repeated.headers['idempotent-replayed']], [200, 'true']);
    assert.ok(await isUnknown());
    const next = await caller.track({ ...event, event_id: 'another' });
    assert.equal(next.json.data.total_attempts, 1);
    await drained(learner);
    assert.deepEqual(await storedIds(learner), ['another']);
    await journalDrained(learner);
    const query = `SELECT event_id AS id FROM taken_back WHERE ${ofLearner} AND first_answer != ''`;
    assert.deepEqual(await select(learner, query), [{ id: 'e0' }]);
  });

  test('retracts each of several answers once when requests are concurrent', async () => {
    const learner = await learnerOf('concurrent');
    const events = eventsOf(learner, 40);
    await track(learner, events);
    const ids = ['e0', 'e17', 'e18', 'e39', 'e39'];
    const later = eventsOf(learner, 20, 'later');
    const [answers] = await Promise.all([
      Promise.all(ids.map((id) => retract(learner, id))),
      track(learner, later),
    ]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 200, 404]);
    for (const id of ['e0', 'never']) assert.equal(outcomeOf(await retract(learner, id)), '404 NOT_FOUND');
    const other = await learnerIn('stranger', 'concurrent');
    assert.equal(outcomeOf(await retract(other, 'e1')), '404 USER_NOT_FOUND');
    await drained(learner);
    const all = [...events, ...later].map(({ event_id }) => event_id as string);
    assert.deepEqual(
      await storedIds(learner),
      all.filter((id) => !ids.includes(id)),
    );
    const again = await learner.caller.trackAll(events);
    assert.ok(again.json.data.results.every(({ replayed }: { replayed: boolean }) => replayed));
  });

  for (const isStored of [true, false]) {
    const name = isStored ? 'stored' : 'pending';
    test(`reserves a ${name} event id until the learner is erased`, async () => {
      const learner = await learnerOf(`erased-${isStored}`);
      const events = eventsOf(learner, 6);
      await track(learner, events);
      await retracted(learner, 'e2');
      if (isStored) await journalDrained(learner);
      const started = await erase(learner);
      assert.equal(started.status, 202);
      await erasureDone(learner.caller, started.json.data.status_url);
      assert.deepEqual(await tablesThatSay(clickhouse, learner.userId), {});
      const { status, headers, json } = await learner.caller.track(events[2]);
      const found = [status, headers['idempotent-replayed'], json.data.total_attempts];
      assert.deepEqual(found, [200, undefined, 1]);
      await drained(learner);
      assert.deepEqual(await storedIds(learner), ['e2']);
    });
  }

  test('retracts an answer of the new history during an erasure', async () => {
    const learner = await learnerOf('begins-anew');
    await track(learner, eventsOf(learner, 8));
    const started = await erase(learner);
    const events = eventsOf(learner, 5, 'new');
    await track(learner, events);
    await retracted(learner, 'new3');
    assert.equal((await retract(learner, 'e1')).json.error.code, 'NOT_FOUND', 'an erased answer is found');
    await erasureDone(learner.caller, started.json.data.status_url);
    await drained(learner);
    await journalDrained(learner);
    assert.deepEqual(await storedIds(learner), ['new0', 'new1', 'new2', 'new4']);
    assert.deepEqual(await retractedIds(learner), ['new3'], 'a rebuild does not know the reserved id');
    const { headers } = await learner.caller.track(events[3]);
    assert.equal(headers['idempotent-replayed'], 'true');
  });

  test('leaves a learner without answers who is erased once a goal is set', async () => {
    const learner = await learnerOf('nothing-left');
    await track(learner, eventsOf(learner, 1));
    await retracted(learner, 'e0');
    await drained(learner);
    assert.equal(outcomeOf(await erase(learner)), '404 USER_NOT_FOUND');
    const goal = await learner.caller.send('PUT', `/api/v1/goals/${learner.userId}`, { target_score: 1200 });
    assert.equal(goal.status, 200);
    const started = await erase(learner);
    assert.equal(started.status, 202);
    await erasureDone(learner.caller, started.json.data.status_url);
    assert.deepEqual(await tablesThatSay(clickhouse, learner.userId), {});
  });

  test('reserves the event id of the same content until the id expires', async () => {
    const learner = await learnerOf('used-again');
    const events = eventsOf(learner, 4);
    await track(learner, events);
    await retracted(learner, 'e1');
    const other = await learner.caller.track({ ...events[1], is_correct: false });
    assert.equal(other.json.error.code, 'IDEMPOTENCY_KEY_REUSED');
    const repeated = await learner.caller.track(events[1]);
    assert.equal(repeated.headers['idempotent-replayed'], 'true');
    const inTwoDays = Math.ceil(Date.now() / 1000) + 2 * 86_400;
    const idsKey = eventIdsKey(learner.partition, 'default', learner.userId);
    assert.equal(await removeExpiredIds(redis, 1, idsKey, inTwoDays), 4);
    const { headers, json } = await learner.caller.track(events[1]);
    assert.deepEqual([headers['idempotent-replayed'], json.data.total_attempts], [undefined, 2]);
    await drained(learner);
    assert.deepEqual(await storedIds(learner), ['e0', 'e2', 'e3', 'e1']);
    await retracted(learner, 'e1');
    await drained(learner);
    await journalDrained(learner);
    assert.deepEqual(await storedIds(learner), ['e0', 'e2', 'e3']);
    assert.deepEqual(await retractedIds(learner), ['e1', 'e1']);
  });

  test('replays answers from before a fit with their own parameters', async () => {
    const learners = [await learnerIn('with', 'fitted'), await learnerIn('without', 'fitted')] as const;
    for (const learner of learners) {
      const events = eventsOf(learner, 12, 'a');
      await track(learner, learner.tenant === 'with' ? events : events.toSpliced(4, 1));
      await publishFit(learner.tenant);
      await countsWithFit(learner);
      await track(learner, eventsOf(learner, 12, 'b'));
    }
    await retracted(learners[0], 'a4');
    for (const learner of learners) await drained(learner);
    const query = `SELECT event_id, learner_seq, parameters_version, p_init, p_learn, mastery_before, mastery_after,
       plateau_detected FROM attempts WHERE ${ofLearner} ORDER BY learner_seq`;
    const [counted, expected] = await Promise.all(
      learners.map((learner) => select<{ parameters_version: number }>(learner, query)),
    );
    assert.deepEqual(counted, expected);
    const versions = new Set(counted?.map(({ parameters_version }) => parameters_version));
    assert.deepEqual([...versions], [0, 1]);
    assert.equal((await storedIds(learners[0])).length, 23);
  });
});

// The fence and the parked rows below concern all learners of a partition, so these tests run one by one.

test('A retraction rewrites parked rows as well as stored ones', async () => {
  // An open erasure in the same partition would keep the parked rows.
  const learner = await learnerOf('refused-once');
  const parked = parkedKey(outboxKey(learner.partition));
  const constraint = 'no CHECK time_spent_seconds IS NULL OR time_spent_seconds != 77';
  await clickhouse.command({ query: `ALTER TABLE attempts ADD CONSTRAINT ${constraint}` });
  const events = eventsOf(learner, 6).map((event, i) =>
    i === 2 || i === 4 ? { ...event, time_spent_seconds: 77 } : event,
  );
  await track(learner, events);
  await drained(learner);
  assert.equal(await redis.xlen(parked), 2);
  await retracted(learner, 'e2');
  await retracted(learner, 'e0');
  await drained(learner);
  assert.equal(await redis.xlen(parked), 1, 'the rewritten row is not parked again');
  await clickhouse.command({ query: 'ALTER TABLE attempts DROP CONSTRAINT no' });
  assert.equal((await redrive(redis, outboxKey(learner.partition))).moved, 1);
  await drained(learner);
  assert.deepEqual(await storedIds(learner), ['e1', 'e3', 'e4', 'e5']);
});

test('A retraction of an answer from an archived month returns 422 TOO_LATE', async () => {
  await awayFromMidnight();
  const learner = await learnerOf('fenced');
  const fence = archiveFenceKey(learner.partition);
  const month = new Date().getUTCFullYear() * 100 + new Date().getUTCMonth() + 1;
  await track(learner, eventsOf(learner, 3));
  await redis.zadd(fence, month, 'month');
  assert.equal(outcomeOf(await retract(learner, 'e1')), '422 TOO_LATE');
  await redis.zadd(fence, month - 1, 'month');
  await retracted(learner, 'e1');
  await redis.del(fence);
  await drained(learner);
  assert.deepEqual(await storedIds(learner), ['e0', 'e2']);
});

test('The audit and npm run rebuild -- --verify find no difference after retractions', async () => {
  const { mismatches, notCompared } = await auditsOf(redis, clickhouse)();
  assert.deepEqual([mismatches, notCompared], [[], []]);
  const env = { DATA_DIR: service.dataDir, REDIS_URL: service.redisUrl };
  const verified = await runCommand('rebuild', env, '--verify', '--json');
  assert.deepEqual([verified.code, verified.err], [0, ''], verified.out);
});

test('A retraction returns 422 if only a snapshot has the answer, and 404 if its row was dropped', async () => {
  const learner = await learnerOf('behind-a-snapshot');
  await track(learner, eventsOf(learner, 4));
  await drained(learner);
  const replay = startReplay(null);
  const { storedRows } = await createStoredRows(clickhouse, (_, work) => work()).readHistory(
    'default',
    learner.userId,
    2,
  );
  for (const row of storedRows.split('\n').slice(0, 2)) replay.add(decodeAttemptRow(row));
  const { tenant, userId, partition } = learner;
  const snapshot = { tenant, userId, partition, learnerSeq: 2, state: encodeSnapshot(replay.states()) };
  await createAnswerArchive(clickhouse).saveSnapshots(202601, [snapshot]);
  await clickhouse.command({ query: `DELETE FROM attempts WHERE user_id = '${userId}' AND learner_seq = 1` });
  assert.equal(outcomeOf(await retract(learner, 'e0')), '404 NOT_FOUND');
  assert.equal(outcomeOf(await retract(learner, 'e1')), '422 TOO_LATE');
  await retracted(learner, 'e2');
  assert.equal(outcomeOf(await retract(learner, 'e3')), '422 TOO_LATE', 'only the snapshot would be left');
});
