/** Mastery of a class in one request. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { LearnerSkill } from '../../src/client/types.js';
import { computeSum, indices } from '../../src/lists.js';
import { learnerField } from '../../src/store/learners/learner-codec.js';
import { learnerKey, partitionOf } from '../../src/store/redis/keys.js';
import { timeAgo } from '../support/builders/day.js';
import { callerOf, event, type JsonAnswer, outcomeOf } from '../support/http/http.js';
import { redisOf, sharedService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';

const service = await sharedService();
const redis = await redisOf({ after }, service.redisUrl);
const caller = callerOf(service, service.key);

const post = (body: object): Promise<JsonAnswer> => caller.send('POST', '/api/v1/mastery', body);
async function readClass(body: object) {
  const { status, json, text } = await post(body);
  assert.equal(status, 200, text);
  return json.data;
}

const learners = ['<script>alert(1)</script>', 'שלום', '😀', '__proto__'];
const skills = ['algebra', '__proto__', '10', '"', '😀'];

before(async () => {
  // Expected accuracy changes fast in the first minutes after an answer.
  const occurred_at = timeAgo(0.5);
  const events = learners.flatMap((user_id, i) =>
    indices(60).map((n) =>
      // The first learner is always right and the second never, so that there are mastered skills and plateaus.
      event({ user_id, skill_id: skills[n % 4], is_correct: i === 0 || (i > 1 && n % 3 > 0), occurred_at }),
    ),
  );
  assert.equal((await caller.trackAll(events)).status, 200);
});

/** A learner's entry in the class, computed from the learner's own skills. */
function summarize(own: readonly LearnerSkill[]) {
  const times = own.map((one) => one.last_attempt_at).sort();
  return {
    total_attempts: computeSum(own.map((one) => one.total_attempts)),
    correct_attempts: computeSum(own.map((one) => one.correct_attempts)),
    last_attempt_at: times.at(-1) ?? null,
    plateaus: own.filter((one) => one.plateau_detected).map((one) => one.skill_id),
    mastered: own.filter((one) => one.mastered).length,
    mastery: Object.fromEntries(own.map((one) => [one.skill_id, one.mastery])),
  };
}

test('GET and POST mastery count an answer with several skills once, and under each chosen skill', async () => {
  const user_id = 'several-skills';
  await caller.trackAll([
    event({ user_id, skill_id: null, skill_ids: ['a', 'b', 'c'] }),
    event({ user_id, skill_id: null, skill_ids: ['b', 'c'], is_correct: false }),
    event({ user_id, skill_id: 'a' }),
  ]);
  const totalsOf = (data: JsonAnswer['json']) => [data.total_attempts, data.correct_attempts];
  assert.deepEqual(totalsOf((await caller.get(`/api/v1/mastery/${user_id}`)).json.data), [3, 2]);
  const ofClass = async (skill_ids: readonly string[] | null) =>
    totalsOf((await readClass({ user_ids: [user_id], skill_ids })).results[0].data);
  assert.deepEqual(await ofClass(null), [3, 2]);
  assert.deepEqual(await ofClass(['a']), [2, 2]);
  assert.deepEqual(await ofClass(['a', 'b', 'c']), [6, 4]);
});

test('POST mastery returns for each learner what GET mastery returns, of all or chosen skills', async () => {
  let [mastered, plateaus] = [0, 0];
  for (const skill_ids of [null, skills, ['__proto__', 'never'], ['never']]) {
    const data = await readClass({ user_ids: learners, skill_ids });
    assert.deepEqual([data.found, data.missing, data.failed], [learners.length, 0, 0]);
    for (const [index, user_id] of learners.entries()) {
      const { json } = await caller.get(`/api/v1/mastery/${encodeURIComponent(user_id)}`);
      const own = json.data.skills.filter((one: LearnerSkill) => skill_ids?.includes(one.skill_id) ?? true);
      const { expected_accuracy, ...entry } = data.results[index].data;
      const expected = { index, user_id, status: 200, data: summarize(own) };
      assert.deepEqual({ ...data.results[index], data: entry }, expected);
      assert.deepEqual(Object.keys(expected_accuracy), Object.keys(entry.mastery));
      // The reads may be seconds apart, which changes expected accuracy a little.
      for (const one of own)
        assert.ok(Math.abs(expected_accuracy[one.skill_id] - one.expected_accuracy) < 1e-3, one.skill_id);
      mastered += entry.mastered;
      plateaus += entry.plateaus.length;
    }
  }
  assert.ok(mastered > 0 && plateaus > 0, `${mastered} mastered, ${plateaus} plateaus`);
});

test('POST mastery returns 500 learners in order, with a status for unknown and unreadable ones', async () => {
  const own = indices(497).map((i) => `of-500-${i}`);
  assert.equal((await caller.trackAll(own.map((user_id) => event({ user_id })))).status, 200);
  const key = learnerKey(partitionOf(service.tenant, 'damaged', 16), service.tenant, 'damaged');
  await redis.hset(key, learnerField, 'zz');
  const user_ids = [...own, 'nobody', 'damaged', own[0]];
  const { results, ...counts } = await readClass({ user_ids });
  assert.deepEqual(counts, { found: 498, missing: 1, failed: 1 });
  assert.deepEqual(valuesOf(results, 'user_id'), user_ids);
  assert.deepEqual([results[497].status, results[497].error.code], [404, 'USER_NOT_FOUND']);
  assert.deepEqual([results[498].status, results[498].error.code], [500, 'INTERNAL']);
  assert.deepEqual(results[499].data, results[0].data);
  await redis.del(key);
});

test('POST mastery rejects invalid lists of learners and skills with 400', async () => {
  const ids = (n: number): string[] => indices(n).map(String);
  for (const body of [
    ...[{}, { user_ids: [] }, { user_ids: ids(501) }, { user_ids: [''] }, { user_ids: 'a' }],
    ...[{ user_ids: null }, { user_ids: ['a'], skill_ids: [] }, { user_ids: ['a'], skill_ids: ids(1001) }],
    { user_ids: ['a'], skill_ids: ['\u0000'] },
  ])
    assert.equal((await post(body)).status, 400, JSON.stringify(body).slice(0, 60));
});

test('POST mastery rejects more than 200,000 values with 422 and returns chosen skills instead', async () => {
  const user_id = 'polymath';
  for (const first of [0, 1000]) {
    const events = indices(1000).map((i) => event({ user_id, skill_id: `of-many-${first + i}` }));
    assert.equal((await caller.trackAll(events)).status, 200);
  }
  const user_ids = indices(101).map(() => user_id);
  const rejected = await post({ user_ids });
  assert.equal(outcomeOf(rejected), '422 LIMIT_EXCEEDED');
  assert.match(rejected.json.error.message, /fewer user_ids, or limit it with skill_ids/);
  const { results } = await readClass({ user_ids, skill_ids: ['of-many-7'] });
  assert.deepEqual(Object.keys(results[100].data.mastery), ['of-many-7']);
});
