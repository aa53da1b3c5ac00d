/** Goal checks: each alert is written once, from the forecast that callers are served, even if a run dies between its steps. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import type { ForecastOrder } from '../../src/contracts/forecasts/forecast-tasks.js';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { dayMs, toUtcDay } from '../../src/domain/base/common.js';
import { newLearner, newSkill } from '../../src/domain/tracing/learner-states.js';
import { unavailable } from '../../src/errors.js';
import { indices } from '../../src/lists.js';
import { createLogger } from '../../src/logger.js';
import { checkGoals } from '../../src/services/goals/check-goals.js';
import { createServedModels } from '../../src/store/catalogue/served-models.js';
import { createErasureStore } from '../../src/store/corrections/erasures.js';
import { createGoalChecks } from '../../src/store/learners/goal-checks.js';
import { createGoalStore, encodeGoal } from '../../src/store/learners/goals.js';
import { encodeLearner } from '../../src/store/learners/learner-codec.js';
import { encodeSkill } from '../../src/store/learners/skill-codec.js';
import { createFactsRestore } from '../../src/store/rebuild/facts-restore.js';
import {
  activeModelsKey,
  goalAlertsKey,
  goalChecksKey,
  learnerKey,
  partitionOf,
  subscriptionsKey,
  webhookEventsKey,
} from '../../src/store/redis/keys.js';
import { openDeployment } from '../../src/store/redis/server/deployment.js';
import { computeForecasts } from '../../workers/forecast/compute-forecasts.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';

const partitions = 16;
const tenant = 'default';
const userId = 'ada: ü';
const name = `${tenant}:${userId}`;
const partition = partitionOf(tenant, userId, partitions);
const minuteMs = 60_000;
const start = Date.now();

let clock = start;
const now = () => clock;
const client = await redisOf({ after }, await startTestRedis({ after }));
const models = createServedModels(async () => client, { error: () => undefined });
after(() => models.close());
const dependencies = {
  ...{ redis: async () => client, models, settings: { partitions, maxPendingForecasts: 1000 }, now },
  onLost: () => assert.fail('a check is no served forecast'),
  onStatusLost: (error: unknown) => assert.fail(`a status was lost: ${error}`),
};

async function forecast(order: ForecastOrder) {
  const task = { kind: 'predictions', orders: JSON.stringify([order]) } as const;
  const reply = await computeForecasts(dependencies, task);
  assert.ok('results' in reply);
  return reply.results.map((result) => {
    if (result === null || typeof result === 'string') return result;
    if (result.isTransient) throw unavailable(result.reason);
    return new Error(result.reason);
  });
}

const checks = createGoalChecks(client);
const ports = { checks, forecaster: { forecast }, now, logger: createLogger('silent', 'test') };
const run = () => checkGoals(ports, partitions, new AbortController().signal);

beforeEach(async () => {
  clock = start;
  await client.flushall();
  await openDeployment(client, async () => false);
});

const subscribe = (...types: ('goal.reached' | 'goal.at_risk')[]) =>
  client.hset(subscriptionsKey, tenant, ` ${types.join(' ')} `);

const setGoal = (targetScore: number, targetDate: string | null = null) =>
  createGoalStore(client, partitions).write({
    ...{ tenant, userId, setting: { targetScore, targetDate }, ifMatch: null, now: clock },
  });

/** Gives the learner an ability and requests a check, like an answer. */
async function setAbility(theta: number): Promise<void> {
  const learner = {
    ...{ ...newLearner, version: 1, attempts: 60, baselineTotal: 990 },
    abilities: { ...newLearner.abilities, math: theta, rw: theta },
    trend: { ...newLearner.trend, share: 0.7 },
    // Without practice, the forecast falls.
    activity: { day: toUtcDay(clock), halfAnswers: newLearner.activity.halfAnswers.map(() => 8) },
  };
  const attempts = { attempts: 30, correct: 15, lastAttemptAt: clock, lastCorrectDay: toUtcDay(clock) };
  const skill = encodeSkill({ ...newSkill(defaultParameters), ...attempts });
  await client.hset(learnerKey(partition, tenant, userId), 'L', encodeLearner(learner), 'sa', skill);
  await client.zadd(goalChecksKey(partition), 'LT', clock + minuteMs, name);
}

/** Changes the ability and runs the check that this requests. */
async function checkWith(theta: number): Promise<void> {
  await setAbility(theta);
  clock += minuteMs;
  await run();
}

/** Milliseconds until the next check. */
async function readNextCheck(): Promise<number | null> {
  const at = await client.zscore(goalChecksKey(partition), name);
  return at === null ? null : Number(at) - clock;
}

async function readEvents() {
  const entries = await client.xrange(webhookEventsKey(partition), '-', '+');
  return entries.map(([, fields]) => JSON.parse(fields[7] ?? ''));
}
const readTypes = async (): Promise<string[]> => (await readEvents()).map(({ type }) => type);

test('A goal check writes an alert once, and again only after the total has come back by 20 points', async () => {
  await subscribe('goal.reached', 'goal.at_risk');
  await setGoal(1000);
  assert.equal(await readNextCheck(), 0);
  await run();
  assert.deepEqual([await readEvents(), await readNextCheck()], [[], null], 'before the first answer');
  await checkWith(0);
  const [event, ...more] = await readEvents();
  assert.deepEqual([event?.type, more, await readNextCheck()], ['goal.reached', [], null]);
  const { current_total, predicted_total, goal_probability, ...goal } = event.data;
  assert.deepEqual(goal, { user_id: userId, target_score: 1000, target_date: null });
  assert.ok(current_total >= 1000 && predicted_total >= 1000 && goal_probability > 0.5);
  assert.equal(event.timestamp, new Date(clock).toISOString());
  for (const theta of [-3, -3, 0, 0]) {
    await setAbility(theta);
    await run();
    assert.equal(await readNextCheck(), minuteMs, 'not before it is due');
    clock += minuteMs;
    await run();
  }
  const [, atRisk] = await readEvents();
  assert.deepEqual(await readTypes(), ['goal.reached', 'goal.at_risk', 'goal.reached']);
  assert.ok(atRisk.data.predicted_total < 1000);
  assert.equal(await client.hlen(goalAlertsKey(partition)), 1);
  assert.deepEqual(await client.keys('st:*:forecasts'), [], 'checks are not in the journal of forecasts');
});

test('A goal check writes no alert for a state from before the subscription or a rebuild', async () => {
  await setAbility(0);
  await setGoal(1000, new Date(start + 3 * dayMs).toISOString().slice(0, 10));
  await checkWith(0);
  assert.deepEqual([await readNextCheck(), await client.exists(goalAlertsKey(partition))], [dayMs, 0]);
  await subscribe('goal.reached');
  await checkWith(0);
  await client.del(goalAlertsKey(partition));
  await checkWith(0);
  assert.deepEqual(await readTypes(), []);
  await checkWith(-3);
  await checkWith(0);
  assert.deepEqual(await readTypes(), ['goal.reached']);
  // A daily check until the target date has passed, even without answers.
  for (let day = 0; day < 4; day++) {
    clock += dayMs;
    await run();
  }
  assert.equal(await readNextCheck(), null);
});

test('A goal check of a dead run is repeated, and its late result is discarded', async () => {
  await subscribe('goal.reached', 'goal.at_risk');
  await setAbility(0);
  await setGoal(1000);
  const [lost] = await checks.claim(partition, clock);
  assert.ok(lost);
  await run();
  assert.deepEqual(await readTypes(), [], 'another run has the claim');
  // An answer after the claim, which the claimed check may not have seen.
  await checkWith(-3);
  assert.deepEqual(await readTypes(), ['goal.at_risk']);
  const late = { alerts: { updatedAt: 1, reached: true, atRisk: true }, events: [], nextAt: null };
  const alerts = await client.hgetall(goalAlertsKey(partition));
  await checks.complete(lost, late);
  assert.deepEqual(await client.hgetall(goalAlertsKey(partition)), alerts);
  // A new goal and an erasure invalidate the claim of the previous goal.
  const erase = () => createErasureStore(client, partitions).begin(tenant, userId, false);
  for (const invalidate of [() => setGoal(900), erase]) {
    await setAbility(0);
    clock += minuteMs;
    const [claimed] = await checks.claim(partition, clock);
    assert.equal(claimed?.userId, userId);
    await invalidate();
    await checks.complete(claimed, late);
    const stored = await client.hget(goalAlertsKey(partition), name);
    assert.ok(stored === null || !JSON.parse(stored).reached, `${stored}`);
  }
  assert.deepEqual([await client.exists(goalChecksKey(partition)), (await readTypes()).length], [0, 1]);
});

test('A run of goal checks continues after unreadable learners, missing goals and unreadable models', async () => {
  await subscribe('goal.reached');
  await client.hset(activeModelsKey, 'broken', 7);
  await setAbility(0);
  await setGoal(1000);
  const isHere = (tenant: string, user: string) => partitionOf(tenant, user, partitions) === partition;
  const findUser = (tenant: string) => `${indices(1000).find((user) => isHere(tenant, `${user}`))}`;
  const goal = encodeGoal({ updatedAt: 1, targetScore: 1000, targetDate: null });
  const records = { broken: encodeLearner(newLearner), damaged: 'damaged', other: null };
  for (const [tenant, record] of Object.entries(records)) {
    const user = findUser(tenant);
    if (record !== null) await client.hset(learnerKey(partition, tenant, user), 'L', record, 'G', goal);
    await client.zadd(goalChecksKey(partition), clock - 1, `${tenant}:${user}`);
  }
  await assert.rejects(run(), { code: 'UNAVAILABLE', message: /model of this tenant/ });
  assert.deepEqual(await readTypes(), ['goal.reached']);
  const left = await client.zrange(goalChecksKey(partition), '0', '-1');
  assert.deepEqual(left, [`!broken:${findUser('broken')}`], 'only the transient failure is checked again');
});

test('A rebuild schedules the daily check of a goal within a day, unless its date is past or missing', async () => {
  const restoredAt = Date.now();
  const restore = async (targetDate: string | null): Promise<string | null> => {
    const goal = { tenant, userId, updatedAt: 1, targetScore: 1000, targetDate };
    await createFactsRestore(client).restoreGoals([goal], [partition], partitions);
    return client.zscore(goalChecksKey(partition), name);
  };
  assert.deepEqual([await restore(null), await restore('2020-01-01')], [null, null]);
  const checkAt = Number(await restore('2099-01-01'));
  assert.ok(checkAt >= restoredAt && checkAt <= Date.now() + dayMs, `${checkAt}`);
});
