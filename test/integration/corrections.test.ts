/** A correction that is cut after any of its steps, and repeated: what is gone is gone and counted once, the rest stays. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Redis } from 'ioredis';
import { hashLearner } from '../../src/contracts/learners/learner-name.js';
import type { PinnedBlock } from '../../src/contracts/outbox/job-data.js';
import { createLogger } from '../../src/logger.js';
import { createCorrectionApplier } from '../../src/services/corrections/apply-corrections.js';
import { createDrain } from '../../src/services/outbox/drain-outbox.js';
import { type CorrectionStore, createCorrectionStore } from '../../src/store/corrections/corrections.js';
import { eraseLearnerScript } from '../../src/store/corrections/erasures.js';
import { createOutbox, type Outbox } from '../../src/store/outbox/outbox.js';
import { erasuresKey, markerKey, outboxKey, removedCountsKey } from '../../src/store/redis/keys.js';
import { createAttemptWarehouse } from '../../src/warehouse/ingest/attempt-warehouse.js';
import {
  type CorrectionWarehouse,
  createCorrectionWarehouse,
} from '../../src/warehouse/maintenance/correction-warehouse.js';
import { attemptRow, encoded, fillOutbox } from '../support/builders/attempt-rows.js';
import { allOnce, countOf, counts, filledTables, testDatabase } from '../support/inspect/warehouse.js';
import { casesOf } from '../support/runner/long-form.js';
import { freshDatabase, startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const partitions = 4;
const all = [0, 1, 2, 3];
const logger = createLogger('silent', 'test');
const cut = () => Promise.reject(new Error('cut here'));

/** Appends the correction of a learner as the request does. */
async function order(redis: Redis, userId: string, id: string): Promise<void> {
  const partition = 1;
  await redis.set(markerKey(partition), '1');
  await redis.hset(`st:{p${partition}}:l:default:${userId}`, 'L', 'x');
  const learner = { v: 1, tenant: 'default', userId };
  const [status] = await eraseLearnerScript(
    redis,
    `st:{p${partition}}`,
    `default:${userId}`,
    id,
    JSON.stringify(learner),
    100,
    hashLearner('default', userId),
    1000,
  );
  assert.equal(status, 'begun');
}

test('a correction cut after each step', { timeout: 600_000 }, async (t) => {
  const [redisUrl, { clickhouseUrl }] = await Promise.all([startTestRedis(t), freshDatabase()]);
  const redis = (await redisOf(t, redisUrl)) as Redis;
  const { client } = await testDatabase(t, clickhouseUrl);
  const outbox = createOutbox(redis, partitions);
  const store = createCorrectionStore(redis);
  const rowsGone = createCorrectionWarehouse(client);

  type Parts = CorrectionStore & CorrectionWarehouse & Pick<Outbox, 'trim'>;
  const drainOnce = (change: Partial<Parts> = {}, batch: PinnedBlock | null = null) => {
    const parts = { ...store, ...rowsGone, ...change };
    const applyCorrections = createCorrectionApplier({ store: parts, warehouse: parts, logger });
    const warehouse = createAttemptWarehouse(client);
    const drain = createDrain({
      outbox: { ...outbox, trim: change.trim ?? outbox.trim },
      warehouse,
      logger,
      applyCorrections,
    });
    const save = async (_: PinnedBlock): Promise<void> => undefined;
    return drain({ partitions: all, batch, save });
  };
  const drained = () =>
    waitFor('an empty outbox', async () => {
      await drainOnce();
      const backlog = await outbox.readBacklog(all);
      return backlog.every(({ length, due }) => length + due === 0);
    });

  // Each of the 500 learners has four answers, on days and skills that others have too.
  await fillOutbox(redis, partitions, 0, 2000);
  await drained();
  assert.deepEqual(await counts(client), allOnce(2000));

  const addRow = (userId: string, learnerSeq: number): Promise<string> => {
    const text = encoded(attemptRow(97, { userId, learnerSeq }));
    return redis.xadd(outboxKey(1), '*', 'r', text) as Promise<string>;
  };
  const removedAnswers = async (): Promise<number> =>
    Object.values(await redis.hgetall(removedCountsKey(1))).reduce((sum, n) => sum + Number(n), 0);
  const afterwards = (work: () => Promise<unknown>) => async () => {
    await work();
    return cut();
  };
  const steps: Readonly<Record<string, Partial<Parts>>> = {
    'before the rows before it leave the outbox': { trim: cut },
    'after they left it': { trim: (...args) => afterwards(() => outbox.trim(...args))() },
    'before it is counted': { countRemovals: cut },
    'after it is planned': { storePlan: (...args) => afterwards(() => store.storePlan(...args))() as never },
    'after refused rows': { removeParkedRows: cut },
    'before rows': { remove: cut },
    'after rows': { remove: (rows) => afterwards(() => rowsGone.remove(rows))() },
    'in the rows': {
      remove: ([rows]) =>
        afterwards(() =>
          client.command({
            query: `DELETE FROM attempts WHERE user_id = '${rows?.userId}' AND tenant = 'default'
              AND (outbox_ms, outbox_seq) < (${rows?.below.ms}, ${rows?.below.seq})`,
          }),
        )(),
    },
    'before the end': { complete: cut },
    'after the end': { complete: (...args) => afterwards(() => store.complete(...args))() },
  };
  let gone = 0;
  for (const [name, change] of casesOf(Object.entries(steps), 3)) {
    const userId = `learner-${1 + 4 * gone}`;
    await order(redis, userId, `erasure-${gone}`);
    gone += 1;
    // What is counted while the correction waits is of the new history.
    await addRow(userId, 1);
    await waitFor(`the cut ${name}`, async () => {
      const failed = await drainOnce(change).then(
        () => false,
        (error: Error) => /cut here/.test(error.message),
      );
      return failed;
    });
    const waits = name === 'before the rows before it leave the outbox' ? 1 : 0;
    assert.equal(await redis.xlen(outboxKey(1)), waits, `what is behind it is stored: ${name}`);
    await drained();
    assert.deepEqual(await counts(client), allOnce(2000 - 3 * gone), name);
    assert.equal(await removedAnswers(), 4 * gone, name);
    const record = JSON.parse((await redis.hget(erasuresKey(1), `erasure-${gone - 1}`)) ?? '{}');
    assert.deepEqual([record.before.attempts, record.plan], [4, undefined], name);
  }

  // A fixed block has a correction in its middle, and holds fewer rows than when it was fixed.
  const from = await addRow('learner-97', 5);
  await order(redis, 'learner-97', 'erasure-in-a-block');
  const to = await addRow('learner-97', 1);
  const ranges = [{ partition: 1, from, to, rows: 3 }];
  await drainOnce({}, { ranges, rows: 3, fixedAt: Date.now(), verify: false });
  await drained();
  const left = 2000 - 3 * gone - 4 + 1;
  assert.deepEqual(await counts(client), allOnce(left));
  assert.equal(await countOf(client, "attempts WHERE user_id = 'learner-97'"), 1);

  const masked = () =>
    countOf(client, 'system.parts WHERE active AND has_lightweight_delete AND database = currentDatabase()');
  // A merge in the background takes masked rows away too. By table: other tests use the server.
  const merges = async (what: 'STOP' | 'START'): Promise<void> => {
    for (const table of filledTables) await client.command({ query: `SYSTEM ${what} MERGES ${table}` });
  };
  await merges('STOP');
  if ((await masked()) > 0) assert.ok((await rowsGone.purge()).length > 0);
  await merges('START');
  await waitFor('deleted rows to leave the disk', async () => (await masked()) === 0);
  assert.deepEqual(await counts(client), allOnce(left));
});
