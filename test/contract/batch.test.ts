/** POST /api/v1/track-answers: formats, sizes, and what a batch tells of each of its events. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { askInTurn, takeBack } from '../support/builders/learner-data.js';
import { callerOf, event, jsonOf } from '../support/http/http.js';
import { sharedService } from '../support/servers/service.js';

const service = await sharedService();
const caller = callerOf(service, service.key);
const path = '/api/v1/track-answers';

const post = async (body: string | Buffer, headers: Record<string, string> = {}) => {
  const answer = await caller.raw({ path, body, headers });
  return { ...answer, json: jsonOf(answer) };
};
const ndjson = { 'Content-Type': 'application/x-ndjson' };
const gzip = { 'Content-Encoding': 'gzip' };
const many = (n: number, change: Record<string, unknown> = {}) =>
  Array.from({ length: n }, () => event(change));

interface Result {
  index: number;
  status: number;
  data?: { total_attempts: number; mastery_before: number; mastery_after: number };
  error?: { code: string; message: string; details?: { path: string }[] };
  replayed?: boolean;
}
const statusesOf = (results: Result[]) => results.map(({ status }) => status);

test('all accepted: 200, in order, and a learner sees its earlier answers', async () => {
  const user_id = 'in-order';
  const { status, json } = await caller.trackAll(many(5, { user_id }));
  assert.equal(status, 200);
  assert.equal(json.success, true);
  assert.equal(typeof json.message, 'string');
  const { accepted, rejected, results } = json.data;
  assert.deepEqual([accepted, rejected], [5, 0]);
  assert.deepEqual(
    results.map(({ index }: Result) => index),
    [0, 1, 2, 3, 4],
  );
  results.forEach(({ data }: Result, i: number) => {
    assert.equal(data?.total_attempts, i + 1);
    if (i > 0) assert.equal(data?.mastery_before, results[i - 1].data.mastery_after);
  });
});

test('some accepted: 207, each result stands alone', async () => {
  const used = event({ event_id: 'used' });
  await caller.track(used);
  const { status, json } = await caller.trackAll([
    event(),
    { ...event(), is_correct: 'yes' },
    7,
    null,
    { ...used, is_correct: false },
    used,
    event(),
  ]);
  assert.equal(status, 207);
  assert.equal(json.success, true);
  assert.deepEqual([json.data.accepted, json.data.rejected], [3, 4]);
  const results: Result[] = json.data.results;
  assert.deepEqual(statusesOf(results), [200, 400, 400, 400, 422, 200, 200]);
  assert.equal(results[1]?.error?.details?.[0]?.path, 'events/1/is_correct');
  assert.match(results[2]?.error?.details?.[0]?.path ?? '', /^events\/2/);
  assert.equal(results[4]?.error?.code, 'IDEMPOTENCY_KEY_REUSED');
  assert.equal(results[5]?.replayed, true);
  for (const result of results) assert.equal('data' in result, result.status === 200);
});

test("none accepted and every cause is the caller's: 400 with details per event", async () => {
  const used = event({ event_id: 'used' });
  await caller.track(used);
  const { status, json } = await caller.trackAll([
    {},
    { ...event(), confidence_score: 9 },
    { ...used, is_correct: false },
  ]);
  assert.deepEqual([status, json.success, json.error.code], [400, false, 'INVALID_REQUEST']);
  const paths = json.error.details.map((detail: { path: string }) => detail.path);
  for (const wanted of ['events/0/user_id', 'events/0/skill_id', 'events/0/is_correct']) {
    assert.ok(paths.includes(wanted), wanted);
  }
  assert.ok(paths.includes('events/1/confidence_score'));
  assert.ok(paths.some((each: string) => each.startsWith('events/2')));
});

test('1 to 1000 events', async () => {
  assert.equal((await caller.trackAll([])).status, 400);
  assert.equal((await caller.trackAll(many(1001))).status, 400);
  const { status, json } = await caller.trackAll(many(1000, { user_id: 'thousand' }));
  assert.deepEqual([status, json.data.accepted], [200, 1000]);
  assert.equal(json.data.results[999].data.total_attempts, 1000);
});

const malformed: readonly (readonly [string, string])[] = [
  ['not JSON', '{"events":['],
  ['an array', JSON.stringify([event()])],
  ['no events', '{}'],
  ['events null', '{"events":null}'],
  ['events an object', '{"events":{"0":{}}}'],
  ['events a string', '{"events":"abc"}'],
  ['a single event', JSON.stringify(event())],
  ['deep nesting', `{"events":[${'['.repeat(200_000)}${']'.repeat(200_000)}]}`],
  ['many wrong events', `{"events":[${'{},'.repeat(999)}{}]}`],
  ['far too many events', `{"events":[${'1,'.repeat(400_000)}1]}`],
];

for (const [what, body] of malformed) {
  test(`${what}: 400`, async () => {
    const { status, json } = await post(body);
    assert.deepEqual([status, json.error.code], [400, 'INVALID_REQUEST']);
  });
}

test('far too many events are refused at once, whatever is wrong with each', async () => {
  const refuse = async (faults: number) => {
    const body = gzipSync('x\n'.repeat(faults));
    const before = process.cpuUsage();
    const { status, json } = await post(body, { ...gzip, ...ndjson });
    // Of the service, which is in this process.
    const { user, system } = process.cpuUsage(before);
    return { status, details: json.error?.details, cpu: user + system };
  };
  const { cpu: allowed } = await refuse(1000);
  const { status, details, cpu } = await refuse(500_000);
  assert.deepEqual([status, details], [400, [{ path: 'events', message: 'must have 1 to 1000 items' }]]);
  assert.ok(cpu < 20 * allowed, `${cpu} us, and ${allowed} us for as many as are allowed`);
});

test('unknown fields beside events are ignored', async () => {
  const { status } = await post(JSON.stringify({ events: [event()], other: [1] }));
  assert.equal(status, 200);
});

test("NDJSON: blank lines are skipped, a bad line is its index's 400", async () => {
  const lines = [JSON.stringify(event()), '', '   ', '{"user_id":', JSON.stringify(event()), ''];
  for (const end of ['\n', '\r\n']) {
    const { status, json } = await post(lines.join(end), ndjson);
    assert.equal(status, 207);
    assert.deepEqual(statusesOf(json.data.results), [200, 400, 200]);
    assert.match(json.data.results[1].error.details[0].path, /^events\/1/);
  }
  assert.equal((await post(JSON.stringify(event()), ndjson)).status, 200, 'no line feed at the end');
  assert.equal((await post('\n\n \n', ndjson)).status, 400, 'no event at all');
  assert.equal((await post('x\ny\n', ndjson)).status, 400);
  assert.equal((await post(Buffer.from([0xff, 0x0a]), ndjson)).status, 400, 'invalid UTF-8');
  assert.equal((await post('{}\n'.repeat(1001), ndjson)).status, 400);
  const all = `${many(1000)
    .map((each) => JSON.stringify(each))
    .join('\n')}\n`;
  assert.equal((await post(all, ndjson)).json.data.accepted, 1000);
});

test('gzip: valid, a bomb, corrupt, cut off', async () => {
  const body = Buffer.from(JSON.stringify({ events: many(3) }));
  assert.equal((await post(gzipSync(body), gzip)).status, 200);
  assert.equal((await post(gzipSync(`${JSON.stringify(event())}\n`), { ...gzip, ...ndjson })).status, 200);
  assert.equal((await post(gzipSync(body), { 'Content-Encoding': 'GZIP' })).status, 200);
  const bomb = gzipSync(Buffer.alloc(1024 * 1024 + 1, 32));
  assert.ok(bomb.length < 16 * 1024);
  const refused = await post(bomb, gzip);
  assert.deepEqual([refused.status, refused.json.error.code], [413, 'PAYLOAD_TOO_LARGE']);
  assert.equal((await post(gzipSync(Buffer.alloc(50_000_000)), gzip)).status, 413);
  for (const bytes of [
    body,
    gzipSync(body).subarray(0, 40),
    Buffer.alloc(0),
    gzipSync(body).fill(7, 20, 40),
  ]) {
    const corrupt = await post(bytes, gzip);
    assert.deepEqual([corrupt.status, corrupt.json.error.code], [400, 'INVALID_REQUEST']);
  }
  assert.equal((await post(gzipSync(body))).status, 400, 'not announced');
});

test('1 MiB fits, one byte more does not', async () => {
  const body = JSON.stringify({ events: [event()] });
  const fits = body.padEnd(1024 * 1024, ' ');
  assert.equal((await post(fits)).status, 200);
  assert.equal((await post(`${fits} `)).status, 413);
  assert.equal((await post(gzipSync(fits), gzip)).status, 200);
});

test('Idempotency-Key K stands for K/i, and an event_id of the body wins', async () => {
  const user_id = 'batch-key';
  const events = [event({ user_id }), event({ user_id, event_id: 'own' }), event({ user_id })];
  const key = { 'Idempotency-Key': '"K"' };
  const first = await caller.trackAll(events, key);
  assert.deepEqual([first.status, first.json.data.accepted], [200, 3]);
  const again = await caller.trackAll(events, key);
  assert.equal(again.json.data.accepted, 3);
  for (const [i, result] of again.json.data.results.entries()) {
    assert.equal(result.replayed, true);
    assert.deepEqual(result.data, first.json.data.results[i].data);
  }
  for (const event_id of ['K/0', 'own', 'K/2']) {
    const { headers } = await caller.track({ ...events[0], event_id });
    assert.equal(headers['idempotent-replayed'], 'true', event_id);
  }
  const fresh = await caller.track({ ...events[0], event_id: 'K/1' });
  assert.equal(fresh.headers['idempotent-replayed'], undefined);
});

test('an event whose K/i is too long for an id is refused alone: nobody could take it back', async () => {
  const user_id = 'long-batch-key';
  const events = Array.from({ length: 12 }, (_, i) => event({ user_id, event_id: i === 11 ? 'own' : null }));
  const { status, json } = await caller.trackAll(events, { 'Idempotency-Key': 'k'.repeat(126) });
  assert.equal(status, 207);
  assert.deepEqual(statusesOf(json.data.results), [...Array(10).fill(200), 400, 200]);
  assert.equal(json.data.results[10].error.details[0].path, 'events/10/event_id');
  const { json: list } = await askInTurn(() => caller.get(`/api/v1/learners/${user_id}/attempts`));
  assert.equal(list.data.total_attempts, 11);
  for (const { event_id } of list.data.attempts) {
    assert.equal((await takeBack(caller, user_id, event_id)).status, 200, event_id);
  }
});

test("a repeated event_id inside the batch gets the first one's answer", async () => {
  const one = event({ event_id: 'twice' });
  const { status, json } = await caller.trackAll([one, event(), one, { ...one, skill_id: 'other' }]);
  assert.equal(status, 207);
  const results: Result[] = json.data.results;
  assert.deepEqual(statusesOf(results), [200, 200, 200, 422]);
  assert.deepEqual(results[2]?.data, results[0]?.data);
  assert.deepEqual([results[0]?.replayed, results[2]?.replayed], [undefined, true]);
  const { json: mastery } = await caller.get(`/api/v1/mastery/${one.user_id}`);
  assert.equal(mastery.data.skills[0].total_attempts, 1);
});
