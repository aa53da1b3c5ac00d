/** What comes late of an erased learner goes as well: from processes that stood still, and from rows that were put aside. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { encodeAttemptRow } from '../../src/contracts/answers/attempt-row.js';
import { encodeForecastRow, encodeGoalRow } from '../../src/contracts/journal/journal.js';
import { hashLearner } from '../../src/contracts/learners/learner-name.js';
import { createLogger } from '../../src/logger.js';
import { createErasureFinisher } from '../../src/services/corrections/erasures.js';
import { createErasureStore } from '../../src/store/corrections/erasures.js';
import { redrive } from '../../src/store/corrections/redrive.js';
import {
  erasedLearnersKey,
  forecastsKey,
  journalKey,
  outboxKey,
  parkedKey,
  partitionOf,
  removedCountsKey,
} from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createCorrectionWarehouse } from '../../src/warehouse/maintenance/correction-warehouse.js';
import { attemptRow } from '../support/builders/attempt-rows.js';
import { servedForecast } from '../support/builders/journal-rows.js';
import { erasureDone } from '../support/builders/learner-data.js';
import { callerOf, event } from '../support/http/http.js';
import { keysThatSay, tablesThatSay } from '../support/inspect/traces.js';
import { clickhouseOf, redisOf, startService } from '../support/servers/service.js';
import { emptied, waitFor } from '../support/wait.js';

const partitions = 16;
const service = await startService({ after });
const caller = callerOf(service, service.key);
const redis = await redisOf({ after }, service.redisUrl);
const clickhouse = clickhouseOf({ after }, service);

const answer = async (userId: string): Promise<void> => {
  assert.equal((await caller.track(event({ user_id: userId }))).status, 200);
};
const setGoal = async (userId: string): Promise<void> => {
  const { status } = await caller.call({
    method: 'PUT',
    path: `/api/v1/goals/${userId}`,
    headers: { 'Content-Type': 'application/json' },
    body: '{"target_score":1200}',
  });
  assert.equal(status, 200);
};
const erase = (userId: string) => caller.call({ method: 'DELETE', path: `/api/v1/learners/${userId}` });
const isDone = (url: string) => erasureDone(caller, url);
const eraseWhole = async (userId: string): Promise<void> => {
  const { status, json } = await erase(userId);
  assert.equal(status, 202);
  await isDone(json.data.status_url);
};
const partitionOfLearner = (userId: string): number => partitionOf('default', userId, partitions);
const assertGone = async (userId: string): Promise<void> => {
  assert.deepEqual(await keysThatSay(redis, userId), []);
  assert.deepEqual(await tablesThatSay(clickhouse, userId), {});
};
const rowsIn = async (table: string, userId: string): Promise<number> => {
  const query = `SELECT toUInt32(count()) AS n FROM ${table} WHERE user_id = {userId:String}`;
  const [row] = await selectRows<{ n: number }>(clickhouse, query, { params: { userId } });
  return row?.n ?? 0;
};

test('goals and forecasts of before that come late are not stored', async () => {
  const userId = 'late-in-the-journal';
  await setGoal(userId);
  await answer(userId);
  const before = Date.now() - 60_000;
  await eraseWhole(userId);
  const after = Date.now() + 3_600_000;
  const forecasts = forecastsKey(partitionOfLearner(userId));
  const goals = journalKey(partitionOfLearner(userId));
  const goal = encodeGoalRow({ tenant: 'default', userId, targetScore: 1000, targetDate: null });
  for (const madeAt of [before, after]) {
    const row = encodeForecastRow(servedForecast({ userId, madeAt }));
    await redis.xadd(forecasts, '*', 'k', 'forecast', 'r', row);
    await redis.xadd(goals, '*', 'k', 'goal', 'r', `${madeAt}\t${goal}`);
  }
  for (const key of [forecasts, goals]) await emptied(redis, key);
  const made = (table: string, time: string) =>
    selectRows<{ at: string }>(
      clickhouse,
      `SELECT toString(toUnixTimestamp64Milli(${time})) AS at FROM ${table} WHERE user_id = {userId:String}`,
      { params: { userId } },
    );
  assert.deepEqual(await made('served_forecasts', 'made_at'), [{ at: `${after}` }]);
  assert.deepEqual(await made('goal_changes', 'updated_at'), [{ at: `${after}` }]);
});

/** Looks for late rows as if so much time had passed. The service looks too, when it is its turn. */
async function lookLater(ms: number): Promise<void> {
  const finish = createErasureFinisher({
    store: createErasureStore(redis, partitions),
    messages: { remove: async () => undefined },
    warehouse: createCorrectionWarehouse(clickhouse),
    logger: createLogger('silent', 'test'),
    now: () => Date.now() + ms,
  });
  await redis.del('st:erased:looked');
  await finish();
}

test('rows that a process brings to ClickHouse after the end are found later', async () => {
  const userId = 'late-in-clickhouse';
  const hash = hashLearner('default', userId);
  const key = erasedLearnersKey(partitionOfLearner(userId));
  const looks = async () => JSON.parse((await redis.hget(key, hash)) ?? '{"looks":"forgotten"}').looks;
  await answer(userId);
  const before = Date.now() - 60_000;
  await eraseWhole(userId);
  await answer(userId);
  await answer('somebody-else');
  const bring = async (): Promise<void> => {
    const learner = { tenant: 'default', user_id: userId };
    const format = 'JSONEachRow';
    const snapshot = { partition_id: 1, learner_seq: 1, month: 202_501, state: '{}' };
    await clickhouse.insert({ table: 'learner_snapshots', format, values: [{ ...learner, ...snapshot }] });
    const forecasts = [before, before + 3_600_000].map((made_at) => ({ ...learner, made_at }));
    await clickhouse.insert({ table: 'served_forecasts', format, values: forecasts });
  };
  const brought = async () => [
    await rowsIn('learner_snapshots', userId),
    await rowsIn('served_forecasts', userId),
  ];
  await bring();
  await lookLater(0);
  assert.deepEqual([await looks(), ...(await brought())], [0, 1, 2], 'not before its time');
  await waitFor('a look', async () => {
    await lookLater(3_600_000);
    return (await looks()) === 1;
  });
  assert.deepEqual(await brought(), [0, 1], 'what was made after the erasure stays');
  await bring();
  await waitFor('the last look', async () => {
    await lookLater(8 * 86_400_000);
    return (await looks()) === 'forgotten';
  });
  assert.equal(await rowsIn('learner_snapshots', userId), 0);
  assert.equal((await caller.get(`/api/v1/mastery/${userId}`)).json.data.skills[0].total_attempts, 1);
});

test('a refused row of before is not put back', async () => {
  const userId = 'late-among-the-parked';
  const outbox = outboxKey(partitionOfLearner(userId));
  await answer(userId);
  await eraseWhole(userId);
  const removed = async (): Promise<number> =>
    Object.values(await redis.hgetall(removedCountsKey(partitionOfLearner(userId)))).reduce(
      (sum, n) => sum + Number(n),
      0,
    );
  const countedOut = await removed();
  const park = (id: string, learnerVersion: number) => {
    const row = attemptRow(1, { userId, learnerVersion });
    const text = encodeAttemptRow(row, row, row);
    return redis.xadd(parkedKey(outbox), '*', 'id', id, 'reason', 'TEST', 'r', text);
  };
  await park('1-0', 1);
  await park('1-1', 0);
  assert.deepEqual(await redrive(redis, outbox), { moved: 0, stayed: 0, erased: 2 });
  assert.equal(await removed(), countedOut + 1, 'the one that had been counted');
  await assertGone(userId);
});

test('a learner who only ever had a goal is erased too', async () => {
  const userId = 'goal-alone';
  await setGoal(userId);
  await waitFor('the goal in ClickHouse', async () => (await rowsIn('goal_changes', userId)) === 1);
  await eraseWhole(userId);
  await assertGone(userId);
  assert.equal((await caller.get(`/api/v1/goals/${userId}`)).json.error?.code, 'GOAL_NOT_FOUND');
  assert.equal((await erase(userId)).status, 404);
});
