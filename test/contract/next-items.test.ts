/** What to ask next, over HTTP: as it is counted, ordered, bounded and refused. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { distinct, indices } from '../../src/lists.js';
import { addItemAnswers } from '../../src/store/models/item-store.js';
import { callerOf, event, type JsonAnswer, type RequestParts } from '../support/http/http.js';
import { keysOf, redisOf, sharedService } from '../support/servers/service.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);
const caller = callerOf(service, service.key);
const day = 86_400_000;

const ask = (userId: string, body: object, as = caller): Promise<JsonAnswer> =>
  as.call({ path: `/api/v1/next-items/${userId}`, body: JSON.stringify(body) });

interface Chosen {
  readonly index: number;
  readonly item_id: string | null;
  readonly skill_id: string;
  readonly p_correct: number;
  readonly mastery: number;
  readonly expected_gain: number;
  readonly reason_code: string;
  readonly reason: string;
}

async function choose(userId: string, body: object, as = caller): Promise<Chosen[]> {
  const { status, json, text } = await ask(userId, body, as);
  assert.equal(status, 200, text);
  assert.equal(json.data.user_id, userId);
  return json.data.items;
}

const agoText = (ms: number): string => new Date(Date.now() - ms).toISOString();

/** Answers so many days ago, so that no second more or less shows in a probability. */
async function practise(userId: string, answers: readonly Record<string, unknown>[], daysAgo = 2) {
  const occurred_at = agoText(daysAgo * day);
  const events = answers.map((change) => event({ user_id: userId, occurred_at, ...change }));
  assert.equal((await caller.trackAll(events)).status, 200);
}

/**
 * Items that others answered so often, as often right as expected, that a learner's own answer shows in no probability:
 * it reaches Redis within about a second, and a thread that counts answers within 30 s.
 */
const settle = (itemIds: readonly string[]): Promise<number> =>
  addItemAnswers(
    redis,
    service.tenant,
    0,
    itemIds.map((itemId) => ({ itemId, answers: 1e7, right: 5e6, expected: 5e6 })),
  );

function assertNear(actual: number | undefined, expected: number | undefined, message: string): void {
  assert.ok(
    Math.abs((actual as number) - (expected as number)) < 1.5e-4,
    `${message}: ${actual}, ${expected}`,
  );
}

test('p_correct and mastery are those that an answer given now is counted with', async () => {
  await addItemAnswers(redis, service.tenant, 0, [
    { itemId: 'hard', answers: 200, right: 20, expected: 120 },
    { itemId: 'easy', answers: 200, right: 190, expected: 120 },
  ]);
  const historyOf = (userId: string) =>
    Array.from({ length: 12 }, (_, i) => ({
      skill_id: i % 3 === 0 ? 'sums' : 'ratios',
      is_correct: i % 4 > 0,
      item_id: `${userId} met-${i % 5}`,
    }));
  const items = [
    { skill_id: 'ratios' },
    { skill_id: 'sums', item_id: 'hard' },
    { skill_id: 'ratios', item_id: 'easy' },
    { skill_id: 'ratios', item_id: 'met-1' },
    { skill_id: 'sums', item_id: 'met-3', question_difficulty: -1.5 },
    { skill_id: 'ratios', item_id: 'met-2', question_difficulty: 2 },
    { skill_id: 'not yet answered', item_id: 'new', question_difficulty: 0.5 },
  ];
  const p: number[] = [];
  for (const [i, item] of items.entries()) {
    const userId = `counted-${i}`;
    const history = historyOf(userId);
    await settle(distinct(history.map(({ item_id }) => item_id)));
    await practise(userId, history);
    const own = item.item_id?.startsWith('met') ? { ...item, item_id: `${userId} ${item.item_id}` } : item;
    const [chosen] = await choose(userId, { items: [own] });
    assert.ok(chosen);
    const { json } = await caller.track(event({ user_id: userId, ...own }));
    const attempts = await caller.get(`/api/v1/learners/${userId}/attempts?limit=1`);
    const [counted] = attempts.json.data.attempts;
    const name = JSON.stringify(item);
    assertNear(chosen.p_correct, counted.p_correct, name);
    assert.equal(chosen.mastery, json.data.mastery_before, name);
    p.push(chosen.p_correct);
  }
  assert.equal(new Set(p).size, items.length, 'item, memory and difficulty all show');
  const [plain, hard, easy] = p as [number, number, number];
  assert.ok(hard < 0.5 && easy > plain, `${p}`);
});

test('items of both generations of the memory are recognised, forgotten ones are as new', async () => {
  const itemOf = (i: number) => ({ skill_id: 'many', item_id: `many ${i}` });
  await settle(indices(302).map((i) => itemOf(i).item_id));
  await practise(
    'many',
    Array.from({ length: 300 }, (_, i) => ({ ...itemOf(i), is_correct: i % 2 === 0 })),
  );
  const chosen = await choose('many', { items: [0, 1, 151, 291, 301].map(itemOf) });
  const [gone, wrongButGone, before, current, unmet] = chosen
    .toSorted((a, b) => a.index - b.index)
    .map(({ p_correct }) => p_correct);
  assertNear(gone, unmet, 'forgotten, answered right');
  assertNear(wrongButGone, unmet, 'forgotten, answered wrong');
  assertNear(before, current, 'both generations');
  assert.ok((before as number) < (unmet as number) - 0.02, `${before}, ${unmet}`);
});

test('the order, the rule of three and the limit', async () => {
  await practise(
    'ordered',
    Array.from({ length: 6 }, (_, i) => ({ skill_id: 'one', is_correct: i % 2 === 0 })),
  );
  const items = Array.from({ length: 24 }, (_, i) => ({
    skill_id: i % 4 === 0 ? 'two' : 'one',
    item_id: `i-${i}`,
  }));
  const all = await choose('ordered', { items, limit: 1000 });
  assert.deepEqual(
    all.map(({ index }) => index).toSorted((a, b) => a - b),
    items.map((_, i) => i),
  );
  const skills = all.map(({ skill_id }) => skill_id).join(' ');
  assert.ok(!/^(one ){4}.*two/.test(skills) && !/(two ){4}.*one/.test(skills), skills);
  for (const [i, one] of all.entries()) {
    const next = all[i + 1];
    if (next && next.skill_id === one.skill_id) assert.ok(one.index < next.index, 'ties go by index');
  }
  assert.deepEqual(await choose('ordered', { items }), all.slice(0, 10));
  assert.deepEqual(await choose('ordered', { items, limit: 3, target: null }), all.slice(0, 3));
});

test('an item that was just answered right is last; one that was answered wrong is not', async () => {
  await caller.trackAll([
    event({ user_id: 'again', skill_id: 'one', item_id: 'right', is_correct: true }),
    event({ user_id: 'again', skill_id: 'one', item_id: 'wrong', is_correct: false }),
    event({ user_id: 'again', skill_id: 'one', item_id: 'old', occurred_at: agoText(2 * 3_600_000) }),
  ]);
  const items = ['right', 'wrong', 'old', 'new'].map((item_id) => ({ item_id, skill_id: 'one' }));
  const chosen = await choose('again', { items });
  assert.equal(chosen.at(-1)?.item_id, 'right');
  assert.deepEqual(
    chosen.filter(({ reason_code }) => reason_code === 'ANSWERED_RECENTLY').map(({ index }) => index),
    [0],
  );
});

test('whoever never answered gets what holds for anybody, and leaves no trace', async () => {
  const before = await caller.get('/api/v1/skills?limit=1000');
  const items = [
    { skill_id: 'never heard of' },
    { skill_id: 'one', item_id: 'x' },
    { skill_id: 'one', item_id: 'x' },
  ];
  const chosen = await choose('nobody', { items });
  assert.deepEqual(
    chosen.map(({ index }) => index),
    [0, 1, 2],
  );
  for (const one of chosen) {
    assert.deepEqual([one.p_correct, one.mastery, one.reason_code], [0.41, 0.3, 'NEW_SKILL']);
    assert.ok(one.expected_gain > 0);
  }
  assert.deepEqual(
    chosen.map(({ item_id }) => item_id),
    [null, 'x', 'x'],
  );
  assert.deepEqual((await caller.get('/api/v1/skills?limit=1000')).json, before.json);
  for (const path of ['mastery/nobody', 'predictions/nobody', 'learners/nobody/attempts'])
    assert.equal((await caller.get(`/api/v1/${path}`)).status, 404, path);
});

test("another tenant's learner of the same name, skills and items are not seen", async () => {
  await practise(
    'shared',
    Array.from({ length: 9 }, () => ({ skill_id: 'one', item_id: 'hard' })),
  );
  const stranger = callerOf(service, await keys.add({ tenant: 'stranger' }));
  const items = [{ skill_id: 'one', item_id: 'hard' }];
  const [known] = await choose('shared', { items });
  const [unknown] = await choose('shared', { items }, stranger);
  assert.ok(known && known.mastery > 0.9);
  assert.deepEqual([unknown?.mastery, unknown?.p_correct, unknown?.reason_code], [0.3, 0.41, 'NEW_SKILL']);
  assert.ok(unknown && unknown.expected_gain > 0, 'though the tenant knows no skill yet');
});

test('names of the catalogue stand in reasons, and mastered skills come after what is to be learned', async () => {
  const named = await caller.call({
    method: 'PUT',
    path: '/api/v1/skills/n',
    body: '{"name":"Fractions","section":"math"}',
  });
  assert.equal(named.status, 200, named.text);
  await practise(
    'strong',
    Array.from({ length: 20 }, () => ({ skill_id: 'n' })),
    0.01,
  );
  const chosen = await choose('strong', { items: [{ skill_id: 'n' }, { skill_id: 'other' }] });
  assert.deepEqual(
    chosen.map(({ reason_code }) => reason_code),
    ['NEW_SKILL', 'MASTERED'],
  );
  assert.equal(chosen[1]?.reason, 'Fractions is mastered: little is left to gain.');
});

const item = { skill_id: 'one' };
const refusals: readonly [what: string, body: unknown, path: RegExp][] = [
  ['no items', {}, /^items$/],
  ['items that are null', { items: null }, /^items$/],
  ['an empty list', { items: [] }, /^items$/],
  ['1,001 items', { items: Array.from({ length: 1001 }, () => item) }, /^items$/],
  ['an item without a skill', { items: [item, { item_id: 'a' }] }, /^items\/1\/skill_id$/],
  ['a skill that is null', { items: [{ skill_id: null }] }, /^items\/0\/skill_id$/],
  ['an empty id', { items: [{ ...item, item_id: '' }] }, /^items\/0\/item_id$/],
  ['an id of 129 characters', { items: [{ skill_id: 'x'.repeat(129) }] }, /^items\/0\/skill_id$/],
  ['a control character', { items: [{ skill_id: 'a\u0000' }] }, /^items\/0\/skill_id$/],
  [
    'a difficulty of 3.1',
    { items: [{ ...item, question_difficulty: 3.1 }] },
    /^items\/0\/question_difficulty$/,
  ],
  [
    'a difficulty in words',
    { items: [{ ...item, question_difficulty: '1' }] },
    /^items\/0\/question_difficulty$/,
  ],
  ['an item that is none', { items: ['one'] }, /^items\/0$/],
  ['a limit of 0', { items: [item], limit: 0 }, /^limit$/],
  ['a limit of 1,001', { items: [item], limit: 1001 }, /^limit$/],
  ['a broken limit', { items: [item], limit: 1.5 }, /^limit$/],
  ['a target of .49', { items: [item], target: 0.49 }, /^target$/],
  ['a target of .96', { items: [item], target: 0.96 }, /^target$/],
  ['a list', [item], /^$/],
];

for (const [what, body, path] of refusals) {
  test(`400 for ${what}`, async () => {
    const { status, json, text } = await ask('refused', body as object);
    assert.deepEqual([status, json.error.code], [400, 'INVALID_REQUEST'], text);
    assert.ok(
      json.error.details.some((one: { path: string }) => path.test(one.path)),
      text.slice(0, 500),
    );
  });
}

test('every other refusal, in the order of the checks', async () => {
  const path = '/api/v1/next-items/refused';
  const body = JSON.stringify({ items: [item] });
  const large = { path, body: 'x'.repeat(1024 * 1024 + 1) };
  const writer = callerOf(service, await keys.add({ scopes: ['write', 'admin'] }));
  const spent = callerOf(service, await keys.add({ quota: 1 }));
  const plainText = { headers: { 'Content-Type': 'text/plain' } };
  const packed = { headers: { 'Content-Encoding': 'gzip' } };
  const cases: readonly [number, string, typeof caller, RequestParts][] = [
    [401, 'UNAUTHORIZED', callerOf(service, null), { ...large, ...plainText }],
    [405, 'METHOD_NOT_ALLOWED', caller, { method: 'GET', path }],
    [404, 'NOT_FOUND', caller, { path: '/api/v1/next-items', body }],
    [403, 'FORBIDDEN', writer, { ...large, ...plainText }],
    [415, 'UNSUPPORTED_MEDIA_TYPE', caller, { ...large, ...plainText }],
    [415, 'UNSUPPORTED_MEDIA_TYPE', caller, { path, body, ...packed }],
    [413, 'PAYLOAD_TOO_LARGE', caller, large],
    [400, 'INVALID_REQUEST', caller, { path, body: '{"items":' }],
    [400, 'INVALID_REQUEST', caller, { path, body: '' }],
    [400, 'INVALID_REQUEST', caller, { path: '/api/v1/next-items/%E0', body }],
    [400, 'INVALID_REQUEST', caller, { path: `/api/v1/next-items/${'x'.repeat(129)}`, body }],
    [200, '', spent, { path, body }],
    [429, 'RATE_LIMITED', spent, { path, body }],
  ];
  for (const [status, code, by, parts] of cases) {
    const answer = await by.call(parts);
    assert.deepEqual(
      [answer.status, answer.json.error?.code ?? ''],
      [status, code],
      answer.text.slice(0, 300),
    );
  }
});

test('1,000 items of 128 characters in a MiB, some of them twice, are one request of the quota', async () => {
  const quota = callerOf(service, await keys.add({ quota: 5 }));
  const wide = (i: number): string => '😀'.repeat(120) + `${i % 990}`.padStart(8, '0');
  const items = Array.from({ length: 1000 }, (_, i) => ({ skill_id: `s-${i}`, item_id: wide(i) }));
  const body = { items, limit: 1000, target: 0.6, note: 'ignored' };
  const { status, headers, json, text } = await ask('wide', body, quota);
  assert.equal(status, 200, text.slice(0, 300));
  assert.match(headers.ratelimit ?? '', /^"default";r=4;/);
  assert.equal(json.data.target, 0.6);
  const chosen: Chosen[] = json.data.items;
  assert.deepEqual(
    chosen.map(({ index }) => index),
    items.map((_, i) => i),
  );
  for (const { index, item_id } of chosen) assert.equal(item_id, wide(index));
});
