/** Alerts of goals: each is told once, by the forecast that callers are served, whatever step a process dies at. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { ForecastOrder } from '../../src/contracts/forecasts/forecast-tasks.js';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { dayMs } from '../../src/domain/base/common.js';
import { newLearner, newSkill } from '../../src/domain/tracing/learner-states.js';
import { ApiError, unavailable } from '../../src/errors.js';
import { createLogger } from '../../src/logger.js';
import { checkGoals } from '../../src/services/goals/check-goals.js';
import { createServedModels } from '../../src/store/catalogue/served-models.js';
import { createErasureStore } from '../../src/store/corrections/erasures.js';
import { createGoalChecks } from '../../src/store/learners/goal-checks.js';
import { createGoalStore, encodeGoal } from '../../src/store/learners/goals.js';
import { encodeLearner } from '../../src/store/learners/learner-codec.js';
import { encodeSkill } from '../../src/store/learners/skill-codec.js';
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
const minute = 60_000;
const start = Date.now();

/** A clock that the test moves, and everything that a run of the job needs. */
async function stage(t: TestContext) {
  const client = await redisOf(t, await startTestRedis(t));
  await openDeployment(client, async () => false);
  const models = createServedModels(async () => client, { error: () => undefined });
  t.after(() => models.close());
  const clock = { now: start };
  const now = () => clock.now;
  const forecasts = {
    ...{ redis: async () => client, models, settings: { partitions, maxPendingForecasts: 1000 }, now },
    onLost: () => assert.fail('a check is no served forecast'),
  };
  const forecast = async (order: ForecastOrder) => {
    const reply = await computeForecasts(forecasts, { kind: 'predictions', orders: JSON.stringify([order]) });
    assert.ok('results' in reply);
    return reply.results.map((result) => {
      if (result === null || typeof result === 'string') return result;
      if (result.isTransient) throw unavailable(result.reason);
      return new Error(result.reason);
    });
  };
  const checks = createGoalChecks(client);
  const ports = { checks, forecaster: { forecast }, now, logger: createLogger('silent', 'test') };
  const goals = createGoalStore(client, partitions);
  return {
    ...{ client, checks, clock },
    run: () => checkGoals(ports, partitions, new AbortController().signal),
    want: (...types: ('goal.reached' | 'goal.at_risk')[]) =>
      client.hset(subscriptionsKey, tenant, ` ${types.join(' ')} `),
    put: (targetScore: number, targetDate: string | null = null) =>
      goals.write({ tenant, userId, setting: { targetScore, targetDate }, ifMatch: null, now: clock.now }),
    /** Gives the learner an ability, and asks for a check as an answer does. */
    stand: async (theta: number) => {
      const learner = {
        ...newLearner,
        version: 1,
        attempts: 60,
        baselineTotal: 990,
        abilities: { ...newLearner.abilities, math: theta, rw: theta },
      };
      const attempts = { attempts: 30, correct: 15, lastAttemptAt: clock.now };
      const skill = encodeSkill({ ...newSkill(defaultParameters), ...attempts });
      await client.hset(learnerKey(partition, tenant, userId), 'L', encodeLearner(learner), 'sa', skill);
      await client.zadd(goalChecksKey(partition), 'LT', clock.now + minute, name);
    },
    nextCheck: async () => {
      const at = await client.zscore(goalChecksKey(partition), name);
      return at === null ? null : Number(at) - clock.now;
    },
    told: async () =>
      (await client.xrange(webhookEventsKey(partition), '-', '+')).map(([, fields]) =>
        JSON.parse(fields[7] ?? ''),
      ),
  };
}

const typesOf = (events: readonly { type: string }[]): string[] => events.map(({ type }) => type);

test('a new goal is told of as it is, and again only after 20 points back', {
  timeout: 60_000,
}, async (t) => {
  const { client, run, want, put, stand, nextCheck, told, clock } = await stage(t);
  await want('goal.reached', 'goal.at_risk');
  await put(1000);
  assert.equal(await nextCheck(), 0);
  await run();
  assert.deepEqual([await told(), await nextCheck()], [[], null], 'nothing before the first answer');
  await stand(0);
  clock.now += minute;
  await run();
  const [event, ...more] = await told();
  assert.deepEqual([event?.type, more, await nextCheck()], ['goal.reached', [], null]);
  const { current_total, predicted_total, goal_probability, ...goal } = event.data;
  assert.deepEqual(goal, { user_id: userId, target_score: 1000, target_date: null });
  assert.ok(current_total >= 1000 && predicted_total >= 1000 && goal_probability > 0.5);
  assert.equal(event.timestamp, new Date(clock.now).toISOString());
  for (const theta of [-3, -3, 0, 0]) {
    clock.now += minute;
    await stand(theta);
    await run();
    assert.equal(await nextCheck(), minute, 'not before it is due');
    clock.now += minute;
    await run();
  }
  const after = await told();
  assert.deepEqual(typesOf(after), ['goal.reached', 'goal.at_risk', 'goal.reached']);
  assert.ok(after[1].data.predicted_total < 1000);
  assert.equal(await client.hlen(goalAlertsKey(partition)), 1);
  assert.deepEqual(await client.keys('st:*:forecasts'), []);
});

test('what held before anybody listened, or before a rebuild, is no news', { timeout: 60_000 }, async (t) => {
  const { client, run, want, put, stand, nextCheck, told, clock } = await stage(t);
  await stand(0);
  await put(1000, new Date(start + 3 * dayMs).toISOString().slice(0, 10));
  const turn = async (theta: number) => {
    await stand(theta);
    clock.now += minute;
    await run();
  };
  await turn(0);
  assert.deepEqual([await nextCheck(), await client.exists(goalAlertsKey(partition))], [dayMs, 0]);
  await want('goal.reached');
  await turn(0);
  await client.del(goalAlertsKey(partition));
  await turn(0);
  assert.deepEqual(await told(), []);
  await turn(-3);
  await turn(0);
  assert.deepEqual(typesOf(await told()), ['goal.reached']);
  // Until its date is over there is a check a day, answers or none.
  for (let day = 0; day < 4; day++) {
    clock.now += dayMs;
    await run();
  }
  assert.equal(await nextCheck(), null);
});

test('a run that dies between its steps loses nothing, and one that comes late writes nothing', {
  timeout: 60_000,
}, async (t) => {
  const { client, checks, run, want, put, stand, told, clock } = await stage(t);
  await want('goal.reached', 'goal.at_risk');
  await stand(0);
  await put(1000);
  const [lost] = await checks.claim(partition, clock.now);
  assert.ok(lost);
  await run();
  assert.deepEqual(await told(), [], 'claimed by another run');
  // An answer of meanwhile: the claimed check may not have seen it.
  await stand(-3);
  clock.now += minute;
  await run();
  assert.deepEqual(typesOf(await told()), ['goal.at_risk']);
  const late = { alerts: { updatedAt: 1, reached: true, atRisk: true }, events: [], nextAt: null };
  const alerts = await client.hgetall(goalAlertsKey(partition));
  await checks.complete(lost, late);
  assert.deepEqual(await client.hgetall(goalAlertsKey(partition)), alerts);
  // Another goal, and an erasure, end what is claimed for the goal before.
  for (const end of [() => put(900), () => createErasureStore(client, partitions).begin(tenant, userId)]) {
    await stand(0);
    clock.now += minute;
    const [claimed] = await checks.claim(partition, clock.now);
    assert.equal(claimed?.userId, userId);
    await end();
    await checks.complete(claimed, late);
    const kept = await client.hget(goalAlertsKey(partition), name);
    assert.ok(kept === null || !JSON.parse(kept).reached, `${kept}`);
  }
  assert.deepEqual([await client.exists(goalChecksKey(partition)), (await told()).length], [0, 1]);
});

test('who has no goal or no answer, and a tenant whose model cannot be read, hold up nobody', {
  timeout: 60_000,
}, async (t) => {
  const { client, run, want, put, stand, told, clock } = await stage(t);
  await want('goal.reached');
  await client.hset(activeModelsKey, 'broken', 7);
  await stand(0);
  await put(1000);
  const inPartition = (of: string): string => {
    for (let i = 0; ; i++) if (partitionOf(of, `${i}`, partitions) === partition) return `${i}`;
  };
  const goal = encodeGoal({ updatedAt: 1, targetScore: 1000, targetDate: null });
  const broken = inPartition('broken');
  await client.hset(learnerKey(partition, 'broken', broken), 'L', encodeLearner(newLearner), 'G', goal);
  const damaged = inPartition('damaged');
  await client.hset(learnerKey(partition, 'damaged', damaged), 'L', 'damaged', 'G', goal);
  for (const other of [`broken:${broken}`, `damaged:${damaged}`, `other:${inPartition('other')}`])
    await client.zadd(goalChecksKey(partition), clock.now - 1, other);
  await assert.rejects(
    run(),
    (error) => error instanceof ApiError && /model of this tenant/.test(error.message),
  );
  assert.deepEqual(typesOf(await told()), ['goal.reached']);
  assert.deepEqual(await client.zrange(goalChecksKey(partition), '0', '-1'), [`!broken:${broken}`]);
});
