/** Forecasts of many learners at once, from what is stored in Redis. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type {
  ForecastFailure,
  ForecastOrder,
  ForecastReply,
} from '../../src/contracts/forecasts/forecast-tasks.js';
import { computeConditions } from '../../src/domain/answer/answer-conditions.js';
import { applyAnswer } from '../../src/domain/answer/apply-answer.js';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { defaultSkillSetting } from '../../src/domain/catalogue/catalogue.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { hashQuestionKeys } from '../../src/domain/tracing/course.js';
import {
  type LearnerState,
  newLearner,
  newSkill,
  type SkillState,
} from '../../src/domain/tracing/learner-states.js';
import { writeSkills } from '../../src/store/catalogue/catalogue-store.js';
import { registerSkills } from '../../src/store/catalogue/registered-skills.js';
import { createServedModels } from '../../src/store/catalogue/served-models.js';
import { encodeLearner } from '../../src/store/learners/learner-codec.js';
import { readLearnerStates, readPacked } from '../../src/store/learners/learner-reads.js';
import { encodeSkill } from '../../src/store/learners/skill-codec.js';
import type { RedisClient } from '../../src/store/redis/connection/client.js';
import { catalogueKey, forecastsKey, learnerKey, partitionOf } from '../../src/store/redis/keys.js';
import { openDeployment } from '../../src/store/redis/server/deployment.js';
import { computeForecasts, type ForecastDependencies } from '../../workers/forecast/compute-forecasts.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';

const partitions = 16;
const now = 1_800_000_000_000;

async function connect(t: TestContext): Promise<RedisClient> {
  const client = await redisOf(t, await startTestRedis(t));
  await openDeployment(client, async () => false);
  return client;
}

const placeOf = (tenant: string, userId: string) => ({
  partition: partitionOf(tenant, userId, partitions),
  tenant,
  userId,
});

const keyOf = (tenant: string, userId: string): string =>
  learnerKey(partitionOf(tenant, userId, partitions), tenant, userId);

/** Stores a learner who answered three times on each skill, in turn right and wrong from another start. */
async function store(client: RedisClient, tenant: string, userId: string, skillIds: readonly string[]) {
  let learner: LearnerState = newLearner;
  const skills = new Map<string, SkillState>();
  for (let i = 0; i < 3 * skillIds.length; i++) {
    const skillId = skillIds[i % skillIds.length] as string;
    const asked = hashQuestionKeys(skillId, null);
    const states = {
      keys: asked,
      learner,
      skill: skills.get(skillId) ?? newSkill(defaultParameters),
      item: null,
    };
    const answer = {
      isCorrect: (i + userId.length) % 3 > 0,
      occurredAt: now - 1e6 * (3 * skillIds.length - i),
      questionDifficulty: null,
      timeSpentSeconds: 30,
      confidenceScore: null,
    };
    const effect = applyAnswer(
      states,
      answer,
      computeConditions(unfittedModel, skillId, null, states, answer),
    );
    learner = effect.learner;
    skills.set(skillId, effect.skill);
  }
  const fields = [...skills].flatMap(([skillId, skill]) => [`s${skillId}`, encodeSkill(skill)]);
  await client.hset(keyOf(tenant, userId), 'L', encodeLearner({ ...learner, version: 1 }), ...fields);
  await registerSkills(client, tenant, skillIds);
}

const skillsOf = (count: number): string[] => Array.from({ length: count }, (_, i) => `skill ${i} ä`);

function forecastsOf(t: TestContext, client: RedisClient) {
  const redis = async () => client;
  const models = createServedModels(redis, { error: () => undefined });
  t.after(() => models.close());
  const parts: ForecastDependencies = {
    redis,
    models,
    settings: { partitions, maxPendingForecasts: 1000 },
    now: () => now,
    onLost: (rows, error) => assert.fail(`${rows} forecasts were not noted: ${error}`),
  };
  return async (...orders: ForecastOrder[]) => {
    const reply: ForecastReply = await computeForecasts(parts, {
      kind: 'predictions',
      orders: JSON.stringify(orders),
    });
    // The task does not await its note. Redis answers in order: once this is answered, so is the note, and the end of the
    // test, which disconnects, cannot lose it.
    await client.ping();
    assert.ok('results' in reply);
    return reply;
  };
}

const order = (tenant: string, ...userIds: string[]): ForecastOrder => ({
  tenant,
  userIds,
  days: 30,
  level: 0.8,
  locale: 'en',
});

const outcomeOf = (result: string | null | ForecastFailure): string =>
  result === null
    ? 'nobody'
    : typeof result === 'string'
      ? 'made'
      : result.isTransient
        ? 'passing'
        : 'defect';

test('a task of several tenants and options tells each what a task of its own would', async (t) => {
  const client = await connect(t);
  await store(client, 'a', 'ada', skillsOf(12));
  await store(client, 'a', 'ben-jamin', skillsOf(5));
  await store(client, 'b', 'ada', skillsOf(3));
  await writeSkills(
    client,
    'b',
    [{ skillId: 'skill 0 ä', setting: { ...defaultSkillSetting, section: 'rw' }, ifRevision: null }],
    now,
    { knownSkills: 1000 },
  );
  const predict = forecastsOf(t, client);
  const orders = [
    order('a', 'ada'),
    { ...order('b', 'ada', 'nobody'), days: 90 },
    { ...order('a', 'ada'), level: 0.95 },
    order('a', 'nobody', 'ben-jamin'),
  ];
  const together = await predict(...orders);
  const alone = [];
  for (const one of orders) alone.push(...(await predict(one)).results);
  assert.deepEqual(together.results, alone);
  assert.deepEqual(together.results.map(outcomeOf), ['made', 'made', 'nobody', 'made', 'nobody', 'made']);
  assert.equal(new Set(together.results).size, 5, 'no two of them are alike');
});

test('what was served is noted once for the task, without those who do not exist', async (t) => {
  const client = await connect(t);
  for (const userId of ['x1', 'x2', 'x3']) await store(client, 'a', userId, skillsOf(2));
  await forecastsOf(t, client)(order('a', 'x1'), order('a', 'nobody'), order('a', 'x2', 'x3'));
  const noted = await client.xrange(forecastsKey(partitionOf('a', 'x1', partitions)), '-', '+');
  assert.deepEqual(
    noted.map(([, fields]) => fields[3]?.split('\t').slice(1, 3)),
    [
      ['a', 'x1'],
      ['a', 'x2'],
      ['a', 'x3'],
    ],
  );
});

test('records that cannot be read are the problem of their learner alone', async (t) => {
  const client = await connect(t);
  for (const userId of ['well', 'odd', 'torn', 'aimless']) await store(client, 'a', userId, skillsOf(4));
  await client.set(keyOf('a', 'no hash'), 'x');
  await client.hset(keyOf('a', 'odd'), 'L', Buffer.from([99, 1, 2]));
  await client.hset(keyOf('a', 'torn'), 's skill 0', Buffer.from([1, 2]));
  await client.hset(keyOf('a', 'aimless'), 'G', '{"v":2}');
  const { results } = await forecastsOf(t, client)(
    order('a', 'odd'),
    order('a', 'well'),
    order('a', 'torn'),
    order('a', 'aimless'),
    order('a', 'well', 'no hash'),
  );
  assert.deepEqual(results.map(outcomeOf), ['defect', 'made', 'defect', 'defect', 'made', 'defect']);
  const [odd] = results;
  assert.ok(odd && typeof odd === 'object');
  assert.match(odd.reason, /record format 99/);
});

test('a catalogue that cannot be read is the problem of its tenant alone', async (t) => {
  const client = await connect(t);
  for (const tenant of ['a', 'b']) await store(client, tenant, 'ada', skillsOf(2));
  await writeSkills(client, 'b', [{ skillId: 'x', setting: defaultSkillSetting, ifRevision: null }], now, {
    knownSkills: 1000,
  });
  await client.hset(catalogueKey('b'), 'x', '{"v":99}');
  const { results } = await forecastsOf(t, client)(order('b', 'ada'), order('a', 'ada'));
  assert.deepEqual(results.map(outcomeOf), ['passing', 'made']);
});

test('learners of any size come back whole and in order, however many calls that takes', async (t) => {
  const client = await connect(t);
  const sizes = [1, 900, 3, 2000, 14, 0, 40];
  for (const [i, size] of sizes.entries()) {
    if (size > 0) await store(client, 'a', `learner-${i}`, skillsOf(size));
  }
  const goal = JSON.stringify({ v: 1, updatedAt: 1, targetScore: 1200, targetDate: null });
  for (const i of [4, 5]) await client.hset(keyOf('a', `learner-${i}`), 'G', goal);
  const places = sizes.map((_, i) => placeOf('a', `learner-${i}`));
  const read = (await readPacked(client, places)).map((packed) => packed.unpack());
  assert.deepEqual(
    read.map((found) => found && { ...found, skills: new Map(found.skills) }),
    await Promise.all(places.map((place) => readLearnerStates(client, place))),
  );
  assert.deepEqual(
    read.map((found) => found?.skills.length ?? 0),
    sizes,
  );
});
