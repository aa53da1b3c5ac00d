/** An export of 200,000 answers to a slow reader: memory stays where it was, few at once, and who leaves gives way. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { newLearner } from '../../src/domain/tracing/learner-states.js';
import { encodeLearner, learnerField } from '../../src/store/learners/learner-codec.js';
import { learnerKey, partitionOf } from '../../src/store/redis/keys.js';
import { callerOf, event, openWire, rawRequest, type Wire } from '../support/http/http.js';
import { clickhouseOf, keysOf, redisOf, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const service = await startService({ after });
const redis = await redisOf({ after }, service.redisUrl);
const clickhouse = clickhouseOf({ after }, service);
const caller = callerOf(service, service.key);
const path = '/api/v1/learners/many/export';
const answers = 200_000;

before(async () => {
  const key = learnerKey(partitionOf('default', 'many', 16), 'default', 'many');
  await redis.hset(key, learnerField, encodeLearner({ ...newLearner, version: answers, attempts: answers }));
  await clickhouse.command({
    query: `INSERT INTO attempts (tenant, user_id, skill_id, item_id, event_id, is_correct, occurred_at, received_at,
        learner_seq, partition_id, outbox_ms, outbox_seq)
      SELECT 'default', 'many', 'skill', '', concat('event-', toString(number)), 1, now64(3) - 1000000, now64(3) - 1000000,
        number + 1, 99, number, 0 FROM numbers(${answers})`,
  });
});

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** What JavaScript holds on to. */
function liveBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** A reader of its own pace; bytes are counted and thrown away but for the last ones. */
function reader(pauseMs: number): { wire: Wire; read: () => number; tail: () => string } {
  const wire = openWire(service.port);
  let read = 0;
  let tail = Buffer.alloc(0);
  wire.socket.removeAllListeners('data');
  wire.socket.on('data', async (chunk) => {
    read += chunk.length;
    tail = Buffer.concat([tail, chunk]).subarray(-500);
    if (pauseMs === 0) return;
    wire.socket.pause();
    await sleep(pauseMs);
    wire.socket.resume();
  });
  wire.send(rawRequest(service.key, { method: 'GET', path }));
  return { wire, read: () => read, tail: () => tail.toString() };
}

test('all of it reaches a slow reader, in constant memory', async (t) => {
  const { wire, read, tail } = reader(1);
  t.after(() => wire.end());
  const start = process.memoryUsage.rss();
  const startLive = liveBytes();
  let [most, mostLive] = [0, 0];
  await waitFor(
    'the end',
    async () => {
      await sleep(500);
      most = Math.max(most, process.memoryUsage.rss());
      mostLive = Math.max(mostLive, liveBytes());
      return tail().endsWith('0\r\n\r\n');
    },
    300_000,
  );
  assert.match(tail(), /"complete":true,"lines":200004,"answers":200000,"missing":0}\n/);
  assert.ok(read() > 150e6, `${read()} bytes`);
  const [grown, grownLive] = [most - start, mostLive - startLive].map((bytes) => Math.round(bytes / 2 ** 20));
  t.diagnostic(`${Math.round(read() / 1e6)} MB sent, memory grew by ${grownLive} MiB, ${grown} with garbage`);
  assert.ok((grownLive ?? 0) < 30, `memory grew by ${grownLive} MiB`);
  // All of it at once would be more than twice that; below, it is a matter of when garbage is collected.
  assert.ok((grown ?? 0) < 220, `memory grew by ${grown} MiB with garbage`);
});

test('three at once of a tenant, and one place is left to others; one who goes away makes room', async (t) => {
  const readers = Array.from({ length: 3 }, () => reader(1000));
  t.after(() => {
    for (const { wire } of readers) wire.end();
  });
  await waitFor('three exports', () => readers.every(({ read }) => read() > 0));
  const { status, json } = await caller.get(path);
  assert.deepEqual([status, json.error.code], [503, 'UNAVAILABLE']);
  const other = callerOf(service, await (await keysOf(t, service)).add({ tenant: 'other' }));
  assert.equal((await other.track(event({ user_id: 'many' }))).status, 200);
  assert.equal((await other.raw({ method: 'GET', path })).status, 200);
  const [first] = readers;
  first?.wire.end();
  await once(first?.wire.socket as NonNullable<typeof first>['wire']['socket'], 'close');
  await waitFor('room', async () => (await caller.head(path)).status === 200);
});
