/** A Redis that is replaced by an empty one in a moment: nobody is told that learners or skills do not exist. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { callerOf, event } from '../support/http/http.js';
import { exitAfterTests } from '../support/servers/linger.js';
import { clickhouseOf, startBareRedis, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const redis = await startBareRedis({ after });
const service = await startService({ after }, { redisUrl: redis.url });
const clickhouse = clickhouseOf({ after }, service);
const caller = callerOf(service, service.key);

exitAfterTests();

const reads = ['mastery/ada', 'predictions/ada', 'velocity/ada', 'goals/ada', 'skills'];
const readAll = (): Promise<number[]> =>
  Promise.all(reads.map(async (path) => (await caller.get(`/api/v1/${path}`)).status));

test('a Redis that is emptied before there is anything to restore: keys are back without a restart', async () => {
  assert.equal((await caller.get('/api/v1/skills')).status, 200);
  await redis.kill();
  await redis.start();
  // For so long a look-up of before is trusted.
  await sleep(2500);
  await waitFor('the key', async () => (await caller.get('/api/v1/skills')).status === 200);
});

test('reads get 503 from the first moment on', async () => {
  assert.equal((await caller.track(event({ user_id: 'ada' }))).status, 200);
  await waitFor('the answer in ClickHouse', async () => {
    const [row] = await selectRows<{ n: number }>(clickhouse, 'SELECT toUInt32(count()) AS n FROM attempts');
    return (row?.n ?? 0) > 0;
  });
  // So that the key is known and nothing but the reads depends on Redis.
  await readAll();
  await redis.kill();
  const [statuses, stop] = [new Set<number>(), new AbortController()];
  const reading = (async () => {
    for (; !stop.signal.aborted; await sleep(2)) for (const status of await readAll()) statuses.add(status);
  })();
  await redis.start();
  await sleep(1500);
  stop.abort();
  await reading;
  assert.deepEqual([...statuses], [503]);
});
