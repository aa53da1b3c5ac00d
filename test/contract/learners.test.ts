/** Learners that are found by the beginning of their ids, and their answers on one skill. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { SkillAnswer } from '../../src/client/types.js';
import { logit } from '../../src/domain/base/common.js';
import { computeExpectedRange } from '../../src/domain/learner/expected-accuracy.js';
import { askInTurn, erasureDone } from '../support/builders/learner-data.js';
import { callerOf, event, type JsonAnswer } from '../support/http/http.js';
import { keysOf, sharedService } from '../support/servers/service.js';
import { askUntil } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const caller = callerOf(service, service.key);

const script = '<script>alert(1)</script>';
/** Some of them differ in bytes beyond the first 16 bits, in case, or in what patterns of SQL stand for. */
const ids = [
  ...[script, '%', '%_', '%a', '_', '_%', 'a', 'a%b', 'a_b', 'axb', 'A%b', 'a\\b', "a'b", 'ab', '100%25'],
  ...['😀', '😀 b', '😁', '\uffee', 'é', 'e\u0301', 'שלום', 'שלי', '\u202eabc', 'مرحبا', '__proto__'],
];
const inBytes = (some: readonly string[]): string[] =>
  [...some].sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));

interface Learner {
  readonly user_id: string;
}
type Query = Readonly<Record<string, string | number>>;
const find = (query: Query = {}, as = caller) => {
  const search = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return askInTurn(() => as.get(`/api/v1/learners?${search.join('&')}`));
};
const found = async (query: Query, as = caller): Promise<string[]> => {
  const { status, json, text } = await find(query, as);
  assert.equal(status, 200, text);
  return json.data.learners.map(({ user_id }: Learner) => user_id);
};
const stored = (as = caller) =>
  askUntil(
    'all answers in ClickHouse',
    () => find({}, as),
    ({ json }) => json.data.source_lag_seconds === 0,
  );

before(async () => {
  const events = ids.map((user_id) => event({ user_id, occurred_at: '2026-02-03T23:59:59Z' }));
  assert.equal((await caller.trackAll(events)).status, 200);
  const more = { user_id: script, skill_id: 'other', is_correct: false };
  assert.equal((await caller.track({ ...more, occurred_at: '2026-02-02T10:00:00Z' })).status, 200);
  await stored();
});

test('all, by their bytes, each with its sums', async () => {
  const { json } = await find();
  assert.deepEqual(
    json.data.learners.map(({ user_id }: Learner) => user_id),
    inBytes(ids),
  );
  assert.equal(json.data.next_cursor, null);
  const one = json.data.learners.find(({ user_id }: Learner) => user_id === script);
  const sums = { total_attempts: 2, correct_attempts: 1, skills: 2, last_day: '2026-02-03' };
  assert.deepEqual(one, { user_id: script, ...sums });
});

test('those that begin with a prefix, byte for byte', async () => {
  const prefixes = [
    '%',
    '_',
    'a',
    'a%',
    'a_',
    'a\\',
    "a'",
    'A',
    'e',
    'é',
    '😀',
    '\ud83d\ude00 ',
    'של',
    '\u202e',
  ];
  for (const prefix of [...prefixes, ...ids, 'nobody', '100%', '<']) {
    const expected = inBytes(ids.filter((id) => id.startsWith(prefix)));
    assert.deepEqual(await found({ prefix }), expected, prefix);
  }
});

test('pages are the whole, once each', async () => {
  for (const query of [{ limit: 4 }, { limit: 2, prefix: 'a' }, { limit: ids.length }]) {
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { json } = await find(cursor === '' ? query : { ...query, cursor });
      const page = json.data.learners.map(({ user_id }: Learner) => user_id);
      assert.ok(page.length <= query.limit && page.length > 0);
      seen.push(...page);
      cursor = json.data.next_cursor;
    }
    assert.deepEqual(seen, inBytes(ids.filter((id) => id.startsWith(query.prefix ?? ''))));
  }
});

test('what does not fit is refused', async () => {
  const bad = ['prefix=', 'prefix=a&prefix=b', `prefix=${'x'.repeat(129)}`, 'prefix=%00', 'prefix=%FF'];
  for (const query of [...bad, 'limit=0', 'limit=1001', 'cursor=x'])
    assert.equal((await caller.get(`/api/v1/learners?${query}`)).status, 400, query);
});

test("another tenant's learners are unseen", async () => {
  const other = callerOf(service, await keys.add({ tenant: 'learners-other' }));
  assert.deepEqual(await found({}, other), []);
  assert.equal((await other.track(event({ user_id: 'a' }))).status, 200);
  await askUntil(
    'the learner',
    () => found({}, other),
    ({ length }) => length > 0,
  );
  assert.deepEqual(await found({ prefix: 'a' }, other), ['a']);
  const path = `/api/v1/mastery/${encodeURIComponent(script)}/algebra/history`;
  assert.equal((await other.get(path)).json.error.code, 'USER_NOT_FOUND');
});

const historyOf = (userId: string, skillId: string, query = '') =>
  askInTurn(() =>
    caller.get(
      `/api/v1/mastery/${encodeURIComponent(userId)}/${encodeURIComponent(skillId)}/history${query}`,
    ),
  );
const withoutRange = ({ expected_accuracy, expected_low, expected_high, ...attempt }: SkillAnswer) => attempt;
const settled = (userId: string, skillId: string) =>
  askUntil(
    'all answers on the skill',
    () => historyOf(userId, skillId),
    ({ json }) => json.data.pending_attempts === 0,
  );

test('the answers on a skill, newest first, as the list of all answers has them', async () => {
  const [userId, skillId] = ['history \\ ü', "skill'1"];
  const answerOf = (i: number) =>
    event({
      ...{ user_id: userId, skill_id: `skill'${i % 3}`, is_correct: i % 4 > 0, event_id: `e\\${i}` },
      ...(i % 2 === 0 && { item_id: 'item', time_spent_seconds: 12, confidence_score: 4 }),
    });
  const events = Array.from({ length: 26 }, (_, i) => answerOf(i));
  assert.equal((await caller.trackAll(events)).status, 200);
  const { json } = await settled(userId, skillId);
  const { answers, ...head } = json.data;
  const facts = { total_attempts: 9, pending_attempts: 0, source_lag_seconds: 0, next_cursor: null };
  assert.deepEqual(head, { user_id: userId, skill_id: skillId, ...facts });
  const all = await askInTurn(() =>
    caller.get(`/api/v1/learners/${encodeURIComponent(userId)}/attempts?limit=1000`),
  );
  const expected = all.json.data.attempts.filter(
    (one: { readonly skill_id: string }) => one.skill_id === skillId,
  );
  assert.deepEqual(answers.map(withoutRange), expected);
  assert.equal(answers.length, 9);
  for (const [
    i,
    { expected_low, expected_high, expected_accuracy, p_correct, item_id },
  ] of answers.entries()) {
    // No other learner answered the item, so that its own term is close to 0; without an item there is none.
    assert.ok(Math.abs(expected_accuracy - p_correct) < (item_id === null ? 1e-9 : 0.1));
    const { low, high } = computeExpectedRange(logit(expected_accuracy), 8 - i);
    assert.ok(
      Math.abs(expected_low - low) < 2e-4 && Math.abs(expected_high - high) < 2e-4,
      `answer ${9 - i}`,
    );
  }
  const seen: object[] = [];
  for (let query: string | null = '?limit=4'; query !== null; ) {
    const { data }: JsonAnswer['json'] = (await historyOf(userId, skillId, query)).json;
    assert.equal(data.total_attempts, 9);
    assert.equal(data.pending_attempts, 0);
    seen.push(...data.answers);
    query = data.next_cursor === null ? null : `?limit=4&cursor=${data.next_cursor}`;
  }
  assert.deepEqual(seen, answers);
  assert.equal((await historyOf(userId, 'never')).json.error.code, 'SKILL_NOT_FOUND');
  assert.equal((await historyOf('nobody', skillId)).json.error.code, 'USER_NOT_FOUND');
  for (const query of ['?limit=0', '?limit=1001', '?cursor=x'])
    assert.equal((await historyOf(userId, skillId, query)).status, 400, query);
});

test('an erased learner is in no list, at once, and a new history stands for itself', async () => {
  const user_id = 'erased \u05d0';
  const answer = (i: number, of: string) => event({ user_id, event_id: `${of}-${i}`, is_correct: true });
  const old = Array.from({ length: 3 }, (_, i) => answer(i, 'old'));
  assert.equal((await caller.trackAll(old)).status, 200);
  await askUntil(
    'the learner',
    () => found({ prefix: user_id }),
    ({ length }) => length === 1,
  );
  const path = `/api/v1/learners/${encodeURIComponent(user_id)}`;
  const erased = await caller.call({ method: 'DELETE', path });
  assert.equal(erased.status, 202);
  assert.deepEqual(await found({ prefix: user_id }), []);
  assert.equal((await historyOf(user_id, 'algebra')).json.error.code, 'USER_NOT_FOUND');
  // As many and more than before, so that numbers do not tell them apart.
  const fresh = Array.from({ length: 5 }, (_, i) => ({ ...answer(i, 'new'), is_correct: false }));
  assert.equal((await caller.trackAll(fresh)).status, 200);
  const look = async () => {
    const [shown] = (await find({ prefix: user_id })).json.data.learners;
    assert.ok(shown === undefined || shown.correct_attempts === 0, JSON.stringify(shown));
    const { answers } = (await historyOf(user_id, 'algebra')).json.data;
    for (const { event_id } of answers) assert.match(event_id, /^new-/);
    return { shown, answers: answers.length };
  };
  await look();
  await erasureDone(caller, erased.json.data.status_url);
  const wanted = ({ shown, answers }: Awaited<ReturnType<typeof look>>): boolean =>
    shown?.total_attempts === 5 && answers === 5;
  await askUntil('the new history', look, wanted);
});
