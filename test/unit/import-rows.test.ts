import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOrderCheck, parseAnswer, parseRow, type RawFields } from '../../src/services/import/rows.js';

const importedAt = Date.UTC(2026, 4, 31, 12);
const good = { user_id: 'u', skill_id: 's', correct: '1' };
const check = (fields: RawFields | string, startMs = 0) =>
  parseRow({ line: 7, fields }, (read) =>
    parseAnswer(read, 7, { tenant: 't', startMs, importedAt }, importedAt + 1),
  );

function event(fields: RawFields, startMs = 0) {
  const checked = check({ ...good, ...fields }, startMs);
  assert.ok(typeof checked !== 'string', String(checked));
  return checked.event;
}

test('a row of a file becomes an event with its line', () => {
  assert.deepEqual(event({ item_id: 'i', response_time_s: '12.75', ts: '1000.5' }), {
    tenant: 't',
    userId: 'u',
    skillId: 's',
    isCorrect: true,
    timeSpentSeconds: 12.75,
    confidenceScore: null,
    questionDifficulty: null,
    itemId: 'i',
    eventId: null,
    occurredAt: 1_000_500,
    occurredAtText: null,
    receivedAt: importedAt + 1,
    importLine: 7,
  });
});

test('empty, null and missing are absence', () => {
  for (const nothing of ['', null, undefined]) {
    const { itemId, timeSpentSeconds, occurredAt } = event({
      item_id: nothing,
      response_time_s: nothing,
      ts: nothing,
      order: nothing,
    });
    assert.deepEqual([itemId, timeSpentSeconds, occurredAt], [null, null, importedAt]);
  }
});

test('correct is 1, 0, true or false in any spelling of these', () => {
  for (const yes of ['1', '1.0', 'true', 'TRUE', ' 1 ', 1, true])
    assert.equal(event({ correct: yes }).isCorrect, true);
  for (const no of ['0', '0.0', 'false', 'False', 0, false])
    assert.equal(event({ correct: no }).isCorrect, false);
});

test('times are RFC 3339, or seconds since 1970 or since the start', () => {
  assert.equal(event({ ts: '2026-05-31T12:00:00+02:00' }).occurredAt, Date.UTC(2026, 4, 31, 10));
  assert.equal(event({ ts: 1.5 }).occurredAt, 1500);
  const start = Date.UTC(2005, 7, 1);
  assert.equal(event({ ts: '86400.25' }, start).occurredAt, start + 86_400_250);
  assert.equal(event({ ts: '1e3' }, start).occurredAt, start + 1_000_000);
  assert.equal(event({ ts: '2005-08-01T00:00:01Z' }, start).occurredAt, start + 1000);
});

test('what does not fit is told with its column', () => {
  const bad: [RawFields | string, RegExp][] = [
    ['cut', /^cut$/],
    [{ ...good, user_id: '' }, /^user_id is missing$/],
    [{ ...good, skill_id: null }, /^skill_id is missing$/],
    [{ ...good, user_id: 'a\tb' }, /^user_id "a\\tb" must be 1 to 128/],
    [{ ...good, user_id: 'a'.repeat(129) }, /^user_id .{60,70}\.\.\. must be 1 to 128/],
    [{ ...good, skill_id: 'a\uD800' }, /^skill_id/],
    [{ ...good, item_id: '\uFFFD' }, /^item_id is not valid UTF-8/],
    [{ ...good, user_id: { a: 1 } }, /^user_id .* must be a text/],
    [{ ...good, correct: '' }, /^correct is missing$/],
    [{ ...good, correct: 'yes' }, /^correct "yes" must be/],
    [{ ...good, correct: '0.5' }, /^correct/],
    [{ ...good, response_time_s: '-1' }, /^response_time_s/],
    [{ ...good, response_time_s: '86400.1' }, /^response_time_s/],
    [{ ...good, response_time_s: 'NaN' }, /^response_time_s/],
    [{ ...good, response_time_s: '0x10' }, /^response_time_s/],
    [{ ...good, order: 'first' }, /^order "first" must be a number/],
    [{ ...good, ts: 'yesterday' }, /^ts "yesterday" must be/],
    [{ ...good, ts: '-1' }, /^ts "-1" must not be before 1970/],
    [{ ...good, ts: '2026-05-31T12:06:00Z' }, /^ts .* at most 5 minutes/],
    [{ ...good, ts: '1e300' }, /^ts/],
  ];
  for (const [fields, reason] of bad) assert.match(String(check(fields)), reason, JSON.stringify(fields));
});

test('rows that go backwards are noticed for the learners seen last', () => {
  const goesBackwards = createOrderCheck(2);
  const seen = (user: string, order: number | null) => goesBackwards(user, order);
  assert.deepEqual([seen('a', 2), seen('b', 1), seen('a', 2), seen('a', 1)], [false, false, false, true]);
  assert.deepEqual([seen('a', null), seen('c', 5), seen('b', 0), seen('c', 4)], [false, false, false, true]);
});
