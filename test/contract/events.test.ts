/** POST /api/v1/track-answer: what an event may hold, and what it returns. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callerOf, event } from '../support/http/http.js';
import { sharedService } from '../support/servers/service.js';

const service = await sharedService();
const caller = callerOf(service, service.key);

const statusOf = async (body: unknown): Promise<number> => (await caller.track(body)).status;

/** Text of an event whose field has this JSON text, which JSON.stringify could not make. */
const withField = (name: string, json: string): string =>
  `{"user_id":"u","skill_id":"s","is_correct":true,${JSON.stringify(name)}:${json}}`;

test('the seven fields of the answer, rounded to 4 decimals', async () => {
  const user = event({ user_id: 'seven' });
  const first = await caller.track(user);
  assert.equal(first.status, 200);
  assert.equal(first.json.success, true);
  assert.equal(typeof first.json.message, 'string');
  assert.deepEqual(first.json.data, {
    mastery_before: 0.3,
    mastery_after: 0.6927,
    velocity: 0.3927,
    plateau_detected: false,
    total_attempts: 1,
    correct_attempts: 1,
    recommendation: null,
  });
  const { data } = (await caller.track({ ...user, is_correct: false })).json;
  assert.equal(data.mastery_before, 0.6927);
  assert.deepEqual([data.total_attempts, data.correct_attempts], [2, 1]);
  assert.ok(Math.abs(data.velocity - (data.mastery_after - data.mastery_before)) < 1e-9);
});

const fields: readonly (readonly [name: string, accepted: readonly string[], refused: readonly string[]])[] =
  [
    ['is_correct', ['true', 'false'], ['null', '1', '0', '"true"', '[]', '{}']],
    [
      'time_spent_seconds',
      ['0', '86400', '1.0', '1e2', '-0', 'null'],
      ['-1', '86401', '1.5', '"1"', 'true', '1e999', '-1e999', '[1]'],
    ],
    ['confidence_score', ['1', '5', '3.0', 'null'], ['0', '6', '2.5', '"3"', '1e999', 'false']],
    [
      'question_difficulty',
      ['-3', '3', '0.5', '-0', '-0.0', '1e-300', 'null'],
      ['3.0001', '-3.0001', '1e999', '"1"'],
    ],
    ['event_id', ['"e"', 'null'], ['""', '1', 'true', '[]']],
    ['item_id', ['"i"', 'null'], ['""', '1', '{}']],
    ['occurred_at', ['null', '"2020-01-01T00:00:00Z"'], ['1577836800', '""', '"yesterday"', '[]']],
    ['unknown_field', ['1', 'null', '"\\ud800"', '{"a":[{}]}'], []],
    ['__proto__', ['1', '{"is_correct":7}'], []],
  ];

for (const [name, accepted, refused] of fields) {
  test(`${name}: what is taken and what is not`, async () => {
    for (const json of accepted) assert.equal(await statusOf(withField(name, json)), 200, json);
    for (const json of refused) {
      const answer = await caller.track(withField(name, json));
      assert.deepEqual([answer.status, answer.json.error.code], [400, 'INVALID_REQUEST'], json);
      assert.equal(answer.json.error.details[0].path, name);
    }
  });
}

const ids: readonly (readonly [string, string, number])[] = [
  ['128 characters', 'x'.repeat(128), 200],
  ['129 characters', 'x'.repeat(129), 400],
  ['128 emoji are 128 characters', '😀'.repeat(128), 200],
  ['129 emoji', '😀'.repeat(129), 400],
  ['code points count, not what is drawn', '👨‍👩‍👧'.repeat(26), 400],
  ['combining marks count', `e${'\u0301'.repeat(128)}`, 400],
  ['slashes, blanks, quotes, backslashes', ' a/b\\N "c" \\t', 200],
  ['a BOM inside', 'a\ufeffb', 200],
  ['a line separator', 'a\u2028b', 200],
  ['empty', '', 400],
  ['NUL', 'a\u0000', 400],
  ['unit separator', 'a\u001fb', 400],
  ['line feed', 'a\nb', 400],
  ['tab', 'a\tb', 400],
  ['DEL', 'a\u007f', 400],
  ['C1 control', 'a\u009fb', 400],
  ['NBSP is no control character', 'a\u00a0b', 200],
  ['lone high surrogate', 'a\ud83d', 400],
  ['lone low surrogate', '\ude00a', 400],
];

for (const name of ['user_id', 'skill_id', 'item_id', 'event_id']) {
  test(`${name} as an id`, async () => {
    for (const [what, id, status] of ids) assert.equal(await statusOf(event({ [name]: id })), status, what);
  });
}

test('required fields: absent, null and of another type', async () => {
  for (const name of ['user_id', 'skill_id', 'is_correct']) {
    for (const value of [undefined, null, 1, [], {}]) {
      const { status, json } = await caller.track(event({ [name]: value }));
      assert.equal(status, 400, `${name}: ${value}`);
      assert.deepEqual(
        json.error.details.map(({ path }: { path: string }) => path),
        [name],
      );
    }
  }
});

const bodies: readonly (readonly [string, string | Buffer])[] = [
  ['truncated', '{"user_id":"u","skill_id":"s","is_corr'],
  ['truncated in a string escape', '{"user_id":"\\u00'],
  ['NaN', withField('question_difficulty', 'NaN')],
  ['Infinity', withField('question_difficulty', 'Infinity')],
  ['a leading zero', withField('time_spent_seconds', '01')],
  ['a trailing comma', '{"user_id":"u","skill_id":"s","is_correct":true,}'],
  ['a comment', '{"user_id":"u"/*c*/,"skill_id":"s","is_correct":true}'],
  ['two values', `${withField('a', '1')}{}`],
  ['empty', ''],
  ['blanks', '  \n'],
  ['an array', '[]'],
  ['a string', '"x"'],
  ['a number', '7'],
  ['null', 'null'],
  ['a BOM', `\ufeff${withField('a', '1')}`],
  ['UTF-16', Buffer.from(withField('a', '1'), 'utf16le')],
  ['an invalid byte', Buffer.concat([Buffer.from('{"user_id":"'), Buffer.from([0xff]), Buffer.from('"}')])],
  ['an overlong encoding', Buffer.from([0x22, 0xc0, 0xaf, 0x22])],
  ['an encoded surrogate', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
  ['a raw control character', withField('a', '"\u0001"')],
  ['NUL bytes', Buffer.alloc(100)],
  ['deep nesting that ends too early', '['.repeat(16_000)],
];

for (const [what, body] of bodies) {
  test(`a body that is ${what}: 400`, async () => {
    const { status, json } = await caller.track(body);
    assert.deepEqual([status, json.error.code], [400, 'INVALID_REQUEST']);
  });
}

test('deep nesting in an unknown field is ignored like any unknown field', async () => {
  assert.equal(await statusOf(withField('x', `${'['.repeat(7000)}${']'.repeat(7000)}`)), 200);
});

test('of a repeated key the last value counts, once', async () => {
  const { json } = await caller.track(
    '{"user_id":"dup","skill_id":"a","skill_id":"b","is_correct":false,"is_correct":true}',
  );
  assert.equal(json.data.total_attempts, 1);
  const mastery = await caller.get('/api/v1/mastery/dup');
  assert.deepEqual(
    mastery.json.data.skills.map((s: { skill_id: string }) => s.skill_id),
    ['b'],
  );
});

test('ids are compared byte for byte, never normalised', async () => {
  const forms = ['caf\u00e9', 'cafe\u0301', 'CAF\u00c9'];
  for (const user_id of forms)
    assert.equal((await caller.track(event({ user_id }))).json.data.total_attempts, 1);
});

test('content types with parameters', async () => {
  const body = JSON.stringify(event());
  for (const type of [
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json; profile=x; charset=utf-8',
  ]) {
    const { status } = await caller.raw({ body, headers: { 'Content-Type': type } });
    assert.equal(status, 200, type);
  }
  const { status } = await caller.raw({ body, headers: { 'Content-Encoding': 'identity' } });
  assert.equal(status, 200);
});

const times: readonly (readonly [string, number])[] = [
  ['2020-01-01T00:00:00Z', 200],
  ['2020-01-01t00:00:00z', 200],
  ['2020-01-01T00:00:00.123456789Z', 200],
  ['2020-01-01T00:00:00+05:30', 200],
  ['2020-01-01T00:00:00-00:00', 200],
  ['2024-02-29T12:00:00Z', 200],
  ['2016-12-31T23:59:60Z', 200],
  ['2016-12-31T18:59:60.5-05:00', 200],
  ['1970-01-01T00:00:00Z', 200],
  ['1969-12-31T23:30:00-01:00', 200],
  ['9999-12-31T23:59:59Z', 400],
  ['1969-12-31T23:59:59.999Z', 400],
  ['1970-01-01T00:00:00+00:01', 400],
  ['0000-01-01T00:00:00Z', 400],
  ['2023-02-29T00:00:00Z', 400],
  ['2020-04-31T00:00:00Z', 400],
  ['2020-13-01T00:00:00Z', 400],
  ['2020-00-01T00:00:00Z', 400],
  ['2020-01-01T24:00:00Z', 400],
  ['2020-01-01T00:60:00Z', 400],
  ['2020-01-01T00:00:61Z', 400],
  ['2016-12-31T23:58:60Z', 400],
  ['2020-01-01T00:00:00+24:00', 400],
  ['2020-01-01T00:00:00+0530', 400],
  ['2020-01-01T00:00:00', 400],
  ['2020-01-01T00:00Z', 400],
  ['2020-01-01', 400],
  ['2020-01-01 00:00:00Z', 400],
  ['2020-01-01T00:00:00,5Z', 400],
  ['2020-01-01T00:00:00.Z', 400],
  ['+002020-01-01T00:00:00Z', 400],
  ['2020-1-1T00:00:00Z', 400],
  ['２０２０-01-01T00:00:00Z', 400],
  ['2020-01-01T00:00:00Z\n', 400],
];

const minutesAhead = (minutes: number): string => new Date(Date.now() + minutes * 60_000).toISOString();

test('occurred_at', async () => {
  for (const [occurred_at, status] of [...times, [minutesAhead(4), 200], [minutesAhead(6), 400]] as const) {
    const answer = await caller.track(event({ occurred_at }));
    assert.equal(answer.status, status, occurred_at);
    if (status === 400) assert.equal(answer.json.error.details[0].path, 'occurred_at');
  }
});

test('a leap second counts as the second before, and late answers are applied without decay', async () => {
  const late = event({ user_id: 'leap', occurred_at: '2016-12-31T23:59:60Z' });
  await caller.track(late);
  const { json } = await caller.get('/api/v1/mastery/leap');
  assert.equal(json.data.skills[0].last_attempt_at, '2016-12-31T23:59:59.000Z');
  const next = await caller.track({ ...late, occurred_at: '2010-01-01T00:00:00Z' });
  assert.equal(next.json.data.mastery_before, 0.6927);
});
