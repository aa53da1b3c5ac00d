/** Erasures in the drain: an error after any step, refused rows between them, and names that look like SQL. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import type { Redis } from 'ioredis';
import type { CorrectedRows } from '../../src/contracts/corrections/corrections.js';
import { hashLearner } from '../../src/contracts/learners/learner-name.js';
import type { PinnedBlock } from '../../src/contracts/outbox/job-data.js';
import { computeSum, indices } from '../../src/lists.js';
import { createLogger } from '../../src/logger.js';
import {
  createCorrectionApplier,
  selectForStatement,
} from '../../src/services/corrections/apply-corrections.js';
import { createDrain } from '../../src/services/outbox/drain-outbox.js';
import { type CorrectionStore, createCorrectionStore } from '../../src/store/corrections/corrections.js';
import {
  createErasureStore,
  eraseLearnerScript,
  type OpenErasure,
} from '../../src/store/corrections/erasures.js';
import { createOutbox, type Outbox } from '../../src/store/outbox/outbox.js';
import {
  dueErasuresKey,
  erasuresKey,
  markerKey,
  maxParkedRows,
  outboxKey,
  parkedKey,
  removedCountsKey,
} from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createAttemptWarehouse } from '../../src/warehouse/ingest/attempt-warehouse.js';
import {
  type CorrectionWarehouse,
  createCorrectionWarehouse,
} from '../../src/warehouse/maintenance/correction-warehouse.js';
import { attemptRow, encoded, encodedRows, fillOutbox } from '../support/builders/attempt-rows.js';
import {
  allOnce,
  countOf,
  counts,
  emptyTables,
  fileDatabase,
  filledTables,
} from '../support/inspect/warehouse.js';
import { casesOf } from '../support/runner/long-form.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const partitions = 2;
const all = indices(partitions);
const logger = createLogger('silent', 'test');
const redis = (await redisOf({ after }, await startTestRedis({ after }))) as Redis;
const { client } = await fileDatabase({ after });
const outbox = createOutbox(redis, partitions);
const store = createCorrectionStore(redis);
const warehouse = createCorrectionWarehouse(client);

beforeEach(async () => {
  await redis.flushall();
  await emptyTables(client);
});

type Parts = CorrectionStore & CorrectionWarehouse & Pick<Outbox, 'trim'>;

/** @param change replaces steps of the drain */
function drainOnce(change: Partial<Parts> = {}, batch: PinnedBlock | null = null) {
  const parts = { ...store, ...warehouse, ...change };
  const drain = createDrain({
    outbox: { ...outbox, trim: change.trim ?? outbox.trim },
    warehouse: createAttemptWarehouse(client),
    logger,
    applyCorrections: createCorrectionApplier({ store: parts, warehouse: parts, logger }),
  });
  return drain({ partitions: all, batch, save: async () => undefined });
}
const drained = () =>
  waitFor('an empty outbox', async () => {
    await drainOnce();
    return (await outbox.readBacklog(all)).every(({ length, due }) => length + due === 0);
  });
const addRow = (userId: string, learnerSeq: number): Promise<string> => {
  const text = encoded(attemptRow(97, { userId, learnerSeq }));
  return redis.xadd(outboxKey(1), '*', 'r', text) as Promise<string>;
};
const removedAnswers = async (): Promise<number> =>
  computeSum(Object.values(await redis.hgetall(removedCountsKey(1))).map(Number));

/** Starts an erasure as the endpoint does. */
async function startErasure(userId: string, id: string): Promise<void> {
  await redis.set(markerKey(1), '1');
  await redis.hset(`st:{p1}:l:default:${userId}`, 'L', 'x');
  const record = JSON.stringify({ v: 1, tenant: 'default', userId });
  const hash = hashLearner('default', userId);
  const prefix = 'st:{p1}';
  const [status] = await eraseLearnerScript(
    redis,
    prefix,
    `default:${userId}`,
    id,
    record,
    100,
    hash,
    1000,
    0,
  );
  assert.equal(status, 'begun');
}

/** Stores the record of a due erasure of `learner-i`. */
async function addDueErasure(i: number): Promise<void> {
  const partition = i % partitions;
  const id = (await redis.xadd(outboxKey(partition), '*', 'c', '')) as string;
  await redis.xdel(outboxKey(partition), id);
  const history = { tenant: 'default', userId: `learner-${i}`, correction: id, goalAt: 0, requestedAt: 0 };
  const record = JSON.stringify({ v: 1, ...history, removed: { records: 0, items: 0 } });
  await redis.hset(erasuresKey(partition), `e-${id}`, record);
  await redis.xadd(dueErasuresKey(partition), id, 'c', `e-${id}`);
}

const unparseable = (row: string): string => row.split('\t').with(5, 'perhaps').join('\t');
const addRefusedRow = (i: number): Promise<string | null> =>
  redis.xadd(outboxKey(1), '*', 'r', unparseable(encoded(attemptRow(i))));

const fail = () => Promise.reject(new Error('injected failure'));
const failAfter = async (work: Promise<unknown>) => {
  await work;
  return fail();
};
const steps: Readonly<Record<string, Partial<Parts>>> = {
  'before the trim of earlier rows': { trim: fail },
  'after the trim of earlier rows': { trim: (...args) => failAfter(outbox.trim(...args)) },
  'before the count': { countRemovals: fail },
  'after the plan': { storePlan: (...args) => failAfter(store.storePlan(...args)) as never },
  'before the removal of parked rows': { removeParkedRows: fail },
  'before the removal of rows': { remove: fail },
  'after the removal of rows': { remove: (rows) => failAfter(warehouse.remove(rows)) },
  'during the removal of rows': {
    remove: ([rows]) =>
      failAfter(
        client.command({
          query: `DELETE FROM attempts WHERE user_id = '${rows?.userId}' AND tenant = 'default'
            AND (outbox_ms, outbox_seq) < (${rows?.below.ms}, ${rows?.below.seq})`,
        }),
      ),
  },
  'before the completion': { complete: fail },
  'after the completion': { complete: (...args) => failAfter(store.complete(...args)) },
};

test('The drain removes and counts each answer of an erasure once after an error in one step', async () => {
  // The long form fails in each step, `npm test` in every third. 500 learners have two answers each, on the same days.
  await fillOutbox(redis, partitions, 0, 1000);
  await drained();
  assert.deepEqual(await counts(client), allOnce(1000));
  let erasures = 0;
  for (const [name, change] of casesOf(Object.entries(steps), 3)) {
    const userId = `learner-${1 + 2 * erasures}`;
    const id = `erasure-${erasures}`;
    await startErasure(userId, id);
    erasures += 1;
    // This row belongs to the new history.
    await addRow(userId, 1);
    await waitFor(`the failure ${name}`, () =>
      drainOnce(change).then(
        () => false,
        (error: Error) => error.message === 'injected failure',
      ),
    );
    const pending = name === 'before the trim of earlier rows' ? 1 : 0;
    assert.equal(await redis.xlen(outboxKey(1)), pending, `the new row is not stored: ${name}`);
    await drained();
    assert.deepEqual(await counts(client), allOnce(1000 - erasures), name);
    assert.equal(await removedAnswers(), 2 * erasures, name);
    const record = JSON.parse((await redis.hget(erasuresKey(1), id)) ?? '{}');
    assert.deepEqual([record.before.attempts, record.plan], [2, undefined], name);
  }
});

test('The drain inserts the rest of a pinned block that has an erasure in its middle', async () => {
  const from = await addRow('learner-97', 5);
  await startErasure('learner-97', 'erasure');
  const to = await addRow('learner-97', 1);
  const ranges = [{ partition: 1, from, to, rows: 3 }];
  await drainOnce({}, { ranges, rows: 3, fixedAt: Date.now(), verify: false });
  await drained();
  assert.deepEqual(await counts(client), allOnce(1));
});

test('CorrectionWarehouse purges erased rows from disk', async () => {
  // By table, because other tests use the server. A background merge would remove the masked rows as well.
  const setMerges = async (action: 'STOP' | 'START'): Promise<void> => {
    for (const table of filledTables) await client.command({ query: `SYSTEM ${action} MERGES ${table}` });
  };
  const maskedParts = () =>
    countOf(client, 'system.parts WHERE active AND has_lightweight_delete AND database = currentDatabase()');
  await fillOutbox(redis, partitions, 0, 20);
  await drained();
  await addDueErasure(1);
  await drained();
  await setMerges('STOP');
  if ((await maskedParts()) > 0) assert.ok((await warehouse.purge()).length > 0);
  await setMerges('START');
  await waitFor('deleted rows to leave the disk', async () => (await maskedParts()) === 0);
  assert.deepEqual(await counts(client), allOnce(19));
});

/** Names that SQL, its parameters or a text replacement could misread. */
const oddNames = [
  ...["o'neil", "' OR 1 --", 'back\\slash\\', "\\'", 'a:b', '$$', "$&$`$'$1", '{user_id:String}'],
  ...['{below_ms:UInt64}', "{x:y}', 'z", 'tenant = {tenant:String} AND user_id = {user_id:String}'],
  ...['%_?', '学習者', '𝒳\u2028e\u0301'],
];
/** Names that an odd name could be mistaken for. */
const similarNames = ['$', '$$$$', 'oneil', 'b', 'back\\slash', "'", '1788888888888', 'é', 'learner'];
const erasedRows = (userId: string, tenant = 'default'): CorrectedRows => ({
  ...{ tenant, userId, partition: 0, below: { ms: 1_788_888_888_888, seq: 0 }, fromSeq: 0, goalAt: 0 },
});

test('CorrectionWarehouse removes exactly the rows of the named learners in one statement', async () => {
  const [firstName = ''] = oddNames;
  // Learner i has i + 1 answers.
  const learners = [
    ...[...oddNames, ...similarNames].map((userId) => ({ tenant: 'default', userId })),
    ...['b', 'c'].map((tenant) => ({ tenant, userId: firstName })),
  ].map((learner, i) => ({ ...learner, n: i + 1, isErased: i < oddNames.length || learner.tenant === 'b' }));
  const [erased, kept] = [learners.filter((one) => one.isErased), learners.filter((one) => !one.isErased)];
  const rows = learners.flatMap(({ tenant, userId, n }) =>
    indices(n).map((i) => attemptRow(n, { tenant, userId, learnerSeq: i + 1 })),
  );
  await createAttemptWarehouse(client).insert([encodedRows(rows)], 'token');
  const corrected = erased.map(({ tenant, userId }) => erasedRows(userId, tenant));
  const removals = await warehouse.countRemovals(corrected);
  const removed = removals.map(({ answers, before }) => [...Object.values(answers), before.attempts].join());
  assert.equal(removed.join(' '), erased.map(({ n }) => `${n},${n}`).join(' '));
  await warehouse.remove(corrected);
  const query = `SELECT tenant, user_id AS userId, toUInt32(count()) AS n, false AS isErased FROM attempts
    GROUP BY ALL ORDER BY n`;
  assert.deepEqual(await selectRows(client, query), kept);
  assert.deepEqual(await counts(client), allOnce(computeSum(kept.map(({ n }) => n))));
  const proof = await warehouse.countRemaining(corrected);
  assert.ok(proof.every((places) => Object.values(places).every((n) => n === 0)));
});

test('CorrectionWarehouse accepts statements with the longest names', async () => {
  for (const [letter, length] of Object.entries({ "'": 52, 学: 40, 𝒳: 128 })) {
    const names = indices(100).map((i) => `${i}`.padStart(3, '0') + letter.repeat(length - 3));
    const some = selectForStatement(names.map((userId) => ({ rows: erasedRows(userId) })));
    const rows = some.map((one) => one.rows);
    assert.equal((await warehouse.countRemovals(rows)).length, rows.length);
    await warehouse.remove(rows);
  }
});

test('The drain parks only refused rows when many erasures are due between them', async () => {
  await fillOutbox(redis, partitions, 0, 1000);
  await drained();
  // More erasures than fit in a page.
  for (const i of indices(250)) await addDueErasure(2 * i + 1);
  await addRefusedRow(1);
  await redis.xadd(outboxKey(1), '*', 'other', 'field');
  await fillOutbox(redis, partitions, 1000, 1500);
  for (const i of [7, 9]) {
    await addDueErasure(i);
    await addRefusedRow(i);
  }
  await addRefusedRow(11);
  await addDueErasure(11);
  await drained();
  // Each odd learner keeps one of three answers; the three erased again keep none.
  assert.deepEqual(await counts(client), allOnce(3 * 250 + 250 - 3));
  const parked = await redis.xlen(parkedKey(outboxKey(1)));
  assert.equal(parked, 4, 'three refused rows of new histories, and an entry without a row');
  assert.equal(await removedAnswers(), 2 * 250 + 3 + 1);
});

test('The drain parks the refused rows of two entries behind an erasure', async () => {
  await addDueErasure(1);
  const good = encoded(attemptRow(3));
  await redis.xadd(outboxKey(1), '*', 'r', `${good}\n${unparseable(good)}`);
  await addRefusedRow(5);
  // As many rows as the previous entry stores.
  await drainOnce();
  assert.deepEqual(await counts(client), allOnce(1));
  const { outboxLength, parked } = await outbox.facts();
  assert.deepEqual([outboxLength, parked], [0, 2]);
});

test('The drain applies the erasures before a refused row that cannot be parked', async () => {
  await fillOutbox(redis, partitions, 0, 6);
  await drainOnce();
  const pipeline = redis.pipeline();
  for (const _ of indices(maxParkedRows)) pipeline.xadd(parkedKey(outboxKey(1)), '*', 'r', 'x');
  await pipeline.exec();
  for (const i of [0, 1]) await addDueErasure(i);
  await addRefusedRow(3);
  await addDueErasure(5);
  await waitFor('the erasures before the row', async () => {
    await assert.rejects(drainOnce(), /the limit of parked rows of partition 1 is reached/);
    return (await counts(client)).rows === 4 && (await outbox.facts()).erasuresDue === 1;
  });
  assert.deepEqual(await counts(client), allOnce(4));
  assert.equal((await outbox.facts()).outboxLength, 1);
});

test('The drain applies an erasure again that is due again after a failover', async () => {
  const erasures = createErasureStore(redis, partitions);
  const record = async (): Promise<string> => Object.values(await redis.hgetall(erasuresKey(1)))[0] ?? '';
  const only = async (): Promise<OpenErasure> => (await erasures.open())[0] as OpenErasure;
  const applied = async (): Promise<OpenErasure> => {
    await waitFor('the erasure in ClickHouse', async () => {
      await drainOnce();
      return (await only()).before !== null;
    });
    return only();
  };
  await fillOutbox(redis, partitions, 0, 6);
  await drainOnce();
  await addDueErasure(1);
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
  await erasures.close(erasure, Date.now());
  assert.equal(await record(), planned);

  await erasures.close(await applied(), Date.now());
  assert.deepEqual([await record(), (await outbox.facts()).erasuresDue], ['', 0]);
  assert.equal(await removedAnswers(), 1);
  assert.deepEqual(await counts(client), allOnce(5));
});
