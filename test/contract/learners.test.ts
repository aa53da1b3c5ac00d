/** The list of learners by prefix, and the history of answers on one skill. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
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
/** Some ids differ only beyond the first 16 bits, in case, or by characters that SQL patterns interpret. */
const ids = [
  ...[script, '%', '%_', '%a', '_', '_%', 'a', 'a%b', 'a_b', 'axb', 'A%b', 'a\\b', "a'b", 'ab', '100%25'],
  ...['😀', '😀 b', '😁', '\uffee', 'é', 'e\u0301', 'שלום', 'שלי', '\u202eabc', 'مرحبا', '__proto__'],
];
const sortBytes = (some: readonly string[]): string[] =>
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
const allStored = (as = caller) =>
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
  await allStored();
});

test('GET /learners returns all learners by their bytes, each with totals', async () => {
  const { learners, next_cursor } = (await find()).json.data;
  assert.deepEqual(
    learners.map(({ user_id }: Learner) => user_id),
    sortBytes(ids),
  );
  assert.equal(next_cursor, null);
  const one = learners.find(({ user_id }: Learner) => user_id === script);
  const totals = { total_attempts: 2, correct_attempts: 1, skills: 2, last_day: '2026-02-03' };
  assert.deepEqual(one, { user_id: script, ...totals });
});

test('GET /learners compares the prefix byte by byte', async () => {
  const prefixes = ['%', '_', 'a', 'a%', 'a_', 'a\\', "a'", 'A', 'e', 'é', '😀', '😀 ', 'של', '\u202e'];
  for (const prefix of [...prefixes, 'unknown', '100%', '<']) {
    const expected = sortBytes(ids.filter((id) => id.startsWith(prefix)));
    assert.deepEqual(await found({ prefix }), expected, prefix);
  }
});

test('GET /learners returns each learner once in pages of any size', async () => {
  for (const query of [{ limit: 4 }, { limit: 2, prefix: 'a' }, { limit: ids.length }]) {
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { json } = await find(cursor === '' ? query : { ...query, cursor });
      const page = json.data.learners.map(({ user_id }: Learner) => user_id);
      assert.ok(page.length <= query.limit && page.length > 0);
      seen.push(...page);
      cursor = json.data.next_cursor;
    }
    assert.deepEqual(seen, sortBytes(ids.filter((id) => id.startsWith(query.prefix ?? ''))));
  }
});

test('GET /learners rejects invalid prefixes, limits and cursors', async () => {
  const bad = ['prefix=', 'prefix=a&prefix=b', `prefix=${'x'.repeat(129)}`, 'prefix=%00', 'prefix=%FF'];
  for (const query of [...bad, 'limit=0', 'limit=1001', 'cursor=x'])
    assert.equal((await caller.get(`/api/v1/learners?${query}`)).status, 400, query);
});

test('GET /learners returns only learners of the calling tenant', async () => {
  const other = callerOf(service, await keys.add({ tenant: 'other' }));
  assert.deepEqual(await found({}, other), []);
  assert.equal((await other.track(event({ user_id: 'a' }))).status, 200);
  await allStored(other);
  assert.deepEqual(await found({ prefix: 'a' }, other), ['a']);
});

const historyOf = (userId: string, skillId: string, query = '') =>
  askInTurn(() =>
    caller.get(
      `/api/v1/mastery/${encodeURIComponent(userId)}/${encodeURIComponent(skillId)}/history${query}`,
    ),
  );
const withoutRange = ({ expected_accuracy, expected_low, expected_high, ...attempt }: SkillAnswer) => attempt;
test('GET /mastery/{user_id}/{skill_id}/history returns the answers on a skill, newest first', async () => {
  const [userId, skillId] = ['history \\ ü', "skill'1"];
  const answerOf = (i: number) =>
    event({
      ...{ user_id: userId, skill_id: `skill'${i % 3}`, is_correct: i % 4 > 0, event_id: `e\\${i}` },
      ...(i % 2 === 0 && { item_id: 'item', time_spent_seconds: 12, confidence_score: 4 }),
    });
  const events = Array.from({ length: 26 }, (_, i) => answerOf(i));
  assert.equal((await caller.trackAll(events)).status, 200);
  const { json } = await askUntil(
    'all answers on the skill',
    () => historyOf(userId, skillId),
    (answer) => answer.json.data.pending_attempts === 0,
  );
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
  for (const [i, answer] of answers.entries()) {
    const { expected_low, expected_high, expected_accuracy, p_correct, item_id } = answer;
    // No other learner answered the item, so the term of the item is close to 0. Without an item there is no such term.
    assert.ok(Math.abs(expected_accuracy - p_correct) < (item_id === null ? 1e-9 : 0.1));
    const { low, high } = computeExpectedRange(logit(expected_accuracy), 8 - i);
    const differences = [expected_low - low, expected_high - high].map(Math.abs);
    assert.ok(Math.max(...differences) < 2e-4, `answer ${9 - i}`);
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
  assert.equal((await historyOf('unknown', skillId)).json.error.code, 'USER_NOT_FOUND');
  for (const query of ['?limit=0', '?limit=1001', '?cursor=x'])
    assert.equal((await historyOf(userId, skillId, query)).status, 400, query);
});

test('GET /learners hides an erased learner immediately and shows only the new history', async () => {
  const user_id = 'erased \u05d0';
  const answers = (count: number, name: string, is_correct: boolean) =>
    Array.from({ length: count }, (_, i) => event({ user_id, event_id: `${name}-${i}`, is_correct }));
  assert.equal((await caller.trackAll(answers(3, 'old', true))).status, 200);
  await allStored();
  assert.deepEqual(await found({ prefix: user_id }), [user_id]);
  const path = `/api/v1/learners/${encodeURIComponent(user_id)}`;
  const erased = await caller.call({ method: 'DELETE', path });
  assert.equal(erased.status, 202);
  assert.deepEqual(await found({ prefix: user_id }), []);
  assert.equal((await historyOf(user_id, 'algebra')).json.error.code, 'USER_NOT_FOUND');
  // More answers than before, so that sequence numbers do not separate the histories.
  assert.equal((await caller.trackAll(answers(5, 'new', false))).status, 200);
  const read = async () => {
    const [shown] = (await find({ prefix: user_id })).json.data.learners;
    assert.ok(shown === undefined || shown.correct_attempts === 0, JSON.stringify(shown));
    const history = (await historyOf(user_id, 'algebra')).json.data.answers;
    for (const { event_id } of history) assert.match(event_id, /^new-/);
    return [shown?.total_attempts, history.length];
  };
  await read();
  await erasureDone(caller, erased.json.data.status_url);
  await askUntil('the new history', read, (found) => isDeepStrictEqual(found, [5, 5]));
});
