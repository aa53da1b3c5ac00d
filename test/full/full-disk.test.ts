/** A disk that runs full under the embedded servers: answers are refused or wait, and all goes on when there is room. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { everyView, oldAnswers, store } from '../support/builders/old-answers.js';
import { runCommand } from '../support/commands/command.js';
import { type Caller, callerOf, event } from '../support/http/http.js';
import { allOnce, countOf, counts } from '../support/inspect/warehouse.js';
import {
  clickhouseOf,
  dataFolder,
  type Scoped,
  type Service,
  startService,
} from '../support/servers/service.js';
import { mountSmallDisk, noSmallDisks } from '../support/servers/small-disk.js';
import { waitFor } from '../support/wait.js';

const reason = noSmallDisks();
const options = { skip: reason ?? false, timeout: 600_000 };

/** The embedded servers write several megabytes before the first answer. */
const megabytes = 150;

/** Ends what was begun last first: the service, then its disk, then the folder. */
function inReverse(t: TestContext): Scoped {
  const ends: Parameters<Scoped['after']>[0][] = [];
  t.after(async () => {
    for (const end of ends.reverse()) await end();
  });
  return { after: (end) => ends.push(end) };
}

/** A folder of the test. */
async function folder(scope: Scoped): Promise<string> {
  const { path, remove } = await dataFolder();
  scope.after(remove);
  return path;
}

interface Client {
  /** Posts fifty answers, and the same ones until they are confirmed. @returns statuses that came before */
  post(atMost?: number): Promise<number[]>;
  confirmed(): number;
}

function clientOf(caller: Caller): Client {
  let confirmed = 0;
  let sent = 0;
  let unsure: object[] = [];
  const more = (): object[] =>
    Array.from({ length: 50 }, () => event({ user_id: `u-${sent % 7}`, event_id: `e-${sent++}` }));
  return {
    confirmed: () => confirmed,
    post: async (atMost = 1) => {
      const statuses: number[] = [];
      for (let i = 0; i < atMost; i++) {
        if (unsure.length === 0) unsure = more();
        const { status, headers } = await caller.trackAll(unsure);
        statuses.push(status);
        if (status === 503) assert.equal(headers['retry-after'], '1');
        if (status !== 200) continue;
        confirmed += unsure.length;
        unsure = [];
      }
      return statuses;
    },
  };
}

/** Each confirmed answer once, in ClickHouse as in Redis. */
async function assertAll(t: Scoped, service: Service, caller: Caller, expected: number): Promise<void> {
  const clickhouse = clickhouseOf(t, service);
  await waitFor('every row', async () => {
    const found = await counts(clickhouse).catch(() => null);
    return found?.rows === expected && found.skill === expected && found.learner === expected;
  });
  assert.deepEqual(await counts(clickhouse), allOnce(expected));
  let total = 0;
  for (let i = 0; i < 7; i++) {
    const { status, json } = await caller.get(`/api/v1/mastery/u-${i}`);
    if (status === 200) total += json.data.skills[0].total_attempts;
  }
  assert.equal(total, expected);
}

for (const embeddedRedisFsync of ['everysec', 'always'] as const) {
  const name = `one disk for both, ${embeddedRedisFsync}: answers get 503 until there is room, then all goes on by itself`;
  test(name, options, async (t) => {
    const scope = inReverse(t);
    const disk = mountSmallDisk(scope, await folder(scope), megabytes);
    const service = await startService(scope, { dataDir: disk.path, embeddedRedisFsync });
    const caller = callerOf(service, service.key);
    const ready = async () => (await caller.raw({ method: 'GET', path: '/readyz' })).status;
    const client = clientOf(caller);
    assert.deepEqual(await client.post(), [200]);
    await waitFor('a full disk', async () => {
      disk.fill();
      return (await client.post()).includes(503);
    });
    for (let i = 0; i < 3; i++) {
      disk.fill();
      await sleep(1000);
      assert.deepEqual(await client.post(), [503], 'nothing is confirmed that may be lost');
    }
    assert.equal(await ready(), 503);
    disk.empty();
    await waitFor('answers', async () => (await client.post()).includes(200));
    await waitFor('readiness', async () => (await ready()) === 200);
    await client.post(5);
    await assertAll(t, service, caller, client.confirmed());
  });
}

test("ClickHouse's own disk: answers go on and wait, then are stored once", options, async (t) => {
  const scope = inReverse(t);
  const dataDir = await folder(scope);
  const disk = mountSmallDisk(scope, join(dataDir, 'clickhouse'), megabytes);
  const service = await startService(scope, { dataDir });
  const caller = callerOf(service, service.key);
  const client = clientOf(caller);
  await client.post();
  disk.fill();
  for (let i = 0; i < 8; i++) {
    assert.deepEqual(await client.post(), [200]);
    await sleep(1000);
    disk.fill();
  }
  const { json } = await caller.get('/api/v1/health');
  const { outbox_length, parked } = json.data.checks.pipeline;
  assert.ok(outbox_length > 0, 'rows wait');
  assert.equal(parked, 0, 'what there is no room for is not taken for a bad row');
  disk.empty();
  await client.post();
  await assertAll(t, service, caller, client.confirmed());
});

test('old answers on a full disk: they are kept, and go when there is room', options, async (t) => {
  const scope = inReverse(t);
  const dataDir = await folder(scope);
  const disk = mountSmallDisk(scope, join(dataDir, 'clickhouse'), megabytes);
  const service = await startService(scope, { dataDir });
  const clickhouse = clickhouseOf(scope, service);
  const rows = oldAnswers([1, 2]);
  await store(clickhouse, rows);
  const before = await everyView(clickhouse);
  const retain = () => runCommand('retain', { DATA_DIR: dataDir }, '--days', '100');
  disk.fill();
  const full = await retain();
  assert.deepEqual([full.code, full.out], [1, '']);
  assert.match(full.err, /NOT_ENOUGH_SPACE|[Nn]o space left|not enough space/);
  assert.equal(await countOf(clickhouse, 'attempts'), rows.length, 'nothing is dropped');
  assert.deepEqual(await everyView(clickhouse), before);
  disk.empty();
  const done = await retain();
  assert.deepEqual([done.code, done.err], [0, '']);
  assert.equal(await countOf(clickhouse, 'attempts'), 0);
  assert.deepEqual(await everyView(clickhouse), before);
});

test('a start on a full disk ends with one plain line', options, async (t) => {
  const scope = inReverse(t);
  const disk = mountSmallDisk(scope, await folder(scope), 1);
  disk.fill();
  await assert.rejects(startService(scope, { dataDir: disk.path }), {
    name: 'StartError',
    message: /DATA_DIR: .* cannot be written: ENOSPC/,
  });
});
