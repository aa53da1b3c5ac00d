/** Mastery of a class in one request. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { learnerField } from '../../src/store/learners/learner-codec.js';
import { learnerKey, partitionOf } from '../../src/store/redis/keys.js';
import { callerOf, event, type JsonAnswer } from '../support/http/http.js';
import { keysOf, redisOf, sharedService } from '../support/servers/service.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);
const caller = callerOf(service, service.key);

const ask = (body: object, as = caller): Promise<JsonAnswer> =>
  as.call({ path: '/api/v1/mastery', body: JSON.stringify(body) });
const resultsOf = async (body: object, as = caller) => {
  const { status, json, text } = await ask(body, as);
  assert.equal(status, 200, text);
  return json.data;
};

const people = ['<script>alert(1)</script>', 'שלום', '😀', '__proto__'];
const skills = ['algebra', '__proto__', '10', '"', '😀'];

before(async () => {
  // Expected accuracy changes fast in the first minutes after an answer.
  const occurred_at = new Date(Date.now() - 43_200_000).toISOString();
  const events = people.flatMap((user_id, i) =>
    Array.from({ length: 60 }, (_, n) =>
      // One of them is always right, one never, so that there are mastered skills and plateaus.
      event({ user_id, skill_id: skills[n % 4], is_correct: i === 0 || (i > 1 && n % 3 > 0), occurred_at }),
    ),
  );
  assert.equal((await caller.trackAll(events)).status, 200);
});

interface Skill {
  readonly skill_id: string;
  readonly mastery: number;
  readonly expected_accuracy: number;
  readonly total_attempts: number;
  readonly correct_attempts: number;
  readonly mastered: boolean;
  readonly plateau_detected: boolean;
  readonly last_attempt_at: string;
}
const sum = (some: readonly number[]): number => some.reduce((one, other) => one + other, 0);

/** What the class is to be told of a learner, from what the learner's own call tells. */
const figuresOf = (some: readonly Skill[]) => ({
  total_attempts: sum(some.map((one) => one.total_attempts)),
  correct_attempts: sum(some.map((one) => one.correct_attempts)),
  last_attempt_at:
    some
      .map((one) => one.last_attempt_at)
      .sort()
      .at(-1) ?? null,
  plateaus: some.filter((one) => one.plateau_detected).map((one) => one.skill_id),
  mastered: some.filter((one) => one.mastered).length,
  mastery: Object.fromEntries(some.map((one) => [one.skill_id, one.mastery])),
});

test('each as the call of one learner tells, of all skills or some', async () => {
  for (const skill_ids of [null, skills, ['__proto__', 'never'], ['never']]) {
    const data = await resultsOf({ user_ids: people, skill_ids });
    assert.deepEqual([data.found, data.missing, data.failed], [people.length, 0, 0]);
    for (const [index, user_id] of people.entries()) {
      const { json } = await caller.get(`/api/v1/mastery/${encodeURIComponent(user_id)}`);
      const own = json.data.skills.filter((one: Skill) => skill_ids?.includes(one.skill_id) ?? true);
      const { expected_accuracy, ...figures } = data.results[index].data;
      assert.deepEqual(
        { ...data.results[index], data: figures },
        { index, user_id, status: 200, data: figuresOf(own) },
      );
      assert.deepEqual(Object.keys(expected_accuracy), Object.keys(figures.mastery));
      // Expected accuracy depends on the time since the last answer, and the two reads may be seconds apart.
      for (const one of own)
        assert.ok(Math.abs(expected_accuracy[one.skill_id] - one.expected_accuracy) < 1e-3, one.skill_id);
    }
  }
  const { results } = await resultsOf({ user_ids: people });
  assert.ok(
    results[0].data.mastered > 0 && results[0].data.plateaus.length + results[1].data.plateaus.length > 0,
  );
});

test('500 learners in their order, of which some are unknown, twice there, or cannot be read', async () => {
  const own = Array.from({ length: 497 }, (_, i) => `of-500-${i}`);
  assert.equal((await caller.trackAll(own.map((user_id) => event({ user_id })))).status, 200);
  const torn = 'torn';
  const key = learnerKey(partitionOf(service.tenant, torn, 16), service.tenant, torn);
  await redis.hset(key, learnerField, 'zz');
  const user_ids = [...own, 'nobody', torn, own[0]];
  const { results, ...counts } = await resultsOf({ user_ids });
  assert.deepEqual(counts, { found: 498, missing: 1, failed: 1 });
  const told = results.map(({ user_id }: { readonly user_id: string }) => user_id);
  assert.deepEqual(told, user_ids);
  assert.deepEqual([results[497].status, results[497].error.code], [404, 'USER_NOT_FOUND']);
  assert.deepEqual([results[498].status, results[498].error.code], [500, 'INTERNAL']);
  assert.deepEqual(results[499].data, results[0].data);
  await redis.del(key);
});

test("another tenant's learners are unknown", async () => {
  const other = callerOf(service, await keys.add({ tenant: 'class-other' }));
  const { results } = await resultsOf({ user_ids: people }, other);
  assert.ok(results.every(({ status }: { readonly status: number }) => status === 404));
});

test('what does not fit is refused', async () => {
  const many = (n: number): string[] => Array.from({ length: n }, (_, i) => `${i}`);
  for (const body of [
    ...[{}, { user_ids: [] }, { user_ids: many(501) }, { user_ids: [''] }, { user_ids: 'a' }],
    ...[{ user_ids: null }, { user_ids: ['a'], skill_ids: [] }, { user_ids: ['a'], skill_ids: many(1001) }],
    { user_ids: ['a'], skill_ids: ['\u0000'] },
  ])
    assert.equal((await ask(body)).status, 400, JSON.stringify(body).slice(0, 60));
  const reader = callerOf(service, await keys.add({ scopes: ['write', 'admin'] }));
  assert.equal((await ask({ user_ids: ['a'] }, reader)).status, 403);
});

test('more than 200,000 masteries are refused, and fewer skills are told', async () => {
  const user_id = 'polymath';
  for (const half of [0, 1000]) {
    const events = Array.from({ length: 1000 }, (_, i) =>
      event({ user_id, skill_id: `of-many-${half + i}` }),
    );
    assert.equal((await caller.trackAll(events)).status, 200);
  }
  const user_ids = Array.from({ length: 101 }, () => user_id);
  const { status, json } = await ask({ user_ids });
  assert.deepEqual([status, json.error.code], [422, 'LIMIT_EXCEEDED']);
  assert.match(json.error.message, /fewer learners, or skill_ids/);
  const { results } = await resultsOf({ user_ids, skill_ids: ['of-many-7'] });
  assert.deepEqual(Object.keys(results[100].data.mastery), ['of-many-7']);
});
