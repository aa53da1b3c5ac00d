/** The list of learners by prefix, and the history of answers on one skill. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { SkillAnswer } from '../../src/client/types.js';
import { logit } from '../../src/domain/base/common.js';
import { computeExpectedRange } from '../../src/domain/learner/expected-accuracy.js';
import { askInTurn, erasureDone } from '../support/builders/learner-data.js';
import { callerOf, event, outcomeOf } from '../support/http/http.js';
import { readPages } from '../support/http/read-pages.js';
import { keysOf, sharedService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';
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
const find = (query = '', as = caller) => askInTurn(() => as.get(`/api/v1/learners${query}`));
const prefixed = (prefix: string): string => `?prefix=${encodeURIComponent(prefix)}`;
const found = async (query: string, as = caller): Promise<string[]> => {
  const { status, json, text } = await find(query, as);
  assert.equal(status, 200, text);
  return valuesOf(json.data.learners, 'user_id');
};
const allStored = (as = caller) =>
  askUntil(
    'all answers in ClickHouse',
    () => find('', as),
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
  assert.deepEqual(valuesOf(learners, 'user_id'), sortBytes(ids));
  assert.equal(next_cursor, null);
  const one = learners.find(({ user_id }: Learner) => user_id === script);
  const totals = { total_attempts: 2, correct_attempts: 1, skills: 2, last_day: '2026-02-03' };
  assert.deepEqual(one, { user_id: script, ...totals });
});

test('GET /learners compares the prefix byte by byte', async () => {
  const prefixes = ['%', '_', 'a', 'a%', 'a_', 'a\\', "a'", 'A', 'e', 'é', '😀', '😀 ', 'של', '\u202e'];
  for (const prefix of [...prefixes, 'unknown', '100%', '<']) {
    const expected = sortBytes(ids.filter((id) => id.startsWith(prefix)));
    assert.deepEqual(await found(prefixed(prefix)), expected, prefix);
  }
});

test('GET /learners returns each learner once in pages of any size', async () => {
  for (const limit of [2, 4, ids.length]) {
    const prefix = limit === 2 ? 'a' : '';
    const read = (query: string) => find(prefix === '' ? query : `${query}&prefix=${prefix}`);
    const pages = await readPages<Learner>(read, 'learners', limit);
    assert.ok(pages.every(({ length }) => length <= limit && length > 0));
    assert.deepEqual(valuesOf(pages.flat(), 'user_id'), sortBytes(ids.filter((id) => id.startsWith(prefix))));
  }
});

test('GET /learners rejects invalid prefixes', async () => {
  for (const prefix of ['', 'a&prefix=b', 'x'.repeat(129), '%00', '%FF'])
    assert.equal((await find(`?prefix=${prefix}`)).status, 400, prefix);
});

test('GET /learners returns only learners of the calling tenant', async () => {
  const other = callerOf(service, await keys.add({ tenant: 'other' }));
  assert.deepEqual(await found('', other), []);
  assert.equal((await other.track(event({ user_id: 'a' }))).status, 200);
  await allStored(other);
  assert.deepEqual(await found('?prefix=a', other), ['a']);
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
  const pages = await readPages((query) => historyOf(userId, skillId, query), 'answers', 4);
  assert.deepEqual(pages, [answers.slice(0, 4), answers.slice(4, 8), answers.slice(8)]);
  assert.equal(outcomeOf(await historyOf(userId, 'never')), '404 SKILL_NOT_FOUND');
  assert.equal(outcomeOf(await historyOf('unknown', skillId)), '404 USER_NOT_FOUND');
});

test('GET /learners hides an erased learner immediately and shows only the new history', async () => {
  const user_id = 'erased \u05d0';
  const answers = (count: number, name: string, is_correct: boolean) =>
    Array.from({ length: count }, (_, i) => event({ user_id, event_id: `${name}-${i}`, is_correct }));
  assert.equal((await caller.trackAll(answers(3, 'old', true))).status, 200);
  await allStored();
  assert.deepEqual(await found(prefixed(user_id)), [user_id]);
  const erased = await caller.send('DELETE', `/api/v1/learners/${encodeURIComponent(user_id)}`);
  assert.equal(erased.status, 202);
  assert.deepEqual(await found(prefixed(user_id)), []);
  assert.equal(outcomeOf(await historyOf(user_id, 'algebra')), '404 USER_NOT_FOUND');
  // More answers than before, so that sequence numbers do not separate the histories.
  assert.equal((await caller.trackAll(answers(5, 'new', false))).status, 200);
  const read = async () => {
    const [shown] = (await find(prefixed(user_id))).json.data.learners;
    assert.ok(shown === undefined || shown.correct_attempts === 0, JSON.stringify(shown));
    const history = (await historyOf(user_id, 'algebra')).json.data.answers;
    for (const { event_id } of history) assert.match(event_id, /^new-/);
    return [shown?.total_attempts, history.length];
  };
  await read();
  await erasureDone(caller, erased.json.data.status_url);
  await askUntil('the new history', read, (found) => isDeepStrictEqual(found, [5, 5]));
});
