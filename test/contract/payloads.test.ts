/** Bodies made to cost more than they should: each is refused or counted, quickly, and its memory comes back. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { hashEventId } from '../../src/store/learners/event-ids.js';
import { callerOf, event, openWire, type RequestParts, rawRequest } from '../support/http/http.js';
import { dataFolder } from '../support/servers/service.js';
import { launchService } from '../support/servers/service-process.js';

const folder = await dataFolder();
const key = 'payloads';
/** A process of its own, so that its memory is its own. */
const service = await launchService(
  { after },
  { DATA_DIR: folder.path, API_KEYS: `${key}:default:1000000000`, LOG_LEVEL: 'error' },
);
after(folder.remove);
const caller = callerOf(service, key);

const batch = '/api/v1/track-answers';
const gzip = { 'Content-Encoding': 'gzip', 'Content-Type': 'application/json' };
const lines = { 'Content-Type': 'application/x-ndjson' };
const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const objects = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
const keysOf = (count: number): string => Array.from({ length: count }, (_, i) => `"k${i}":0`).join(',');
const plain = JSON.stringify(event());

const costly: readonly (readonly [string, number, RequestParts])[] = [
  ['arrays 8,000 deep', 400, { body: nested(8000) }],
  ['objects 2,500 deep', 400, { body: objects(2500) }],
  ['a batch 500,000 deep', 400, { path: batch, body: nested(500_000) }],
  ['a batch of objects 170,000 deep', 400, { path: batch, body: objects(170_000) }],
  ['a deep field that nobody knows', 200, { body: plain.replace('{', `{"x":${nested(7000)},`) }],
  ['1,500 fields that nobody knows', 200, { body: plain.replace('{', `{${keysOf(1500)},`) }],
  ['100,000 fields in a batch', 400, { path: batch, body: `{${keysOf(70_000)}}` }],
  ['a prototype', 400, { body: `{"__proto__":${plain}}` }],
  ['a constructor with a prototype', 400, { body: `{"constructor":{"prototype":${plain}}}` }],
  ['a prototype beside the fields', 200, { body: plain.replace('{', '{"__proto__":{"is_correct":false},') }],
  ['a number of 10,000 digits', 400, { body: `{"user_id":${'9'.repeat(10_000)}}` }],
  ['a number beyond doubles', 400, { body: plain.replace('}', ',"time_spent_seconds":1e999}') }],
  ['an id of 16,000 characters', 400, { body: plain.replace(/learner-\d+/, 'x'.repeat(15_000)) }],
  [
    'an id of half a megabyte',
    400,
    { path: batch, body: `{"events":[{"user_id":"${'x'.repeat(500_000)}"}]}` },
  ],
  ['500,000 events', 400, { path: batch, body: `{"events":[${'0,'.repeat(499_999)}0]}` }],
  [
    '1,000 events with faults in every field',
    400,
    {
      path: batch,
      body: JSON.stringify({
        events: Array.from({ length: 1000 }, () => ({
          user_id: 1,
          skill_id: 1,
          is_correct: 1,
          event_id: 1,
          item_id: 1,
        })),
      }),
    },
  ],
  ['a million blank lines', 400, { path: batch, headers: lines, body: '\n'.repeat(1_000_000) }],
  ['half a million lines', 400, { path: batch, headers: lines, body: '1\n'.repeat(500_000) }],
  ['a line of a megabyte', 400, { path: batch, headers: lines, body: `"${'x'.repeat(1_000_000)}"` }],
  ['gzip of 100 MB', 413, { path: batch, headers: gzip, body: gzipSync(Buffer.alloc(100_000_000, 32)) }],
  [
    'gzip of 100 MB in 1,000 members',
    413,
    {
      path: batch,
      headers: gzip,
      body: Buffer.concat(Array.from({ length: 1000 }, () => gzipSync(Buffer.alloc(100_000, 32)))),
    },
  ],
  ['gzip of gzip', 400, { path: batch, headers: gzip, body: gzipSync(gzipSync(plain)) }],
  [
    'gzip that is cut off',
    400,
    { path: batch, headers: gzip, body: gzipSync(plain.repeat(100)).subarray(0, -9) },
  ],
  [
    '500 learners with escapes',
    200,
    {
      path: '/api/v1/predictions',
      body: JSON.stringify({ user_ids: Array.from({ length: 500 }, () => '\u{1f600}'.repeat(128)) }),
    },
  ],
  [
    'a plan of 100,000 skills',
    413,
    {
      path: '/api/v1/predictions/a/what-if',
      body: JSON.stringify({ answers_per_day: 1, skills: Array.from({ length: 100_000 }, (_, i) => `${i}`) }),
    },
  ],
];

for (const [name, status, parts] of costly) {
  test(`${name}: ${status}`, async () => {
    const answer = await caller.raw(parts);
    assert.equal(answer.status, status, answer.text.slice(0, 500));
    assert.equal(Object.hasOwn(Object.prototype, 'is_correct'), false);
  });
}

test('what a prototype says is not taken for a field', async () => {
  const learner = event();
  const body = JSON.stringify(learner).replace('{', '{"__proto__":{"event_id":"polluted"},');
  const [first, second] = [await caller.track(body), await caller.track(body)];
  assert.deepEqual([first.status, second.headers['idempotent-replayed']], [200, undefined]);
});

const residentBytes = (): number =>
  1024 * Number(execFileSync('ps', ['-o', 'rss=', '-p', `${service.child.pid}`], { encoding: 'utf8' }));

test('a body in crumbs ends its connection, before it costs others their time', async () => {
  const headers = { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' };
  const before = residentBytes();
  const wires = Array.from({ length: 4 }, () => openWire(service.port));
  for (const wire of wires) {
    wire.send(rawRequest(key, { path: batch, headers }));
    wire.send(Buffer.from('1\r\n \r\n'.repeat(100_000)));
  }
  await Promise.all(wires.map((wire) => wire.closed()));
  assert.ok(residentBytes() - before < 100 * 1024 * 1024);
});

test('memory comes back: the third round of all of them at once takes no more than the first', async () => {
  const round = () => Promise.all(costly.flatMap(([, , parts]) => [caller.raw(parts), caller.raw(parts)]));
  await round();
  const before = residentBytes();
  for (let i = 0; i < 2; i++) await round();
  const grown = residentBytes() - before;
  assert.ok(grown < 200 * 1024 * 1024, `${grown / 1024 / 1024} MiB more`);
});

test('event ids that meet in one bucket are kept apart', async () => {
  const userId = 'collector';
  const isInFirst = (id: string): boolean => hashEventId(id)[0] === 0;
  const ids: string[] = [];
  for (let i = 0; ids.length < 2000; i++) if (isInFirst(`id-${i}`)) ids.push(`id-${i}`);
  const sent = (from: number, until: number) =>
    caller.trackAll(
      ids
        .slice(from, until)
        .map((event_id, i) => event({ user_id: userId, event_id, is_correct: i % 2 === 0 })),
    );
  for (const repeated of [false, true]) {
    for (const from of [0, 1000]) {
      const { status, json } = await sent(from, from + 1000);
      assert.equal(status, 200);
      const replays = json.data.results.filter(({ replayed }: { replayed?: true }) => replayed);
      assert.equal(replays.length, repeated ? 1000 : 0);
    }
  }
  const { json } = await caller.get(`/api/v1/mastery/${userId}`);
  assert.equal(json.data.skills[0].total_attempts, 2000);
});

test('ids that look alike are different learners', async () => {
  const alike = [
    'admin',
    'аdmin',
    'admin\u200b',
    'ad\u00admin',
    'ADMIN',
    'admin ',
    '\ufeffadmin',
    'e\u0301',
    '\u00e9',
    'ﬁ',
    'fi',
  ];
  for (const user_id of alike) {
    const { status, json } = await caller.track(event({ user_id }));
    assert.deepEqual([status, json.data.total_attempts], [200, 1], JSON.stringify(user_id));
  }
});
