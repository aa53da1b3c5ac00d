/** Answers to questions that need several skills: `skill_ids` in track-answer and track-answers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { indices } from '../../src/lists.js';
import { callerOf, event, type JsonAnswer, outcomeOf } from '../support/http/http.js';
import { sharedService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';

const service = await sharedService();
const caller = callerOf(service, service.key);

const eventOf = (skill_ids: unknown, more: Record<string, unknown> = {}) =>
  event({ skill_id: undefined, skill_ids, ...more });

const postLines = (events: readonly object[]): Promise<JsonAnswer> =>
  caller.call({
    path: '/api/v1/track-answers',
    body: events.map((one) => JSON.stringify(one)).join('\n'),
    headers: { 'Content-Type': 'application/x-ndjson' },
  });

const readSkills = async (userId: unknown) => {
  const { json } = await caller.get(`/api/v1/mastery/${userId}`);
  const entries = json.data.skills.map((skill: Record<string, unknown>) => [
    skill.skill_id,
    [skill.total_attempts, skill.correct_attempts],
  ]);
  return Object.fromEntries(entries);
};

const isReplayed = ({ headers }: JsonAnswer): boolean => headers['idempotent-replayed'] === 'true';

test('track-answer returns the fields of the first skill and lists all skills in the given order', async () => {
  const first = { user_id: 'several' };
  await caller.track(event({ ...first, skill_id: 'algebra' }));
  const { status, json } = await caller.track(eventOf(['geometry', 'algebra'], first));
  assert.equal(status, 200);
  const { skills, recommendation, ...fields } = json.data;
  assert.equal(recommendation, null);
  const [geometry, algebra] = skills;
  assert.deepEqual(geometry, { skill_id: 'geometry', ...fields });
  assert.deepEqual(fields, {
    ...{ mastery_before: 0.3, mastery_after: 0.6927, velocity: 0.3927 },
    ...{ plateau_detected: false, total_attempts: 1, correct_attempts: 1 },
  });
  assert.deepEqual(
    [algebra.skill_id, algebra.mastery_before, algebra.total_attempts],
    ['algebra', 0.6927, 2],
  );
  assert.ok(algebra.mastery_after > 0.6927);
});

test('track-answer blames a wrong answer mostly on the weak skill, and adds nothing for one skill', async () => {
  const of = { user_id: 'blamed' };
  for (const _ of indices(6)) await caller.track(event({ ...of, skill_id: 'strong' }));
  const wrong = await caller.track(eventOf(['strong', 'weak'], { ...of, is_correct: false }));
  const [strong, weak] = valuesOf(wrong.json.data.skills, 'velocity') as [number, number];
  assert.ok(strong < 0 && weak < 0 && weak < 3 * strong, `${strong} ${weak}`);
  const alone = await caller.track(event({ user_id: 'alone', skill_id: 'weak', is_correct: false }));
  assert.ok(!('skills' in alone.json.data) && alone.json.data.velocity < weak);
});

test('track-answers and NDJSON accept skill_ids, and each skill counts the answer once', async () => {
  const of = { user_id: 'counted' };
  const events = [
    eventOf(['a', 'b'], of),
    event({ ...of, skill_id: 'a', is_correct: false }),
    eventOf(['b', 'c', 'a'], { ...of, skill_id: null }),
    event({ ...of, skill_id: 'c', skill_ids: null }),
    eventOf(
      indices(10).map((i) => `d${i}`),
      of,
    ),
  ];
  const batch = await caller.trackAll(events);
  assert.deepEqual(valuesOf(batch.json.data.results, 'status'), [200, 200, 200, 200, 200]);
  const { data } = batch.json.data.results[2];
  assert.deepEqual(valuesOf(data.skills, 'total_attempts'), [2, 1, 3]);
  assert.equal((await postLines(events)).status, 200);
  const { d0, d9, ...counts } = await readSkills('counted');
  assert.deepEqual(
    [counts.a, counts.b, counts.c, d0, d9],
    [
      [6, 4],
      [4, 4],
      [4, 4],
      [2, 2],
      [2, 2],
    ],
  );
  const attempts = await caller.get('/api/v1/learners/counted/attempts');
  assert.equal(attempts.json.data.attempts.length, 10, 'each answer is one row');
});

const [required, absent] = [
  'is required, unless skill_ids is present',
  'must be absent if skill_id is present',
];
/** Changes of a valid event, and the details of the error. */
const invalid: readonly (readonly [Record<string, unknown>, Record<string, string>])[] = [
  [{ skill_id: undefined }, { skill_id: required }],
  [{ skill_id: null, skill_ids: null }, { skill_id: required }],
  [{ skill_ids: ['algebra'] }, { skill_ids: absent }],
  [{ skill_id: null, skill_ids: ['a', 'b', 'a'] }, { skill_ids: 'must not have duplicate items' }],
  [{ skill_id: null, skill_ids: [] }, { skill_ids: 'must not have fewer than 1 items' }],
  [
    { skill_id: null, skill_ids: indices(11).map((i) => `${i}`) },
    { skill_ids: 'must not have more than 10 items' },
  ],
  [{ skill_id: null, skill_ids: 'a' }, { skill_ids: 'must be array' }],
  [
    { skill_id: null, skill_ids: ['a', null, 'b\n'] },
    {
      'skill_ids/1': 'must be string',
      'skill_ids/2': 'must not contain control characters or lone surrogates',
    },
  ],
  [
    { skill_id: null, is_correct: null },
    { is_correct: 'must be boolean', skill_id: required },
  ],
  [
    { skill_ids: ['a'], user_id: undefined },
    { user_id: 'is required', skill_ids: absent },
  ],
];

test('track-answer, track-answers and NDJSON name every problem of skill_id and skill_ids', async () => {
  for (const [change, problems] of invalid) {
    const sent = event(change);
    const expected = Object.entries(problems).map(([path, message]) => ({ path, message }));
    const one = await caller.track(sent);
    assert.equal(outcomeOf(one), '400 INVALID_REQUEST', one.text);
    assert.deepEqual(one.json.error.details, expected);
    const [first] = expected;
    assert.equal(one.json.error.message, `Invalid learning event: ${first?.path} ${first?.message}.`);
    const inBatch = expected.map(({ path, message }) => ({ path: `events/0/${path}`, message }));
    for (const answer of [await caller.trackAll([sent]), await postLines([sent])]) {
      assert.equal(answer.status, 400);
      assert.deepEqual(answer.json.error.details, inBatch);
    }
    assert.equal((await caller.get(`/api/v1/mastery/${sent.user_id}`)).status, 404);
  }
});

test('track-answer treats a list of one skill like skill_id when it compares events', async () => {
  const one = event({ event_id: 'single' });
  const listed = { ...one, skill_id: null, skill_ids: ['algebra'] };
  const first = await caller.track(one);
  const again = await caller.track(listed);
  assert.deepEqual([again.status, isReplayed(again)], [200, true]);
  const { skills, ...fields } = again.json.data;
  assert.deepEqual(fields, first.json.data);
  const { recommendation: _, ...figures } = fields;
  assert.deepEqual(skills, [{ skill_id: 'algebra', ...figures }]);
  assert.deepEqual(await readSkills(one.user_id), { algebra: [1, 1] });
});

test('track-answer ignores the order of skill_ids for a repeated event_id, and keeps the first order', async () => {
  const of = { user_id: 'ordered', event_id: 'e' };
  await caller.track(event({ user_id: 'ordered', skill_id: 'b' }));
  const first = await caller.track(eventOf(['c', 'a', 'b'], of));
  await caller.track(eventOf(['a', 'b', 'c'], { user_id: 'ordered' }));
  for (const order of ['cab', 'abc', 'bca']) {
    const again = await caller.track(eventOf([...order], of));
    assert.deepEqual([again.status, isReplayed(again)], [200, true], order);
    assert.deepEqual(again.json, first.json);
  }
  const batch = await caller.trackAll([eventOf(['b', 'c', 'a'], of)]);
  assert.deepEqual(batch.json.data.results[0].data, first.json.data);
  assert.deepEqual(await readSkills('ordered'), { a: [2, 2], b: [3, 3], c: [2, 2] });
});

test('track-answer returns 422 for a used event_id with other skills', async () => {
  const of = { user_id: 'other-skills', event_id: 'e' };
  await caller.track(eventOf(['a', 'b'], of));
  for (const skills of [['a'], ['a', 'c'], ['a', 'b', 'c']])
    assert.equal(
      outcomeOf(await caller.track(eventOf(skills, of))),
      '422 IDEMPOTENCY_KEY_REUSED',
      `${skills}`,
    );
  assert.deepEqual(await readSkills('other-skills'), { a: [1, 1], b: [1, 1] });
});

test('DELETE attempts takes an answer back from each of its skills', async () => {
  const of = { user_id: 'retracted' };
  await caller.trackAll([
    eventOf(['a', 'b'], { ...of, event_id: 'keep' }),
    eventOf(['b', 'c'], { ...of, event_id: 'remove', is_correct: false }),
  ]);
  assert.equal((await caller.send('DELETE', '/api/v1/learners/retracted/attempts/remove')).status, 200);
  assert.deepEqual(await readSkills('retracted'), { a: [1, 1], b: [1, 1] });
});
