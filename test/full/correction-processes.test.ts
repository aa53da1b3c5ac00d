/** Corrections by processes that are killed or stand still in the middle: what is of the new history stays, and counts add up. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import { createErasureStore } from '../../src/store/corrections/erasures.js';
import {
  dueErasuresKey,
  erasuresKey,
  learnerKey,
  markerKey,
  outboxKey,
  partitionOf,
  removedCountsKey,
} from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { attemptRow, encoded } from '../support/builders/attempt-rows.js';
import { testDatabase } from '../support/inspect/warehouse.js';
import { roundsOf } from '../support/runner/long-form.js';
import { freshDatabase, startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const partitions = 4;
const userId = 'learner';
const partition = partitionOf('default', userId, partitions);
const answersBefore = 30;
const answersAfter = 7;
const rounds = roundsOf(20);
const limitMs = 120_000;

const started = async (t: TestContext, redisUrl: string, clickhouseUrl: string): Promise<ChildProcess> => {
  const program = fileURLToPath(new URL('../support/servers/pipeline-process.js', import.meta.url));
  const args = [program, redisUrl, clickhouseUrl, `${partitions}`];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child;
};

test('corrections by several processes', { timeout: 900_000 }, async (t) => {
  const [redisUrl, { clickhouseUrl }] = await Promise.all([startTestRedis(t), freshDatabase()]);
  const redis = (await redisOf(t, redisUrl)) as Redis;
  const { client, url } = await testDatabase(t, clickhouseUrl);
  const erasures = createErasureStore(redis, partitions);
  await redis.set(markerKey(partition), '1');
  let erased = 0;

  /** Answers of the learner, and as many of another one on the same skills and days. */
  async function answer(n: number): Promise<void> {
    const key = learnerKey(partition, 'default', userId);
    await redis.hset(key, 'L', 'state');
    for (let i = 0; i < n; i++) {
      for (const name of [userId, 'other']) {
        const row = attemptRow(i, { userId: name, learnerSeq: i + 1 });
        await redis.xadd(outboxKey(partition), '*', 'r', encoded(row));
      }
    }
  }

  const isDrained = async (): Promise<boolean> =>
    (await redis.xlen(outboxKey(partition))) + (await redis.xlen(dueErasuresKey(partition))) === 0;
  const drained = () => waitFor('an empty outbox', isDrained, limitMs);
  const counts = async () => {
    const [row] = await selectRows<Record<string, number>>(
      client,
      `SELECT toUInt32(countIf(user_id = {userId:String})) AS mine, toUInt32(count()) AS rows,
        toUInt32((SELECT sum(attempts) FROM learner_skill_daily WHERE user_id = {userId:String})) AS days,
        toUInt32((SELECT sum(attempts) FROM learner_skill_daily)) AS learner,
        toUInt32((SELECT sum(attempts) FROM learner_skill_total)) AS totals,
        toUInt32((SELECT sum(attempts) FROM skill_daily)) AS skill FROM attempts`,
      { params: { userId } },
    );
    return row;
  };
  const removed = async (): Promise<number> =>
    Object.values(await redis.hgetall(removedCountsKey(partition))).reduce((sum, n) => sum + Number(n), 0);

  /** Erases what is there, and begins a new history at once. */
  async function erase(): Promise<void> {
    const begun = await erasures.begin('default', userId);
    assert.equal(begun.status, 'begun');
    await answer(answersAfter);
  }

  const isPlanned = async (): Promise<boolean> =>
    (await redis.hvals(erasuresKey(partition))).some((text) => text.includes('"plan"'));

  async function assertErased(others: number): Promise<void> {
    const rows = answersAfter + others;
    const learner = { learner: rows, totals: rows, skill: rows };
    await waitFor('the sums', async () => (await counts())?.mine === answersAfter);
    assert.deepEqual(await counts(), { mine: answersAfter, days: answersAfter, rows, ...learner });
    assert.equal(await removed(), erased);
  }

  let others = 0;
  async function prepare(): Promise<void> {
    const mine = (await counts())?.mine ?? 0;
    await answer(answersBefore);
    others += answersBefore;
    await drained();
    erased += mine + answersBefore;
  }

  /** An erasure that has begun, of answers that were stored before. */
  async function eraseAfresh(): Promise<void> {
    await prepare();
    await erase();
    others += answersAfter;
    await waitFor('the plan', isPlanned);
  }

  await t.test('one that stands still while another does it, and wakes up afterwards', async (t) => {
    for (let round = 0; round < rounds; round++) {
      const sleeper = await started(t, redisUrl, url);
      await eraseAfresh();
      // The steps that delete begin two seconds after the plan and take some tenths of one.
      await sleep(1800 + Math.random() * 900);
      sleeper.kill('SIGSTOP');
      const other = await started(t, redisUrl, url);
      await drained();
      await assertErased(others);
      sleeper.kill('SIGCONT');
      await sleep(3000);
      await assertErased(others);
      for (const one of [sleeper, other]) {
        one.kill('SIGKILL');
        await once(one, 'exit');
      }
    }
  });

  await t.test('processes that are killed at any moment', async (t) => {
    for (let round = 0; round < rounds; round++) {
      let child = await started(t, redisUrl, url);
      await eraseAfresh();
      for (let kills = 0; kills < 2 && !(await isDrained()); kills++) {
        await sleep(kills === 0 ? 1800 + Math.random() * 900 : Math.random() * 3000);
        child.kill('SIGKILL');
        await once(child, 'exit');
        child = await started(t, redisUrl, url);
      }
      await drained();
      await assertErased(others);
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
  });
});
