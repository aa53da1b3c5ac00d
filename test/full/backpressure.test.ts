import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readMemoryMb } from '../../bench/targets/processes.js';
import { sendSignal } from '../../src/embedded/supervisor.js';
import { createOutbox } from '../../src/store/outbox/outbox.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { seeded } from '../support/builders/random.js';
import { startClients } from '../support/fault/clients.js';
import { compareStores, resendAll } from '../support/fault/compare.js';
import { countedKey, startSplit } from '../support/fault/deployment.js';
import { callerOf, event } from '../support/http/http.js';
import { faultSeed, roundsOf } from '../support/runner/long-form.js';
import { clickhouseOf, redisOf } from '../support/servers/service.js';
import { askUntil, waitFor } from '../support/wait.js';

const mb = 2 ** 20;
const learners = Array.from({ length: 40 }, (_, i) => `flooded-${i}`);
/** docs/operate/limits.md: resident memory of an API process, whatever clients send. */
const maxApiMb = 600;

/** A deployment under a flood of batches. */
async function startFlood(t: TestContext) {
  const deployment = await startSplit(t);
  const redis = await redisOf(t, deployment.redisUrl);
  const outbox = createOutbox(redis, defaultPartitions);
  const startClient = () =>
    startClients(t, {
      ...{ port: deployment.port, tenants: deployment.tenants, learners, skills: ['algebra', 'reading'] },
      ...{ loops: 16, hangUps: 0, maxBatch: 200, maxRetractions: 0, name: 'event', seed: faultSeed },
    });
  return {
    deployment,
    startClient,
    setMaxMemory: (bytes: number) => redis.config('SET', 'maxmemory', `${bytes}`),
    readInfo: async (section: string, name: string): Promise<number> =>
      Number(new RegExp(`^${name}[:=](?:count=)?(\\d+)`, 'm').exec(await redis.info(section))?.[1] ?? 0),
    /** Each confirmed answer is stored once, and 503 was the only rejection. */
    assertSettled: async (clients: ReturnType<typeof startClient>): Promise<void> => {
      const { entries, invalid, failed, retried } = await clients.stop();
      await waitFor('an empty outbox', async () => (await outbox.facts()).outboxLength === 0);
      const lost = await resendAll(deployment, entries);
      const found = await compareStores(deployment, clickhouseOf(t, deployment), entries, learners);
      assert.deepEqual(
        { ...found, lost: found.lost + lost, invalid, failed },
        { lost: 0, doubled: 0, differences: [], invalid: [], failed: 0 },
      );
      assert.ok(retried > 0, 'no request was rejected');
    },
  };
}

test('track-answer returns 503 before Redis is full while the pipeline is stopped', async (t) => {
  const { deployment, startClient, setMaxMemory, readInfo, assertSettled } = await startFlood(t);
  const [pipeline = 0] = deployment.pids('pipeline');
  const [api = 0] = deployment.pids('api');
  const maxMemory = (await readInfo('memory', 'used_memory')) + 60 * mb;
  await setMaxMemory(maxMemory);
  sendSignal(pipeline, 'SIGSTOP');
  t.after(() => sendSignal(pipeline, 'SIGCONT'));
  const clients = startClient();
  const caller = callerOf(deployment, 'tenant-b');
  const track = () => caller.track(event());
  const { headers, json } = await askUntil('a rejected answer', track, ({ status }) => status !== 200);
  assert.equal(json.error.code, 'UNAVAILABLE');
  assert.match(headers['retry-after'] ?? '', /^\d+$/);
  let [peakRedis, peakApi] = [0, 0];
  for (let sample = 0; sample < 40; sample++) {
    peakRedis = Math.max(peakRedis, await readInfo('memory', 'used_memory'));
    peakApi = Math.max(peakApi, readMemoryMb(api));
    await sleep(50);
  }
  assert.ok(peakRedis < maxMemory, `Redis uses ${peakRedis} of ${maxMemory} bytes`);
  assert.equal(await readInfo('errorstats', 'errorstat_OOM'), 0);
  assert.ok(peakApi < maxApiMb, `the API process uses ${peakApi} MB`);
  sendSignal(pipeline, 'SIGCONT');
  await askUntil('an accepted answer', track, ({ status }) => status === 200);
  await assertSettled(clients);
});

test('track-answer returns 503 and counts nothing partially when Redis is full at any moment', async (t) => {
  const random = seeded(faultSeed);
  t.diagnostic(`seed ${faultSeed}`);
  const { deployment, startClient, setMaxMemory, readInfo, assertSettled } = await startFlood(t);
  const clients = startClient();
  const counted = callerOf(deployment, countedKey);
  await sleep(1000);
  const statuses = new Set<number>();
  for (let round = 0; round < roundsOf(100); round++) {
    const free = [0, 2000, 40_000, 300_000][Math.floor(4 * random())] as number;
    await setMaxMemory(Math.max(1, (await readInfo('memory', 'used_memory')) + free));
    await sleep(200 * random());
    statuses.add((await counted.track(event())).status);
    if (random() < 0.3) await setMaxMemory(0);
    await sleep(100 * random());
  }
  statuses.delete(200);
  assert.deepEqual([...statuses], [503]);
  assert.ok((await readInfo('errorstats', 'errorstat_OOM')) > 0, 'Redis was never full');
  await setMaxMemory(0);
  await assertSettled(clients);
});
