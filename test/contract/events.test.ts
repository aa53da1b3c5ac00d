/** POST /api/v1/track-answer: accepted events and the response. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callerOf, event, outcomeOf } from '../support/http/http.js';
import { sharedService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';

const service = await sharedService();
const caller = callerOf(service, service.key);

const statusOf = async (body: unknown): Promise<number> => (await caller.track(body)).status;

/** An event with a field of this JSON text, which JSON.stringify might not produce. */
const withField = (name: string, json: string): string =>
  `{"user_id":"u","skill_id":"s","is_correct":true,${JSON.stringify(name)}:${json}}`;

test('track-answer returns the seven fields, rounded to 4 decimals', async () => {
  const user = event({ user_id: 'seven' });
  const first = await caller.track(user);
  assert.deepEqual([first.status, first.json.success, typeof first.json.message], [200, true, 'string']);
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
  assert.deepEqual([data.mastery_before, data.total_attempts, data.correct_attempts], [0.6927, 2, 1]);
  assert.ok(Math.abs(data.velocity - (data.mastery_after - data.mastery_before)) < 1e-9);
});

const fields: Record<string, readonly [accepted: readonly string[], rejected: readonly string[]]> = {
  is_correct: [
    ['true', 'false'],
    ['null', '1', '0', '"true"', '[]', '{}'],
  ],
  time_spent_seconds: [
    ['0', '86400', '1.0', '1e2', '-0', 'null'],
    ['-1', '86401', '1.5', '"1"', 'true', '1e999', '-1e999', '[1]'],
  ],
  confidence_score: [
    ['1', '5', '3.0', 'null'],
    ['0', '6', '2.5', '"3"', '1e999', 'false'],
  ],
  question_difficulty: [
    ['-3', '3', '0.5', '-0', '-0.0', '1e-300', 'null'],
    ['3.0001', '-3.0001', '1e999', '"1"'],
  ],
  event_id: [
    ['"e"', 'null'],
    ['""', '1', 'true', '[]'],
  ],
  item_id: [
    ['"i"', 'null'],
    ['""', '1', '{}'],
  ],
  occurred_at: [
    ['null', '"2020-01-01T00:00:00Z"'],
    ['1577836800', '""', '"yesterday"', '[]'],
  ],
  unknown_field: [['1', 'null', '"\\ud800"', '{"a":[{}]}', `${'['.repeat(7000)}${']'.repeat(7000)}`], []],
};

for (const [name, [accepted, rejected]] of Object.entries(fields)) {
  test(`track-answer validates type and range of ${name}`, async () => {
    for (const json of accepted) assert.equal(await statusOf(withField(name, json)), 200, json.slice(0, 40));
    for (const json of rejected) {
      const response = await caller.track(withField(name, json));
      assert.equal(outcomeOf(response), '400 INVALID_REQUEST', json);
      assert.equal(response.json.error.details[0].path, name);
    }
  });
}

/** By the status of the response. Code points count, not graphemes. */
const ids: Readonly<Record<number, readonly string[]>> = {
  200: [
    'x'.repeat(128),
    '😀'.repeat(128),
    ' a/b\\N "c" \\t',
    '...',
    './',
    '%2e',
    'a\ufeffb',
    'a\u2028b',
    'a\u00a0b',
  ],
  400: [
    ...['', 'x'.repeat(129), '😀'.repeat(129), '👨‍👩‍👧'.repeat(26), `e${'\u0301'.repeat(128)}`],
    ...['.', '..', 'a\u0000', 'a\u001fb', 'a\nb', 'a\u007f', 'a\u009fb', 'a\ud83d', '\ude00a'],
  ],
};

test('track-answer limits ids to 1 to 128 characters without controls and lone surrogates', async () => {
  for (const name of ['user_id', 'skill_id', 'item_id', 'event_id'])
    for (const [status, some] of Object.entries(ids))
      for (const id of some)
        assert.equal(await statusOf(event({ [name]: id })), Number(status), `${name}: ${JSON.stringify(id)}`);
});

test('track-answer explains which ids and which time are rejected', async () => {
  const messageOf = async (change: Record<string, unknown>) =>
    (await caller.track(event(change))).json.error.details[0].message;
  assert.equal(await messageOf({ user_id: '..' }), 'must not be "." or "..", which clients remove from URLs');
  assert.equal(await messageOf({ skill_id: '.' }), await messageOf({ user_id: '..' }));
  assert.match(await messageOf({ user_id: '\n' }), /control characters/);
  assert.equal(await messageOf({ time_spent_seconds: 30.5 }), 'must be an integer (whole seconds)');
  assert.equal(await messageOf({ confidence_score: 2.5 }), 'must be integer');
});

test('track-answer returns 400 with the path of a required field that is missing, null or mistyped', async () => {
  for (const name of ['user_id', 'skill_id', 'is_correct'])
    for (const value of [undefined, null, 1, [], {}]) {
      const { status, json } = await caller.track(event({ [name]: value }));
      assert.equal(status, 400, `${name}: ${value}`);
      assert.deepEqual(valuesOf(json.error.details, 'path'), [name]);
    }
  const { json } = await caller.track({ user_id: 'a', skill_id: 7, confidence_score: 9 });
  const paths = ['confidence_score', 'is_correct', 'skill_id'];
  assert.deepEqual(valuesOf(json.error.details, 'path').sort(), paths);
});

const malformed: Record<string, string | Buffer> = {
  truncated: '{"user_id":"u","skill_id":"s","is_corr',
  'truncated in an escape': '{"user_id":"\\u00',
  NaN: withField('question_difficulty', 'NaN'),
  Infinity: withField('question_difficulty', 'Infinity'),
  'a leading zero': withField('time_spent_seconds', '01'),
  'a trailing comma': '{"user_id":"u","skill_id":"s","is_correct":true,}',
  'a comment': '{"user_id":"u"/*c*/,"skill_id":"s","is_correct":true}',
  'two values': `${withField('a', '1')}{}`,
  empty: '',
  blanks: '  \n',
  'an array': '[]',
  'a string': '"x"',
  'a number': '7',
  null: 'null',
  'a BOM': `\ufeff${withField('a', '1')}`,
  'UTF-16': Buffer.from(withField('a', '1'), 'utf16le'),
  'an invalid byte': Buffer.from('7b22757365725f6964223a22ff227d', 'hex'),
  'an overlong encoding': Buffer.from([0x22, 0xc0, 0xaf, 0x22]),
  'an encoded surrogate': Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]),
  'a raw control character': withField('a', '"\u0001"'),
  'NUL bytes': Buffer.alloc(100),
  'unclosed arrays': '['.repeat(16_000),
};

test('track-answer returns 400 for a body that is not the JSON of an event', async () => {
  for (const [name, body] of Object.entries(malformed))
    assert.equal(outcomeOf(await caller.track(body)), '400 INVALID_REQUEST', name);
});

test('track-answer uses the last value of a repeated key and counts the answer once', async () => {
  const repeated = '"skill_id":"a","skill_id":"b","is_correct":false,"is_correct":true';
  assert.equal(await statusOf(`{"user_id":"dup",${repeated}}`), 200);
  const [skill, ...others] = (await caller.get('/api/v1/mastery/dup')).json.data.skills;
  const counted = [skill.skill_id, skill.total_attempts, skill.correct_attempts, others];
  assert.deepEqual(counted, ['b', 1, 1, []]);
});

test('track-answer compares ids byte by byte and never normalises them', async () => {
  const names = ['café', 'cafe\u0301', 'CAFÉ', 'admin', 'аdmin', 'admin\u200b', 'ADMIN', 'admin ', 'ﬁ', 'fi'];
  for (const user_id of names)
    assert.equal((await caller.track(event({ user_id }))).json.data.total_attempts, 1, user_id);
});

test('track-answer accepts parameters of the content type and the identity encoding', async () => {
  const body = JSON.stringify(event());
  const parameters = [
    '; charset=utf-8',
    ';charset="UTF-8"',
    '; profile=x; charset=utf-8',
    '; p="; charset=x"',
  ];
  for (const type of ['json', 'JSON', ...parameters.map((text) => `json${text}`)]) {
    const { status } = await caller.raw({ body, headers: { 'Content-Type': `application/${type}` } });
    assert.equal(status, 200, type);
  }
  assert.equal((await caller.raw({ body, headers: { 'Content-Encoding': 'identity' } })).status, 200);
});

const minutesAhead = (minutes: number): string => new Date(Date.now() + minutes * 60_000).toISOString();

test('track-answer accepts occurred_at in RFC 3339, from 1970 to 5 minutes in the future', async () => {
  const accepted = [
    ...['2020-01-01T00:00:00Z', '2020-01-01t00:00:00z', '2020-01-01T00:00:00.123456789Z'],
    ...['2020-01-01T00:00:00+05:30', '2020-01-01T00:00:00-00:00', '2024-02-29T12:00:00Z'],
    ...['2016-12-31T23:59:60Z', '2016-12-31T18:59:60.5-05:00'],
    ...['1970-01-01T00:00:00Z', '1969-12-31T23:30:00-01:00'],
  ];
  const outOfRange = [
    ...['9999-12-31T23:59:59Z', '1969-12-31T23:59:59.999Z', '1970-01-01T00:00:00+00:01'],
    ...['0000-01-01T00:00:00Z', '2023-02-29T00:00:00Z', '2020-04-31T00:00:00Z', '2020-13-01T00:00:00Z'],
    ...['2020-00-01T00:00:00Z', '2020-01-01T24:00:00Z', '2020-01-01T00:60:00Z', '2020-01-01T00:00:61Z'],
    ...['2016-12-31T23:58:60Z', '2020-01-01T00:00:00+24:00'],
  ];
  const wrongFormat = [
    ...['2020-01-01T00:00:00+0530', '2020-01-01T00:00:00', '2020-01-01T00:00Z', '2020-01-01'],
    ...['2020-01-01 00:00:00Z', '2020-01-01T00:00:00,5Z', '2020-01-01T00:00:00.Z', '2020-1-1T00:00:00Z'],
    ...['+002020-01-01T00:00:00Z', '２０２０-01-01T00:00:00Z', '2020-01-01T00:00:00Z\n'],
  ];
  for (const occurred_at of [...accepted, minutesAhead(4)])
    assert.equal(await statusOf(event({ occurred_at })), 200, occurred_at);
  for (const occurred_at of [...outOfRange, minutesAhead(6), ...wrongFormat]) {
    const { status, json } = await caller.track(event({ occurred_at }));
    assert.deepEqual([status, json.error?.details[0].path], [400, 'occurred_at'], occurred_at);
  }
});

test('track-answer counts a leap second as the second before, and late answers without decay', async () => {
  const late = event({ user_id: 'leap', occurred_at: '2016-12-31T23:59:60Z' });
  await caller.track(late);
  const { json } = await caller.get('/api/v1/mastery/leap');
  assert.equal(json.data.skills[0].last_attempt_at, '2016-12-31T23:59:59.000Z');
  const next = await caller.track({ ...late, occurred_at: '2010-01-01T00:00:00Z' });
  assert.equal(next.json.data.mastery_before, 0.6927);
});
