/** A Redis that fills up: callers are told in time, nothing is lost, and it goes on by itself. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readMemoryMb } from '../../bench/targets/processes.js';
import { sendSignal } from '../../src/embedded/supervisor.js';
import { createOutbox } from '../../src/store/outbox/outbox.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { seeded } from '../support/builders/random.js';
import { compare, resendAll } from '../support/fault/check.js';
import { type Clients, startClients } from '../support/fault/clients.js';
import { countedKey, type Stand, startSplit } from '../support/fault/stand.js';
import { callerOf, event } from '../support/http/http.js';
import { faultSeed, progress, roundsOf } from '../support/runner/long-form.js';
import { exitAfterTests } from '../support/servers/linger.js';
import { clickhouseOf, redisOf } from '../support/servers/service.js';
import { askUntil, waitFor } from '../support/wait.js';

exitAfterTests();

const mb = 2 ** 20;
const learners = Array.from({ length: 40 }, (_, i) => `pupil-${i}`);
/** Resident memory of the process that takes answers, MB, whatever is offered (docs/operations.md). */
const apiBoundMb = 600;

/** Sends as fast as it can, in large batches. */
const flood = (t: TestContext, { port, tenants }: Stand): Clients =>
  startClients(
    t,
    [1, 2].map((i) => ({
      port,
      tenants,
      learners,
      skills: ['algebra', 'reading'],
      loops: 8,
      hangUps: 0,
      largestBatch: 200,
      mostTakenBack: 0,
      name: `event-${i}`,
      seed: faultSeed + i,
    })),
  );

interface Reach {
  readonly redis: Awaited<ReturnType<typeof redisOf>>;
  figure(section: string, name: string): Promise<number>;
  limit(bytes: number): Promise<unknown>;
  drained(): Promise<boolean>;
}

async function reachOf(t: TestContext, stand: Stand): Promise<Reach> {
  const redis = await redisOf(t, stand.redisUrl);
  const { facts } = createOutbox(redis, defaultPartitions);
  return {
    redis,
    figure: async (section, name) =>
      Number(new RegExp(`^${name}[:=](?:count=)?(\\d+)`, 'm').exec(await redis.info(section))?.[1] ?? 0),
    limit: (bytes) => redis.config('SET', 'maxmemory', `${bytes}`),
    drained: async () => (await facts()).outboxLength === 0,
  };
}

/** Everything that was confirmed is there, once; nothing but 503 told that it was not. */
async function settle(t: TestContext, stand: Stand, clients: Clients, { drained }: Reach): Promise<void> {
  const ledger = await clients.stop();
  await waitFor('the outbox to be empty', drained, 180_000);
  const lost = await resendAll(stand, ledger.entries);
  const found = await compare(stand, clickhouseOf(t, stand), ledger.entries, learners);
  assert.deepEqual(
    { ...found, lost: found.lost + lost, faulty: ledger.faulty, failed: ledger.failed },
    { lost: 0, doubled: 0, differences: [], faulty: [], failed: 0 },
  );
  assert.ok(ledger.refused > 0);
}

test('with the pipeline stopped, answers are refused before Redis is full, until it is back', async (t) => {
  const stand = await startSplit(t, { fsync: 'everysec' });
  const reach = await reachOf(t, stand);
  const [pipeline = 0] = stand.pids('pipeline');
  const [api = 0] = stand.pids('api');
  const most = (await reach.figure('memory', 'used_memory')) + roundsOf(60) * mb;
  await reach.limit(most);
  sendSignal(pipeline, 'SIGSTOP');
  t.after(() => sendSignal(pipeline, 'SIGCONT'));
  const clients = flood(t, stand);
  const caller = callerOf(stand, 'tenant-b');
  const { headers, json } = await askUntil(
    'an answer to be refused',
    () => caller.track(event()),
    ({ status }) => status !== 200,
  );
  assert.equal(json.error.code, 'UNAVAILABLE');
  assert.match(headers['retry-after'] ?? '', /^\d+$/);
  progress('answers are refused');
  const worst = { redis: 0, api: 0 };
  for (let look = 0; look < 40; look++) {
    worst.redis = Math.max(worst.redis, await reach.figure('memory', 'used_memory'));
    worst.api = Math.max(worst.api, readMemoryMb(api));
    await sleep(50);
  }
  t.diagnostic(
    `Redis ${(worst.redis / mb).toFixed(1)} of ${(most / mb).toFixed(1)} MB, API ${worst.api.toFixed(0)} MB`,
  );
  assert.ok(worst.redis < most);
  assert.equal(await reach.figure('errorstats', 'errorstat_OOM'), 0);
  assert.ok(worst.api < apiBoundMb, `${worst.api} MB`);
  sendSignal(pipeline, 'SIGCONT');
  await askUntil(
    'answers to be taken again',
    () => caller.track(event()),
    ({ status }) => status === 200,
  );
  await settle(t, stand, clients, reach);
});

test('a Redis that is full at any moment refuses, and nobody is counted by half', async (t) => {
  const random = seeded(faultSeed);
  t.diagnostic(`seed ${faultSeed}`);
  const stand = await startSplit(t, { fsync: 'everysec' });
  const reach = await reachOf(t, stand);
  const clients = flood(t, stand);
  const counted = callerOf(stand, countedKey);
  await sleep(1000);
  const statuses = new Set<number>();
  for (let round = 0; round < roundsOf(100); round++) {
    const room = [0, 2000, 40_000, 300_000][Math.floor(4 * random())] as number;
    await reach.limit(Math.max(1, (await reach.figure('memory', 'used_memory')) + room));
    await sleep(200 * random());
    statuses.add((await counted.track(event())).status);
    if (random() < 0.3) await reach.limit(0);
    await sleep(100 * random());
  }
  assert.deepEqual(
    [...statuses].filter((status) => status !== 200),
    [503],
  );
  assert.ok((await reach.figure('errorstats', 'errorstat_OOM')) > 0);
  await reach.limit(0);
  await settle(t, stand, clients, reach);
});
