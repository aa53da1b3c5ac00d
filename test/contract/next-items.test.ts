/** Next items over HTTP: probabilities, order, limits and errors. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { NextItems } from '../../src/client/types.js';
import { distinct, indices } from '../../src/lists.js';
import { addItemAnswers } from '../../src/store/models/item-store.js';
import { timeAgo } from '../support/builders/day.js';
import { callerOf, event, type JsonAnswer, outcomeOf } from '../support/http/http.js';
import { assertNear } from '../support/near.js';
import { keysOf, redisOf, sharedService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';

const service = await sharedService();
const redis = await redisOf({ after }, service.redisUrl);
const caller = callerOf(service, service.key);

const post = (userId: string, body: unknown, as = caller): Promise<JsonAnswer> =>
  as.send('POST', `/api/v1/next-items/${userId}`, body);

type ChosenItem = NextItems['items'][number];

async function choose(userId: string, body: object): Promise<readonly ChosenItem[]> {
  const { status, json, text } = await post(userId, body);
  assert.equal(status, 200, text);
  assert.equal(json.data.user_id, userId);
  return json.data.items;
}

/** Answers of two days ago by default, so that a few seconds change no probability. */
async function practise(userId: string, answers: readonly Record<string, unknown>[], daysAgo = 2) {
  const occurred_at = timeAgo(daysAgo);
  const events = answers.map((change) => event({ user_id: userId, occurred_at, ...change }));
  assert.equal((await caller.trackAll(events)).status, 200);
}

/**
 * Gives items so many answers that the learner's own answer, which worker threads read up to 30 s later, does not change
 * a probability.
 */
const fixItemDifficulty = (itemIds: readonly string[]): Promise<number> =>
  addItemAnswers(
    redis,
    service.tenant,
    0,
    itemIds.map((itemId) => ({ itemId, answers: 1e7, right: 5e6, expected: 5e6 })),
  );

test('Next items return the p_correct and mastery that an answer given now is counted with', async () => {
  await addItemAnswers(redis, service.tenant, 0, [
    { itemId: 'hard', answers: 200, right: 20, expected: 120 },
    { itemId: 'easy', answers: 200, right: 190, expected: 120 },
  ]);
  const items: readonly Record<string, unknown>[] = [
    { skill_id: 'ratios' },
    { skill_id: 'sums', item_id: 'hard' },
    { skill_id: 'ratios', item_id: 'easy' },
    { skill_id: 'ratios', item_id: 'met-1' },
    { skill_id: 'sums', item_id: 'met-3', question_difficulty: -1.5 },
    { skill_id: 'unanswered', item_id: 'new', question_difficulty: 0.5 },
    { skill_ids: ['sums', 'ratios'], item_id: 'met-2' },
    { skill_ids: ['ratios', 'unanswered'], question_difficulty: -0.5 },
    { skill_ids: ['sums'], item_id: 'one' },
  ];
  const chances: number[] = [];
  for (const [i, item] of items.entries()) {
    // A separate learner for each item, because the answer changes the learner.
    const userId = `counted-${i}`;
    const history = Array.from({ length: 12 }, (_, n) => ({
      skill_id: n % 3 === 0 ? 'sums' : 'ratios',
      is_correct: n % 4 > 0,
      item_id: `${userId} met-${n % 5}`,
    }));
    await fixItemDifficulty(distinct(history.map(({ item_id }) => item_id)));
    await practise(userId, history);
    const asked = `${item.item_id}`.startsWith('met')
      ? { ...item, item_id: `${userId} ${item.item_id}` }
      : item;
    const [chosen] = await choose(userId, { items: [asked] });
    const { json } = await caller.track(event({ user_id: userId, skill_id: null, ...asked }));
    const attempts = await caller.get(`/api/v1/learners/${userId}/attempts?limit=1`);
    const name = JSON.stringify(item);
    assertNear(chosen?.p_correct, attempts.json.data.attempts[0].p_correct, 1.5e-4, name);
    assert.equal(chosen?.mastery, json.data.mastery_before, name);
    const counted = json.data.skills?.map((skill: Record<string, unknown>) => ({
      ...{ skill_id: skill.skill_id, mastery: skill.mastery_before },
    }));
    assert.deepEqual(chosen?.skills, counted, name);
    chances.push(chosen?.p_correct as number);
  }
  assert.equal(new Set(chances).size, items.length, 'item, repetition and difficulty change the probability');
  const [plain, hard, easy] = chances as [number, number, number];
  assert.ok(hard < 0.5 && easy > plain, `${chances}`);
});

test('Next items have at most three of a skill in a row, ties by index, and are cut at limit', async () => {
  await practise(
    'ordered',
    indices(6).map((i) => ({ skill_id: 'one', is_correct: i % 2 === 0 })),
  );
  const items = indices(24).map((i) => ({ skill_id: i % 4 === 0 ? 'two' : 'one', item_id: `i-${i}` }));
  const all = await choose('ordered', { items, limit: 1000 });
  const skills = all.map(({ skill_id }) => skill_id).join(' ');
  assert.ok(!/^(one ){4}.*two/.test(skills) && !/(two ){4}.*one/.test(skills), skills);
  const indexesOf = (skill: string) =>
    all.filter(({ skill_id }) => skill_id === skill).map(({ index }) => index);
  const [ones, twos] = [indices(24).filter((i) => i % 4 > 0), indices(6).map((i) => 4 * i)];
  assert.deepEqual([indexesOf('one'), indexesOf('two')], [ones, twos]);
  assert.deepEqual(await choose('ordered', { items }), all.slice(0, 10));
  assert.deepEqual(await choose('ordered', { items, limit: 3, target: null }), all.slice(0, 3));
});

test('Next items put an item last that was answered correctly within the hour', async () => {
  await caller.trackAll([
    event({ user_id: 'recent', skill_id: 'one', item_id: 'right', is_correct: true }),
    event({ user_id: 'recent', skill_id: 'one', item_id: 'wrong', is_correct: false }),
    event({ user_id: 'recent', skill_id: 'one', item_id: 'old', occurred_at: timeAgo(2 / 24) }),
  ]);
  const items = ['right', 'wrong', 'old', 'new'].map((item_id) => ({ item_id, skill_id: 'one' }));
  const chosen = await choose('recent', { items });
  assert.equal(chosen.at(-1)?.item_id, 'right');
  const recent = chosen.filter(({ reason_code }) => reason_code === 'ANSWERED_RECENTLY');
  assert.deepEqual(valuesOf(recent, 'index'), [0]);
});

test('Next items list a repeated item once, with its first index, and every entry without an id', async () => {
  const items = ['a', 'b', 'a', null, null, 'b'].map((item_id, i) => ({
    ...{ item_id, skill_id: i < 2 ? 'one' : 'two' },
  }));
  const chosen = await choose('repeated', { items, limit: 10 });
  assert.deepEqual(valuesOf(chosen, 'index').toSorted(), [0, 1, 3, 4]);
});

test("Next items of an unknown learner have the population's values and create nothing", async () => {
  const before = await caller.get('/api/v1/skills?limit=1000');
  const unmet = { skill_id: 'unmet', item_id: 'x' };
  const items = [{ skill_id: 'unknown skill' }, unmet, { ...unmet, item_id: 'y' }];
  const chosen = await choose('nobody', { items });
  assert.deepEqual(
    chosen.map((one) => [one.index, one.item_id, one.p_correct, one.mastery, one.reason_code]),
    [
      [0, null, 0.41, 0.3, 'NEW_SKILL'],
      [1, 'x', 0.41, 0.3, 'NEW_SKILL'],
      [2, 'y', 0.41, 0.3, 'NEW_SKILL'],
    ],
  );
  assert.ok(chosen.every(({ expected_gain }) => expected_gain > 0));
  assert.deepEqual((await caller.get('/api/v1/skills?limit=1000')).json, before.json);
  for (const path of ['mastery/nobody', 'predictions/nobody', 'learners/nobody/attempts'])
    assert.equal((await caller.get(`/api/v1/${path}`)).status, 404, path);
});

test('Next items name skills as in the catalogue and put mastered skills last', async () => {
  const named = await caller.send('PUT', '/api/v1/skills/n', { name: 'Fractions', section: 'math' });
  assert.equal(named.status, 200, named.text);
  await practise(
    'strong',
    indices(20).map(() => ({ skill_id: 'n' })),
    0.01,
  );
  const chosen = await choose('strong', { items: [{ skill_id: 'n' }, { skill_id: 'other' }] });
  assert.deepEqual(valuesOf(chosen, 'reason_code'), ['NEW_SKILL', 'MASTERED']);
  assert.equal(chosen[1]?.reason, 'Fractions is mastered: practice has little expected gain.');
});

const item = { skill_id: 'one' };
/** By the path that `details` names. */
const invalidBodies: readonly (readonly [path: string, body: unknown])[] = [
  ['items', {}],
  ['items', { items: null }],
  ['items', { items: [] }],
  ['items', { items: indices(1001).map(() => item) }],
  ['items/1/skill_id', { items: [item, { item_id: 'a' }] }],
  ['items/0/skill_id', { items: [{ skill_id: null }] }],
  ['items/0/skill_id', { items: [{ skill_id: 'x'.repeat(129) }] }],
  ['items/0/skill_id', { items: [{ skill_id: 'a\u0000' }] }],
  ['items/0/item_id', { items: [{ ...item, item_id: '' }] }],
  ['items/0/question_difficulty', { items: [{ ...item, question_difficulty: 3.1 }] }],
  ['items/0/question_difficulty', { items: [{ ...item, question_difficulty: '1' }] }],
  ['items/0', { items: ['one'] }],
  ['items/1/skill_ids', { items: [item, { ...item, skill_ids: ['one'] }] }],
  ['items/0/skill_ids', { items: [{ skill_ids: ['a', 'b', 'a'] }] }],
  ['items/0/skill_ids', { items: [{ skill_ids: [] }] }],
  ['items/0/skill_ids', { items: [{ skill_ids: indices(11).map(String) }] }],
  ['items/0/skill_ids/1', { items: [{ skill_ids: ['a', ''] }] }],
  ['limit', { items: [item], limit: 0 }],
  ['limit', { items: [item], limit: 1001 }],
  ['limit', { items: [item], limit: 1.5 }],
  ['target', { items: [item], target: 0.49 }],
  ['target', { items: [item], target: 0.96 }],
  ['', [item]],
];

test('Next items reject an invalid body with 400, naming the field', async () => {
  for (const [path, body] of invalidBodies) {
    const answer = await post('invalid', body);
    assert.equal(outcomeOf(answer), '400 INVALID_REQUEST', answer.text);
    const paths = valuesOf(answer.json.error.details, 'path');
    assert.ok(paths.includes(path), answer.text.slice(0, 500));
  }
  assert.equal(outcomeOf(await post('a', 'x'.repeat(1024 * 1024))), '413 PAYLOAD_TOO_LARGE');
});

test('Next items accept 1,000 items in 1 MiB as one request of the quota', async () => {
  const keys = await keysOf({ after }, service);
  const limited = callerOf(service, await keys.add({ quota: 5 }));
  const wideId = (i: number): string => '😀'.repeat(120) + `${i % 990}`.padStart(8, '0');
  const listOf = (i: number) => indices(10).map((n) => `s-${i}-${n}`);
  const items = indices(1000).map((i) => ({ skill_ids: listOf(i), item_id: wideId(i) }));
  const body = { items, limit: 1000, target: 0.6, note: 'ignored' };
  const { status, headers, json, text } = await post('wide', body, limited);
  assert.equal(status, 200, text.slice(0, 300));
  assert.match(headers.ratelimit ?? '', /^"default";r=4;/);
  assert.equal(json.data.target, 0.6);
  assert.deepEqual(
    json.data.items.map(({ index, item_id }: ChosenItem) => [index, item_id]),
    indices(990).map((i) => [i, wideId(i)]),
  );
});
