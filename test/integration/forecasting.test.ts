/** Forecast tasks of the forecast worker, computed from the learners in Redis. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { inspect } from 'node:util';
import type { ForecastFailure, ForecastOrder } from '../../src/contracts/forecasts/forecast-tasks.js';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { defaultSkillSetting } from '../../src/domain/catalogue/catalogue.js';
import { newLearner, newSkill } from '../../src/domain/tracing/learner-states.js';
import { indices } from '../../src/lists.js';
import { writeSkills } from '../../src/store/catalogue/catalogue-store.js';
import { registerSkills } from '../../src/store/catalogue/registered-skills.js';
import { createServedModels } from '../../src/store/catalogue/served-models.js';
import { encodeGoal } from '../../src/store/learners/goals.js';
import { encodeLearner } from '../../src/store/learners/learner-codec.js';
import { readLearnerStates, readPacked } from '../../src/store/learners/learner-reads.js';
import { encodeSkill } from '../../src/store/learners/skill-codec.js';
import { catalogueKey, forecastsKey, learnerKey, partitionOf } from '../../src/store/redis/keys.js';
import { openDeployment } from '../../src/store/redis/server/deployment.js';
import { computeForecasts, type ForecastDependencies } from '../../workers/forecast/compute-forecasts.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const partitions = 16;
const now = 1_800_000_000_000;

const client = await redisOf({ after }, await startTestRedis({ after }));
await openDeployment(client, async () => false);
const redis = async () => client;
const models = createServedModels(redis, { error: () => undefined });
after(() => models.close());
const dependencies: ForecastDependencies = {
  ...{ redis, models, settings: { partitions, maxPendingForecasts: 1000 }, now: () => now },
  onLost: (rows, error) => assert.fail(`${rows} forecasts were lost: ${error}`),
  onStatusLost: (error) => assert.fail(`a status was lost: ${error}`),
};

const predict = (...orders: ForecastOrder[]) => predictWith(dependencies, ...orders);

async function predictWith(dependencies: ForecastDependencies, ...orders: ForecastOrder[]) {
  const task = { kind: 'predictions', orders: JSON.stringify(orders) } as const;
  const reply = await computeForecasts(dependencies, task);
  // The task does not wait for the journal. Redis responds in order, so the journal has been written after this ping.
  await client.ping();
  assert.ok('results' in reply);
  return reply.results;
}

const locationOf = (tenant: string, userId: string) => ({
  partition: partitionOf(tenant, userId, partitions),
  tenant,
  userId,
});
const keyOf = (tenant: string, userId: string): string =>
  learnerKey(partitionOf(tenant, userId, partitions), tenant, userId);

/** Stores a learner with three answers on each skill. */
async function store(tenant: string, userId: string, skillCount: number): Promise<void> {
  const skillIds = indices(skillCount).map((i) => `skill ${i} ä`);
  const learner = { ...newLearner, version: 1, attempts: 3 * skillCount, baselineTotal: 990 };
  const fields = skillIds.flatMap((skillId, i) => {
    const answers = { attempts: 3, correct: (i + userId.length) % 4, lastAttemptAt: now - 1e6 * (i + 1) };
    return [`s${skillId}`, encodeSkill({ ...newSkill(defaultParameters), ...answers })];
  });
  await client.hset(keyOf(tenant, userId), 'L', encodeLearner(learner), ...fields);
  await registerSkills(client, tenant, skillIds);
}

const order = (tenant: string, ...userIds: string[]): ForecastOrder => ({
  ...{ tenant, userIds, days: 30, level: 0.8, locale: 'en' },
});

function outcomeOf(result: string | null | ForecastFailure): string {
  if (result === null) return 'unknown learner';
  if (typeof result === 'string') return 'forecast';
  return result.isTransient ? 'transient failure' : 'defect';
}

test('A forecast task returns for each order what a separate task returns', async () => {
  await store('a', 'ada', 12);
  await store('a', 'ben-jamin', 5);
  await store('b', 'ada', 3);
  const setting = { ...defaultSkillSetting, section: 'rw' as const };
  const write = { skillId: 'skill 0 ä', setting, ifRevision: null };
  await writeSkills(client, 'b', [write], now, { knownSkills: 1000 });
  const orders = [
    order('a', 'ada'),
    { ...order('b', 'ada', 'nobody'), days: 90 },
    { ...order('a', 'ada'), level: 0.95 },
    order('a', 'nobody', 'ben-jamin'),
  ];
  const together = await predict(...orders);
  const separate = [];
  for (const one of orders) separate.push(...(await predict(one)));
  assert.deepEqual(together, separate);
  const outcomes = ['forecast', 'forecast', 'unknown learner', 'forecast', 'unknown learner', 'forecast'];
  assert.deepEqual(together.map(outcomeOf), outcomes);
  assert.equal(new Set(together).size, 5, 'all forecasts differ');
});

test('With a full Redis, a forecast with a new goal status is served and the lost status is reported', async () => {
  await store('full', 'ada', 2);
  const goal = encodeGoal({ updatedAt: 1, targetScore: 1600, targetDate: null });
  await client.hset(keyOf('full', 'ada'), 'G', goal);
  const lost: unknown[] = [];
  const report = { onLost: () => undefined, onStatusLost: (error: unknown) => lost.push(error) };
  await client.config('SET', 'maxmemory', 1);
  const reply = await predictWith({ ...dependencies, ...report }, order('full', 'ada'));
  await waitFor('the report of the lost status', () => lost.length === 1);
  await client.config('SET', 'maxmemory', 0);
  assert.match(JSON.stringify(reply), /unlikely/);
  assert.match(inspect(lost[0]), /OOM/);
  assert.equal(await client.hget(keyOf('full', 'ada'), 'G'), goal);
  await predict(order('full', 'ada'));
  assert.match((await client.hget(keyOf('full', 'ada'), 'G')) ?? '', /"status":"unlikely"/);
});

test('A forecast task writes each served forecast to the journal once', async () => {
  for (const userId of ['x1', 'x2', 'x3']) await store('noted', userId, 2);
  await predict(order('noted', 'x1'), order('noted', 'nobody'), order('noted', 'x2', 'x3'));
  const entries = await client.xrange(forecastsKey(partitionOf('noted', 'x1', partitions)), '-', '+');
  const learners = entries.map(([, fields]) => fields[3]?.split('\t').slice(1, 3).join());
  const noted = learners.filter((name) => name?.startsWith('noted'));
  assert.deepEqual(noted, ['noted,x1', 'noted,x2', 'noted,x3']);
});

test('An unreadable record fails the forecast of its learner only', async () => {
  for (const userId of ['intact', 'format', 'skill', 'goal']) await store('records', userId, 4);
  await client.set(keyOf('records', 'string'), 'x');
  await client.hset(keyOf('records', 'format'), 'L', Buffer.from([99, 1, 2]));
  await client.hset(keyOf('records', 'skill'), 's skill 0', Buffer.from([1, 2]));
  await client.hset(keyOf('records', 'goal'), 'G', '{"v":2}');
  const results = await predict(
    ...['format', 'intact', 'skill', 'goal'].map((userId) => order('records', userId)),
    order('records', 'intact', 'string'),
  );
  assert.deepEqual(results.map(outcomeOf), ['defect', 'forecast', 'defect', 'defect', 'forecast', 'defect']);
  const [format] = results;
  assert.ok(format && typeof format === 'object');
  assert.match(format.reason, /record format 99/);
});

test('An unreadable catalogue fails the forecasts of its tenant only', async () => {
  for (const tenant of ['readable', 'unreadable']) await store(tenant, 'ada', 2);
  const write = { skillId: 'x', setting: defaultSkillSetting, ifRevision: null };
  await writeSkills(client, 'unreadable', [write], now, { knownSkills: 1000 });
  await client.hset(catalogueKey('unreadable'), 'x', '{"v":99}');
  const results = await predict(order('unreadable', 'ada'), order('readable', 'ada'));
  assert.deepEqual(results.map(outcomeOf), ['transient failure', 'forecast']);
});

test('readPacked returns learners of any size completely and in order', async () => {
  const sizes = [1, 900, 3, 2000, 14, 0, 40];
  for (const [i, size] of sizes.entries()) if (size > 0) await store('sizes', `learner-${i}`, size);
  const goal = JSON.stringify({ v: 1, updatedAt: 1, targetScore: 1200, targetDate: null });
  for (const i of [4, 5]) await client.hset(keyOf('sizes', `learner-${i}`), 'G', goal);
  const locations = sizes.map((_, i) => locationOf('sizes', `learner-${i}`));
  const found = (await readPacked(client, locations)).map((packed) => packed.unpack());
  for (const [i, location] of locations.entries()) {
    const { skills = [], ...others } = found[i] ?? {};
    const states = found[i] && { ...others, skills: new Map(skills) };
    assert.deepEqual(states, await readLearnerStates(client, location));
    assert.equal(skills.length, sizes[i]);
  }
});
