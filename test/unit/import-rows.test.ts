import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOrderCheck, parseAnswer, parseRow, type RawFields } from '../../src/services/import/rows.js';

const importedAt = Date.UTC(2026, 4, 31, 12);
const valid = { user_id: 'u', skill_id: 's', correct: '1' };
const check = (fields: RawFields | string, startMs = 0) =>
  parseRow({ line: 7, fields }, (read) =>
    parseAnswer(read, 7, { tenant: 't', startMs, importedAt }, importedAt + 1),
  );

function parseEvent(fields: RawFields, startMs = 0) {
  const checked = check({ ...valid, ...fields }, startMs);
  assert.ok(typeof checked !== 'string', String(checked));
  return checked.event;
}

test('parseAnswer returns an event with the number of its line', () => {
  assert.deepEqual(parseEvent({ item_id: 'i', response_time_s: '12.75', ts: '1000.5' }), {
    ...{
      tenant: 't',
      userId: 'u',
      skillIds: ['s'],
      listsSkills: false,
      itemId: 'i',
      eventId: null,
      isCorrect: true,
    },
    ...{ timeSpentSeconds: 12.75, confidenceScore: null, questionDifficulty: null },
    ...{ occurredAt: 1_000_500, occurredAtText: null, receivedAt: importedAt + 1, importLine: 7 },
  });
});

test('parseAnswer reads several skills, joined or as a list', () => {
  const several: readonly [fields: RawFields, skillIds: readonly string[]][] = [
    [{ skill_id: 'b~~a' }, ['b', 'a']],
    [{ skill_id: '', skill_ids: '["b","a~~c", 7]' }, ['b', 'a~~c', '7']],
    [{ skill_id: null, skill_ids: ['b'] }, ['b']],
  ];
  for (const [fields, skillIds] of several) assert.deepEqual(parseEvent(fields).skillIds, skillIds);
});

test('parseAnswer takes empty, null and missing fields as absent', () => {
  for (const absent of ['', null, undefined]) {
    const fields = { item_id: absent, response_time_s: absent, ts: absent, order: absent };
    const { itemId, timeSpentSeconds, occurredAt } = parseEvent(fields);
    assert.deepEqual([itemId, timeSpentSeconds, occurredAt], [null, null, importedAt]);
  }
});

test('parseAnswer accepts 1, 0, true and false in every spelling', () => {
  for (const correct of ['1', '1.0', 'true', 'TRUE', ' 1 ', 1, true])
    assert.equal(parseEvent({ correct }).isCorrect, true);
  for (const correct of ['0', '0.0', 'false', 'False', 0, false])
    assert.equal(parseEvent({ correct }).isCorrect, false);
});

test('parseAnswer accepts RFC 3339 times, and seconds since 1970 or since the start', () => {
  const start = Date.UTC(2005, 7, 1);
  const times: [ts: string | number, startMs: number, occurredAt: number][] = [
    ['2026-05-31T12:00:00+02:00', 0, Date.UTC(2026, 4, 31, 10)],
    [1.5, 0, 1500],
    ['86400.25', start, start + 86_400_250],
    ['1e3', start, start + 1_000_000],
    ['2005-08-01T00:00:01Z', start, start + 1000],
  ];
  for (const [ts, startMs, occurredAt] of times)
    assert.equal(parseEvent({ ts }, startMs).occurredAt, occurredAt, `${ts}`);
});

test('parseAnswer names the column and the value that it rejects', () => {
  const invalid: [RawFields | string, RegExp][] = [
    ['cut', /^cut$/],
    [{ user_id: '' }, /^user_id is missing$/],
    [{ skill_id: null }, /^skill_id is missing$/],
    [{ skill_id: 'a~~' }, /^skill_id "a~~" has an empty id$/],
    [{ skill_id: 'a~~b~~a' }, /^skill_id "a~~b~~a" has a skill twice$/],
    [
      { skill_id: 'abcdefghijk'.split('').join('~~') },
      /^skill_id "a~~b~~c~~d~~e~~f~~g~~h~~i~~j~~k" has more than 10 skills$/,
    ],
    [{ skill_ids: ['a'] }, /^skill_id and skill_ids exclude each other$/],
    [{ skill_id: '', skill_ids: [] }, /^skill_ids is missing$/],
    [{ skill_id: '', skill_ids: 'a,b' }, /^skill_ids "a,b" must be a JSON list of ids$/],
    [{ skill_id: '', skill_ids: { a: 1 } }, /^skill_ids \{"a":1\} must be a JSON list of ids$/],
    [{ skill_id: '', skill_ids: ['a', null] }, /^skill_ids \["a",null\] has an empty id$/],
    [{ user_id: 'a\tb' }, /^user_id "a\\tb" must be 1 to 128/],
    [{ user_id: 'a'.repeat(129) }, /^user_id .{60,70}\.\.\. must be 1 to 128/],
    [{ skill_id: 'a\uD800' }, /^skill_id/],
    [{ item_id: '\uFFFD' }, /^item_id is not valid UTF-8/],
    [{ user_id: { a: 1 } }, /^user_id .* must be a string/],
    [{ correct: '' }, /^correct is missing$/],
    [{ correct: 'yes' }, /^correct "yes" must be/],
    [{ correct: '0.5' }, /^correct/],
    [{ response_time_s: '-1' }, /^response_time_s/],
    [{ response_time_s: '86400.1' }, /^response_time_s/],
    [{ response_time_s: 'NaN' }, /^response_time_s/],
    [{ response_time_s: '0x10' }, /^response_time_s/],
    [{ order: 'first' }, /^order "first" must be a number/],
    [{ ts: 'yesterday' }, /^ts "yesterday" must be/],
    [{ ts: '-1' }, /^ts "-1" must be in 1970 or later/],
    [{ ts: '2026-05-31T12:06:00Z' }, /^ts .* at most 5 minutes/],
    [{ ts: '1e300' }, /^ts/],
  ];
  for (const [fields, reason] of invalid) {
    const result = check(typeof fields === 'string' ? fields : { ...valid, ...fields });
    assert.match(String(result), reason, JSON.stringify(fields));
  }
});

test('createOrderCheck finds rows that go backwards, for the learners that it saw last', () => {
  const goesBackwards = createOrderCheck(2);
  const rows: [user: string, order: number | null, backwards: boolean][] = [
    ['a', 2, false],
    ['b', 1, false],
    ['a', 2, false],
    ['a', 1, true],
    ['a', null, false],
    ['c', 5, false],
    ['b', 0, false],
    ['c', 4, true],
  ];
  for (const [user, order, backwards] of rows) assert.equal(goesBackwards(user, order), backwards, user);
});
