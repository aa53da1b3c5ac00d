/** Many due erasures in one statement, and rows that ClickHouse refuses among those that flow past erasures. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Redis } from 'ioredis';
import type { CorrectedRows } from '../../src/contracts/corrections/corrections.js';
import { createLogger } from '../../src/logger.js';
import {
  createCorrectionApplier,
  selectForStatement,
} from '../../src/services/corrections/apply-corrections.js';
import { createDrain } from '../../src/services/outbox/drain-outbox.js';
import { createCorrectionStore } from '../../src/store/corrections/corrections.js';
import { createErasureStore, type OpenErasure } from '../../src/store/corrections/erasures.js';
import { createOutbox } from '../../src/store/outbox/outbox.js';
import {
  dueErasuresKey,
  erasuresKey,
  maxParkedRows,
  outboxKey,
  parkedKey,
  removedCountsKey,
} from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createAttemptWarehouse } from '../../src/warehouse/ingest/attempt-warehouse.js';
import { createCorrectionWarehouse } from '../../src/warehouse/maintenance/correction-warehouse.js';
import { attemptRow, encoded, encodedRows, fillOutbox } from '../support/builders/attempt-rows.js';
import { allOnce, counts, testDatabase } from '../support/inspect/warehouse.js';
import { freshDatabase, startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

/** What SQL, its parameters or a replaced text could take for their own. */
const oddNames = [
  "o'neil",
  "' OR 1 --",
  'back\\slash\\',
  "\\'",
  'a:b',
  '$$',
  "$&$`$'$1",
  '{user_id:String}',
  '{below_ms:UInt64}',
  "{x:y}', 'z",
  'tenant = {tenant:String} AND user_id = {user_id:String}',
  '%_?',
  '学習者',
  '𝒳\u2028e\u0301',
];
/** They stay: what an odd name could be mistaken for. */
const bystanders = ['$', '$$$$', 'oneil', 'b', 'back\\slash', "'", '1788888888888', 'é', 'learner'];

const limitMs = 240_000;
const below = { ms: 1_788_888_888_888, seq: 0 };
const erased = (userId: string, tenant = 'default'): CorrectedRows => ({
  ...{ tenant, userId, partition: 0, below, fromSeq: 0, goalAt: 0 },
});

test('learners of any name are told apart in one statement', { timeout: 600_000 }, async (t) => {
  const { clickhouseUrl } = await freshDatabase();
  const { client } = await testDatabase(t, clickhouseUrl);
  const learners = [
    ...oddNames.map((userId) => ({ tenant: 'default', userId })),
    ...bystanders.map((userId) => ({ tenant: 'default', userId })),
    { tenant: 'b', userId: oddNames[0] as string },
    { tenant: 'c', userId: oddNames[0] as string },
  ];
  // Each has as many answers as its place tells.
  const rows = learners.flatMap((learner, i) =>
    Array.from({ length: i + 1 }, (_, seq) => attemptRow(i, { ...learner, learnerSeq: seq + 1 })),
  );
  await createAttemptWarehouse(client).insert([encodedRows(rows)], 'token');
  const meant = [...oddNames.map((userId) => erased(userId)), erased(oddNames[0] as string, 'b')];
  const warehouse = createCorrectionWarehouse(client);
  const answersOf = ({ tenant, userId }: CorrectedRows) =>
    rows.filter((row) => row.tenant === tenant && row.userId === userId).length;
  const removals = await warehouse.countRemovals(meant);
  assert.deepEqual(
    removals.map(({ answers, before }) => [Object.values(answers), before.attempts]),
    meant.map((one) => [[answersOf(one)], answersOf(one)]),
  );
  await warehouse.remove(meant);
  const left = await selectRows<{ name: string; n: number }>(
    client,
    "SELECT concat(tenant, ':', user_id) AS name, toUInt32(count()) AS n FROM attempts GROUP BY name ORDER BY n",
  );
  const stay = learners.flatMap(({ tenant, userId }, i) =>
    meant.some((one) => one.tenant === tenant && one.userId === userId)
      ? []
      : { name: `${tenant}:${userId}`, n: i + 1 },
  );
  assert.deepEqual(left, stay);
  assert.deepEqual(await counts(client), { ...allOnce(stay.reduce((sum, { n }) => sum + n, 0)) });
  const proof = await warehouse.countRemaining(meant);
  assert.ok(proof.every((places) => Object.values(places).every((n) => n === 0)));
});

test('no names are too long for a statement', { timeout: 600_000 }, async (t) => {
  const { clickhouseUrl } = await freshDatabase();
  const { client } = await testDatabase(t, clickhouseUrl);
  const warehouse = createCorrectionWarehouse(client);
  const longest = [
    ["'", 52],
    ['学', 40],
    ['𝒳', 128],
  ] as const;
  for (const [letter, length] of longest) {
    const names = Array.from({ length: 100 }, (_, i) => `${i}`.padStart(3, '0') + letter.repeat(length - 3));
    const all = names.map((userId) => ({ rows: erased(userId) }));
    const some = selectForStatement(all).map(({ rows }) => rows);
    assert.equal((await warehouse.countRemovals(some)).length, some.length);
    await warehouse.remove(some);
  }
});

async function refusals(t: TestContext) {
  const [redisUrl, { clickhouseUrl }] = await Promise.all([startTestRedis(t), freshDatabase()]);
  const redis = (await redisOf(t, redisUrl)) as Redis;
  const { client } = await testDatabase(t, clickhouseUrl);
  const outbox = createOutbox(redis, 2);
  const logger = createLogger('fatal', 'test');
  const drain = createDrain({
    outbox,
    warehouse: createAttemptWarehouse(client),
    logger,
    applyCorrections: createCorrectionApplier({
      store: createCorrectionStore(redis),
      warehouse: createCorrectionWarehouse(client),
      logger,
    }),
  });
  const drainOnce = () => drain({ partitions: [0, 1], batch: null, save: async () => undefined });
  const erase = async (i: number): Promise<void> => {
    const id = (await redis.xadd(outboxKey(i % 2), '*', 'c', '')) as string;
    await redis.xdel(outboxKey(i % 2), id);
    const history = { tenant: 'default', userId: `learner-${i}`, correction: id, goalAt: 0, requestedAt: 0 };
    const record = JSON.stringify({ v: 1, ...history, removed: { records: 0, items: 0 } });
    await redis.hset(erasuresKey(i % 2), `e-${id}`, record);
    await redis.xadd(dueErasuresKey(i % 2), id, 'c', `e-${id}`);
  };
  const refuse = (i: number): Promise<string | null> =>
    redis.xadd(outboxKey(1), '*', 'r', encoded(attemptRow(i)).split('\t').with(5, 'perhaps').join('\t'));
  return { redis, client, outbox, drainOnce, erase, refuse };
}

test('a refused row among rows that flow past erasures is parked alone', { timeout: 600_000 }, async (t) => {
  const { redis, client, outbox, drainOnce, erase, refuse } = await refusals(t);
  const drained = () =>
    waitFor(
      'what waits',
      async () => {
        await drainOnce();
        return (await outbox.readBacklog([0, 1])).every(({ length, due }) => length + due === 0);
      },
      limitMs,
    );
  // Erasures before, between and behind the rows, more than a page has; refused rows of before and of after their own.
  await fillOutbox(redis, 2, 0, 1000);
  await drained();
  for (let i = 1; i < 500; i += 2) await erase(i);
  await refuse(1);
  await redis.xadd(outboxKey(1), '*', 'other', 'field');
  await fillOutbox(redis, 2, 1000, 1500);
  await erase(7);
  await refuse(7);
  await erase(9);
  await refuse(9);
  await refuse(11);
  await erase(11);
  await drained();
  // Of odd learners each has one of its three answers, but for the three who were erased again.
  assert.deepEqual(await counts(client), allOnce(3 * 250 + 250 - 3));
  const parked = await redis.xrange(parkedKey(outboxKey(1)), '-', '+');
  assert.equal(parked.length, 4, 'three refused rows of after, and what is no row');
  const removed = Object.values(await redis.hgetall(removedCountsKey(1)));
  assert.equal(
    removed.reduce((sum, n) => sum + Number(n), 0),
    2 * 250 + 3 + 1,
  );
});

test('refused rows of two entries behind an erasure are all parked', { timeout: 600_000 }, async (t) => {
  const { redis, client, outbox, drainOnce, erase, refuse } = await refusals(t);
  await erase(1);
  const good = encoded(attemptRow(3));
  await redis.xadd(outboxKey(1), '*', 'r', `${good}\n${good.split('\t').with(5, 'perhaps').join('\t')}`);
  await refuse(5);
  // As many rows as are stored of the entry before.
  await drainOnce();
  assert.deepEqual(await counts(client), allOnce(1));
  const { outboxLength, parked } = await outbox.facts();
  assert.deepEqual([outboxLength, parked], [0, 2]);
});

test('a refused row that finds no room holds up no erasure but those behind it', {
  timeout: 600_000,
}, async (t) => {
  const { redis, client, outbox, drainOnce, erase, refuse } = await refusals(t);
  await fillOutbox(redis, 2, 0, 6);
  await drainOnce();
  const pipeline = redis.pipeline();
  for (let i = 0; i < maxParkedRows; i++) pipeline.xadd(parkedKey(outboxKey(1)), '*', 'r', 'x');
  await pipeline.exec();
  await erase(0);
  await erase(1);
  await refuse(3);
  await erase(5);
  const ofBefore = async (): Promise<boolean> => {
    await assert.rejects(drainOnce(), /no more rows can be parked of partition 1/);
    return (await counts(client)).rows === 4 && (await outbox.facts()).erasuresDue === 1;
  };
  await waitFor('the erasures before it', ofBefore, limitMs);
  assert.deepEqual(await counts(client), allOnce(4));
  assert.equal((await outbox.facts()).outboxLength, 1);
});

test('an erasure that is due again after a failover is applied again before it is closed', {
  timeout: 600_000,
}, async (t) => {
  const { redis, client, outbox, drainOnce, erase } = await refusals(t);
  const store = createErasureStore(redis, 2);
  const record = async (): Promise<string> => Object.values(await redis.hgetall(erasuresKey(1)))[0] ?? '';
  const only = async (): Promise<OpenErasure> => (await store.open())[0] as OpenErasure;
  const applied = async (): Promise<OpenErasure> => {
    const isApplied = async () => {
      await drainOnce();
      return (await only()).before !== null;
    };
    await waitFor('the erasure in ClickHouse', isApplied, limitMs);
    return only();
  };
  await fillOutbox(redis, 2, 0, 6);
  await drainOnce();
  await erase(1);
  const [entry] = await redis.xrange(dueErasuresKey(1), '-', '+');
  const [id, fields] = entry as [string, string[]];
  await drainOnce();
  const planned = await record();
  assert.ok('plan' in JSON.parse(planned));
  const erasure = await applied();

  // The new master lacks the last step.
  await redis.del(dueErasuresKey(1), removedCountsKey(1));
  await redis.xadd(dueErasuresKey(1), id, ...fields);
  await redis.hset(erasuresKey(1), erasure.id, planned);
  await store.close(erasure, Date.now());
  assert.equal(await record(), planned);

  await store.close(await applied(), Date.now());
  assert.deepEqual([await record(), (await outbox.facts()).erasuresDue], ['', 0]);
  assert.deepEqual(Object.values(await redis.hgetall(removedCountsKey(1))), ['1']);
  assert.deepEqual(await counts(client), allOnce(5));
});
