/** An answer that is taken back: the learner is as if it had never come, everywhere. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { Redis } from 'ioredis';
import { decodeLearner } from '../../src/store/learners/learner-codec.js';
import { itemTracesKey, learnerKey, outboxKey, partitionOf } from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { awayFromMidnight } from '../support/builders/day.js';
import { askInTurn, takeBack as takeBackAs } from '../support/builders/learner-data.js';
import { seeded } from '../support/builders/random.js';
import { auditsOf } from '../support/commands/audits.js';
import { type Caller, callerOf } from '../support/http/http.js';
import { isLongForm } from '../support/runner/long-form.js';
import { clickhouseOf, keysOf, redisOf, startService } from '../support/servers/service.js';
import { askUntil, waitFor } from '../support/wait.js';

const service = await startService({ after });
const redis = (await redisOf({ after }, service.redisUrl)) as Redis;
const clickhouse = clickhouseOf({ after }, service);
const keys = await keysOf({ after }, service);
const audit = auditsOf(redis, clickhouse);
const random = seeded(20_261_122);
const below = (n: number): number => Math.floor(n * random());

interface Tenant {
  readonly name: string;
  readonly caller: Caller;
}
const tenantOf = async (name: string): Promise<Tenant> => ({
  name,
  caller: callerOf(service, await keys.add({ tenant: name })),
});

type Event = Readonly<Record<string, unknown>>;

/** Items belong to one batch: what is known of an item from others is read again after a while. */
function eventOf(userId: string, batch: number, i: number): Event {
  return {
    user_id: userId,
    skill_id: `skill \\ ${below(6)}`,
    event_id: `event/${batch} ${i}`,
    is_correct: random() < 0.55,
    time_spent_seconds: [null, 2, 25, 90, 3000][below(5)],
    confidence_score: [null, 1, 4, 5][below(4)],
    question_difficulty: [null, -1.25, 0.5, 2][below(4)],
    item_id: random() < 0.2 ? null : `item ${batch}/${below(45)}`,
    occurred_at: new Date(Date.UTC(2026, 2, 1 + 3 * batch + below(4), below(24), i % 60)).toISOString(),
  };
}

const historyOf = (userId: string, sizes: readonly number[]): Event[][] =>
  sizes.map((size, batch) => Array.from({ length: size }, (_, i) => eventOf(userId, batch, i)));

async function send({ caller }: Tenant, batches: readonly (readonly Event[])[]): Promise<void> {
  for (const events of batches) {
    if (events.length === 0) continue;
    const { status, text } = await caller.trackAll(events);
    assert.equal(status, 200, text);
  }
}

const takeBack = ({ caller }: Tenant, userId: string, eventId: unknown) =>
  takeBackAs(caller, userId, `${eventId}`);

const drained = (tenant: Tenant, userId: string) =>
  waitFor(
    'rows in ClickHouse',
    async () => {
      const partition = partitionOf(tenant.name, userId, 16);
      return (await redis.xlen(outboxKey(partition))) === 0;
    },
    300_000,
  );

/** Doubles summed up in another order differ in their last bits. */
const told = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_, one) => (typeof one === 'number' ? Number(one.toPrecision(12)) : one)),
  );

/** All records of a learner; the version begins at random. */
async function recordsOf({ name }: Tenant, userId: string): Promise<object> {
  const partition = partitionOf(name, userId, 16);
  const hash = async (key: string): Promise<Record<string, string>> =>
    Object.fromEntries(
      Object.entries(await redis.hgetallBuffer(key))
        .filter(([field]) => field !== 'L')
        .map(([field, value]) => [Buffer.from(field).toString('hex'), value.toString('hex')]),
    );
  const own = await redis.hgetBuffer(learnerKey(partition, name, userId), 'L');
  const items = [0, 1].map((parity) => hash(itemTracesKey(partition, parity, name, userId)));
  return {
    learner: own && told({ ...decodeLearner(own), version: 0 }),
    skills: await hash(learnerKey(partition, name, userId)),
    items: await Promise.all(items),
  };
}

const rowsOf = async ({ name }: Tenant, userId: string): Promise<unknown> => {
  const query = (select: string) =>
    selectRows<object>(clickhouse, select, { params: { tenant: name, userId } });
  const ofLearner = 'WHERE tenant = {tenant:String} AND user_id = {userId:String}';
  const attempts = await query(
    `SELECT * EXCEPT (tenant, received_at, partition_id, outbox_ms, outbox_seq, learner_version)
     FROM attempts ${ofLearner} ORDER BY learner_seq`,
  );
  const days = await query(
    `SELECT skill_id, toString(day) AS day, sum(attempts) AS attempts, sum(correct) AS correct
     FROM learner_sums ${ofLearner} AND kind = 'day' GROUP BY skill_id, day ORDER BY skill_id, day`,
  );
  const totals = await query(
    `SELECT skill_id, attempts, correct, active_days, last_day FROM learner_skill_total ${ofLearner} ORDER BY skill_id`,
  );
  const skillDays = await query(
    `SELECT skill_id, toString(day) AS day, attempts, correct, learners FROM skill_daily
     WHERE tenant = {tenant:String} ORDER BY skill_id, day`,
  );
  return told({ attempts, days, totals, skillDays });
};

/** What the API tells, without times that pass. @param stored whether what comes from ClickHouse is there */
async function answersOf({ caller }: Tenant, userId: string, stored: boolean) {
  const paths = [
    `/api/v1/mastery/${userId}`,
    `/api/v1/predictions/${userId}`,
    `/api/v1/learners/${userId}/attempts?limit=1000`,
  ];
  const answers = await Promise.all(paths.map((path) => askInTurn(() => caller.get(path))));
  if (stored) answers.push(await velocityOf(caller, userId));
  const moving: number[] = [];
  const lasting = (name: string, value: unknown): unknown => {
    if (/^(received_at|source_lag_seconds|mastery)$/.test(name)) return undefined;
    if (!/^(momentum|goal_probability)$/.test(name) || typeof value !== 'number') return value;
    moving.push(value);
    return 'a number';
  };
  const bodies = answers.map(({ status, json }) => ({ status, data: json.data }));
  return { bodies: JSON.parse(JSON.stringify(bodies, lasting)), moving };
}

/**
 * Both are told alike. A momentum closes today as of now, and what is probable of a goal counts what is forgotten until now: their
 * last digits may move between the two reads.
 */
async function answeredAlike(first: Tenant, second: Tenant, userId: string, stored: boolean): Promise<void> {
  const [one, other] = [await answersOf(first, userId, stored), await answersOf(second, userId, stored)];
  assert.deepEqual(one.bodies, other.bodies);
  for (const [i, figure] of one.moving.entries())
    assert.ok(Math.abs(figure - (other.moving[i] as number)) < 0.00015, `${one.moving}, ${other.moving}`);
}

/** A ClickHouse that is slow for a moment is told of by nulls, and asked again. */
const velocityOf = (caller: Caller, userId: string) =>
  askUntil(
    'velocity with its days',
    () => caller.get(`/api/v1/velocity/${userId}?days=365`),
    ({ json }) => json.data.series !== null,
  );

const noMismatch = async (): Promise<void> => {
  await waitFor('the audit', async () => {
    const { mismatches } = await audit();
    if (mismatches.length > 0) throw new Error(JSON.stringify(mismatches));
    return true;
  });
};

/** Both tenants answer alike, but for what is taken back in the first. */
async function compare(
  name: string,
  history: readonly Event[][],
  further: readonly Event[][],
  taken: readonly (readonly [batch: number, i: number])[],
  stored: boolean,
): Promise<void> {
  await awayFromMidnight();
  const [first, second] = [await tenantOf(`${name}-with`), await tenantOf(`${name}-without`)];
  const userId = 'learner';
  const isTaken = (batch: number, i: number) => taken.some(([b, place]) => b === batch && place === i);
  await send(first, history);
  await send(
    second,
    history.map((events, batch) => events.filter((_, i) => !isTaken(batch, i))),
  );
  if (stored) await drained(first, userId);
  for (const [batch, i] of taken) {
    const event = history[batch]?.[i];
    const { status, json, text } = await takeBack(first, userId, event?.event_id);
    assert.equal(status, 200, text);
    assert.equal(json.data.skill_id, event?.skill_id);
  }
  assert.deepEqual(await recordsOf(first, userId), await recordsOf(second, userId));
  await answeredAlike(first, second, userId, false);
  await send(first, further);
  await send(second, further);
  await drained(first, userId);
  await drained(second, userId);
  assert.deepEqual(await recordsOf(first, userId), await recordsOf(second, userId), 'and it goes on alike');
  assert.deepEqual(await rowsOf(first, userId), await rowsOf(second, userId));
  await answeredAlike(first, second, userId, true);
}

const long = [1, 60, 70, 1, 65, 58];
const cases: Readonly<Record<string, readonly [readonly number[], readonly (readonly [number, number])[]]>> =
  {
    'the first of many': [long, [[0, 0]]],
    'one in the middle': [long, [[2, 33]]],
    'the last': [long, [[5, 57]]],
    'the last, alone in its commit': [[...long, 1], [[6, 0]]],
    'one before the baseline': [[12, 30], [[0, 5]]],
    'two, one after the other': [
      long,
      [
        [4, 3],
        [1, 59],
      ],
    ],
  };
// Each with tenants of its own, and most of it is waiting; four reads of ClickHouse at once are the most that are answered.
// Histories are drawn here, one after the other: they are the same in every run.
describe('with and without', { concurrency: 3 }, () => {
  for (const [i, [name, [sizes, taken]]] of Object.entries(cases).entries()) {
    // In the short form each case is one of the two, by turns.
    for (const stored of isLongForm ? [true, false] : [i % 2 === 0]) {
      const history = historyOf('learner', sizes);
      const further = historyOf('learner', [20]).map((events) =>
        events.map((event, i) => ({ ...event, event_id: `further ${i}`, item_id: null })),
      );
      test(`${name}, ${stored ? 'stored' : 'perhaps on the way'}`, { timeout: 600_000 }, () =>
        compare(`${name.replaceAll(/[ ,]+/g, '-')}-${stored}`, history, further, taken, stored),
      );
    }
  }
});

test('the audit finds nothing in all of them', noMismatch);

test('the only one: nobody is left, the goal stays, and a new history begins', async () => {
  const tenant = await tenantOf('only');
  const [[event]] = historyOf('one', [1]) as [[Event]];
  const goal = await tenant.caller.call({
    method: 'PUT',
    path: '/api/v1/goals/one',
    body: '{"target_score":1200}',
  });
  assert.equal(goal.status, 200);
  assert.equal((await tenant.caller.track(event)).status, 200);
  const { status, json } = await takeBack(tenant, 'one', event.event_id);
  assert.deepEqual([status, json.data.skill, json.data.total_attempts], [200, null, 0]);
  assert.equal((await tenant.caller.get('/api/v1/mastery/one')).status, 404);
  assert.equal((await tenant.caller.get('/api/v1/goals/one')).status, 200);
  const retry = await tenant.caller.track(event);
  assert.deepEqual([retry.status, retry.headers['idempotent-replayed']], [200, 'true'], 'it stays taken');
  assert.equal((await tenant.caller.get('/api/v1/mastery/one')).status, 404);
  const next = await tenant.caller.track({ ...event, event_id: 'another' });
  assert.equal(next.json.data.total_attempts, 1);
  await drained(tenant, 'one');
  const rows = await selectRows<{ event_id: string }>(
    clickhouse,
    "SELECT event_id FROM attempts WHERE tenant = 'only'",
  );
  assert.deepEqual(rows, [{ event_id: 'another' }]);
  await waitFor('the journal', async () => {
    const [found] = await selectRows<{ n: number }>(
      clickhouse,
      "SELECT toUInt32(count()) AS n FROM taken_back WHERE tenant = 'only' AND user_id = 'one' AND first_answer != ''",
    );
    return found?.n === 1;
  });
  await noMismatch();
});

test('twice at once, once more, of nobody, and of another tenant', async () => {
  const [tenant, other] = [await tenantOf('twice'), await tenantOf('stranger')];
  const history = historyOf('u', [30]);
  await send(tenant, history);
  const id = history[0]?.[7]?.event_id;
  assert.equal((await takeBack(other, 'u', id)).json.error.code, 'USER_NOT_FOUND');
  assert.equal((await takeBack(tenant, 'u', 'never')).json.error.code, 'NOT_FOUND');
  const both = await Promise.all([takeBack(tenant, 'u', id), takeBack(tenant, 'u', id)]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 404]);
  assert.equal((await takeBack(tenant, 'u', id)).json.error.code, 'NOT_FOUND');
  const again = await tenant.caller.trackAll(history[0] ?? []);
  assert.ok(again.json.data.results.every(({ replayed }: { replayed: boolean }) => replayed));
  const { json } = await askInTurn(() => tenant.caller.get('/api/v1/learners/u/attempts'));
  assert.equal(json.data.total_attempts, 29);
});

test('while answers keep coming', { timeout: 600_000 }, async () => {
  const tenant = await tenantOf('busy');
  const userId = 'busy';
  const batches = historyOf(
    userId,
    Array.from({ length: 24 }, () => 5),
  );
  await send(tenant, batches.slice(0, 8));
  const wanted = batches.slice(0, 6).map((events) => events[2]?.event_id);
  const answering = send(tenant, batches.slice(8));
  for (const id of wanted) {
    await waitFor('its turn', async () => {
      const { status } = await takeBack(tenant, userId, id);
      assert.ok(status === 200 || status === 503, `${status}`);
      return status === 200;
    });
  }
  await answering;
  await drained(tenant, userId);
  const rows = await selectRows<{ event_id: string; learner_seq: number }>(
    clickhouse,
    "SELECT event_id, learner_seq FROM attempts WHERE tenant = 'busy' ORDER BY learner_seq",
  );
  const ledger = batches.flat().map(({ event_id }) => event_id);
  assert.deepEqual(
    rows.map(({ event_id }) => event_id),
    ledger.filter((id) => !wanted.includes(id as string)),
  );
  assert.deepEqual(
    rows.map(({ learner_seq }) => learner_seq),
    rows.map((_, i) => i + 1),
  );
  const { json } = await tenant.caller.get(`/api/v1/mastery/${userId}`);
  const counted = json.data.skills.reduce(
    (n: number, one: { total_attempts: number }) => n + one.total_attempts,
    0,
  );
  assert.equal(counted, rows.length);
  await noMismatch();
});
