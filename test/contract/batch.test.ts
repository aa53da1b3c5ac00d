/** POST /api/v1/track-answers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { askInTurn, takeBack } from '../support/builders/learner-data.js';
import { callerOf, event, outcomeOf } from '../support/http/http.js';
import { sharedService } from '../support/servers/service.js';

const service = await sharedService();
const caller = callerOf(service, service.key);

const post = (body: string | Buffer, headers: Record<string, string> = {}) =>
  caller.call({ path: '/api/v1/track-answers', body, headers });
const ndjson = { 'Content-Type': 'application/x-ndjson' };
const gzip = { 'Content-Encoding': 'gzip' };
const events = (count: number, change: Record<string, unknown> = {}) =>
  Array.from({ length: count }, () => event(change));

interface Result {
  readonly index: number;
  readonly status: number;
  readonly data?: { readonly total_attempts: number; readonly mastery_before: number };
  readonly error?: { readonly code: string; readonly details?: readonly { path: string }[] };
  readonly replayed?: boolean;
}
const statusesOf = (results: Result[]) => results.map(({ status }) => status);

test('track-answers returns 200 if all events are accepted, and applies the events of a learner in order', async () => {
  const { status, json } = await caller.trackAll(events(5, { user_id: 'in-order' }));
  assert.deepEqual([status, json.success, typeof json.message], [200, true, 'string']);
  const { accepted, rejected, results } = json.data;
  assert.deepEqual([accepted, rejected], [5, 0]);
  results.forEach(({ index, data }: Result, i: number) => {
    assert.deepEqual([index, data?.total_attempts], [i, i + 1]);
    if (i > 0) assert.equal(data?.mastery_before, results[i - 1].data.mastery_after);
  });
});

test('track-answers returns 207 if some events are rejected, with an independent result for each', async () => {
  const used = event({ event_id: 'used' });
  await caller.track(used);
  const twice = event({ event_id: 'twice' });
  const { status, json } = await caller.trackAll([
    twice,
    { ...event(), is_correct: 'yes' },
    7,
    null,
    { ...used, is_correct: false },
    used,
    twice,
    { ...twice, skill_id: 'other' },
    event(),
  ]);
  assert.deepEqual([status, json.success], [207, true]);
  assert.deepEqual([json.data.accepted, json.data.rejected], [4, 5]);
  const results: Result[] = json.data.results;
  assert.deepEqual(statusesOf(results), [200, 400, 400, 400, 422, 200, 200, 422, 200]);
  assert.equal(results[1]?.error?.details?.[0]?.path, 'events/1/is_correct');
  assert.match(results[2]?.error?.details?.[0]?.path ?? '', /^events\/2/);
  assert.equal(results[4]?.error?.code, 'IDEMPOTENCY_KEY_REUSED');
  assert.deepEqual(
    results.map(({ replayed }) => replayed ?? false),
    [false, false, false, false, false, true, true, false, false],
  );
  assert.deepEqual(results[6]?.data, results[0]?.data, 'a repeated id gets the first result');
  for (const result of results) assert.equal('data' in result, result.status === 200);
  const { json: mastery } = await caller.get(`/api/v1/mastery/${twice.user_id}`);
  assert.equal(mastery.data.skills[0].total_attempts, 1);
});

test('track-answers returns 400 with details per event if the caller caused every rejection', async () => {
  const used = event({ event_id: 'used' });
  await caller.track(used);
  const rejected = { ...used, is_correct: false };
  const answer = await caller.trackAll([{}, { ...event(), confidence_score: 9 }, rejected]);
  assert.equal(outcomeOf(answer), '400 INVALID_REQUEST');
  const paths: string[] = answer.json.error.details.map(({ path }: { path: string }) => path);
  const missing = ['user_id', 'skill_id', 'is_correct'].map((name) => `events/0/${name}`);
  for (const expected of [...missing, 'events/1/confidence_score'])
    assert.ok(paths.includes(expected), expected);
  assert.ok(paths.some((path) => path.startsWith('events/2')));
});

test('track-answers accepts 1 to 1,000 events', async () => {
  assert.equal((await caller.trackAll([])).status, 400);
  assert.equal((await caller.trackAll(events(1001))).status, 400);
  const { status, json } = await caller.trackAll(events(1000, { user_id: 'thousand' }));
  assert.deepEqual([status, json.data.accepted], [200, 1000]);
  assert.equal(json.data.results[999].data.total_attempts, 1000);
});

test('track-answers returns 400 for a malformed batch and ignores unknown fields', async () => {
  const malformed = [
    ...['{"events":[', '{}', '{"events":null}', '{"events":{"0":{}}}', '{"events":"abc"}'],
    ...[JSON.stringify(event()), JSON.stringify([event()])],
    `{"events":[${'['.repeat(200_000)}${']'.repeat(200_000)}]}`,
    `{"events":[${'{},'.repeat(999)}{}]}`,
    `{"events":[${'1,'.repeat(400_000)}1]}`,
  ];
  for (const body of malformed)
    assert.equal(outcomeOf(await post(body)), '400 INVALID_REQUEST', body.slice(0, 40));
  assert.equal((await post(JSON.stringify({ events: [event()], other: [1] }))).status, 200);
});

test('track-answers rejects a batch of too many events without validating each event', async () => {
  const reject = async (lines: number) => {
    const body = gzipSync('x\n'.repeat(lines));
    const before = process.cpuUsage();
    const { status, json } = await post(body, { ...gzip, ...ndjson });
    // The service is in this process.
    const { user, system } = process.cpuUsage(before);
    return { status, details: json.error?.details, cpu: user + system };
  };
  const { cpu: cpuOfMaximum } = await reject(1000);
  const { status, details, cpu } = await reject(500_000);
  assert.deepEqual([status, details], [400, [{ path: 'events', message: 'must have 1 to 1000 items' }]]);
  assert.ok(cpu < 20 * cpuOfMaximum, `${cpu} us, and ${cpuOfMaximum} us for 1,000 events`);
});

test('track-answers reads NDJSON: blank lines are skipped, a bad line gets 400 at its index', async () => {
  const lines = [JSON.stringify(event()), '', '   ', '{"user_id":', JSON.stringify(event()), ''];
  for (const end of ['\n', '\r\n']) {
    const { status, json } = await post(lines.join(end), ndjson);
    assert.equal(status, 207);
    assert.deepEqual(statusesOf(json.data.results), [200, 400, 200]);
    assert.match(json.data.results[1].error.details[0].path, /^events\/1/);
  }
  assert.equal((await post(JSON.stringify(event()), ndjson)).status, 200, 'no line feed at the end');
  for (const body of ['\n\n \n', 'x\ny\n', Buffer.from([0xff, 0x0a]), '{}\n'.repeat(1001)])
    assert.equal((await post(body, ndjson)).status, 400, body.toString().slice(0, 10));
  const all = events(1000).map((one) => `${JSON.stringify(one)}\n`);
  assert.equal((await post(all.join(''), ndjson)).json.data.accepted, 1000);
});

test('track-answers accepts gzip, and limits a body to 1 MiB after decompression', async () => {
  const body = Buffer.from(JSON.stringify({ events: events(3) }));
  const fits = body.toString().padEnd(1024 * 1024, ' ');
  const [invalid, tooLarge] = ['400 INVALID_REQUEST', '413 PAYLOAD_TOO_LARGE'];
  for (const [bytes, headers, expected] of [
    [gzipSync(body), gzip, '200'],
    [gzipSync(`${JSON.stringify(event())}\n`), { ...gzip, ...ndjson }, '200'],
    [gzipSync(body), { 'Content-Encoding': 'GZIP' }, '200'],
    [gzipSync(body), {}, invalid],
    [fits, {}, '200'],
    [gzipSync(fits), gzip, '200'],
    [`${fits} `, {}, tooLarge],
    [gzipSync(`${fits} `), gzip, tooLarge],
    [gzipSync(Buffer.alloc(50_000_000)), gzip, tooLarge],
    [body, gzip, invalid],
    [gzipSync(body).subarray(0, 40), gzip, invalid],
    [Buffer.alloc(0), gzip, invalid],
    [gzipSync(body).fill(7, 20, 40), gzip, invalid],
  ] as const)
    assert.equal(outcomeOf(await post(bytes, headers)), expected, `${bytes.length} bytes`);
});

test('track-answers gives event i without an event_id the id K/i of Idempotency-Key K', async () => {
  const user_id = 'batch-key';
  const sent = [event({ user_id }), event({ user_id, event_id: 'own' }), event({ user_id })];
  const key = { 'Idempotency-Key': '"K"' };
  const first = await caller.trackAll(sent, key);
  assert.deepEqual([first.status, first.json.data.accepted], [200, 3]);
  const again = await caller.trackAll(sent, key);
  assert.equal(again.json.data.accepted, 3);
  for (const [i, result] of again.json.data.results.entries())
    assert.deepEqual(result, { ...first.json.data.results[i], replayed: true });
  const replayed: (string | undefined)[] = [];
  for (const event_id of ['K/0', 'own', 'K/2', 'K/1'])
    replayed.push((await caller.track({ ...sent[0], event_id })).headers['idempotent-replayed']);
  assert.deepEqual(replayed, ['true', 'true', 'true', undefined]);
});

test('track-answers rejects only events with an id K/i that is too long to retract the answer by', async () => {
  const user_id = 'long-batch-key';
  const sent = Array.from({ length: 12 }, (_, i) => event({ user_id, event_id: i === 11 ? 'own' : null }));
  const { status, json } = await caller.trackAll(sent, { 'Idempotency-Key': 'k'.repeat(126) });
  assert.equal(status, 207);
  assert.deepEqual(statusesOf(json.data.results), [...Array(10).fill(200), 400, 200]);
  assert.equal(json.data.results[10].error.details[0].path, 'events/10/event_id');
  const { json: list } = await askInTurn(() => caller.get(`/api/v1/learners/${user_id}/attempts`));
  assert.equal(list.data.total_attempts, 11);
  const [newest] = list.data.attempts;
  assert.equal((await takeBack(caller, user_id, newest.event_id)).status, 200);
  assert.equal((await takeBack(caller, user_id, `${'k'.repeat(126)}/9`)).status, 200);
});
