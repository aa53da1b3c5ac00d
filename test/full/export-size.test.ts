import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { newLearner } from '../../src/domain/tracing/learner-states.js';
import { encodeLearner, learnerField } from '../../src/store/learners/learner-codec.js';
import { learnerKey, partitionOf } from '../../src/store/redis/keys.js';
import { callerOf, event, openWire, rawRequest } from '../support/http/http.js';
import { clickhouseOf, keysOf, redisOf, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const service = await startService({ after });
const caller = callerOf(service, service.key);
const path = '/api/v1/learners/many/export';
const answers = 200_000;
/** All rows together would need more than twice the second limit. Garbage counts as resident memory. */
const maxGrowthMb = { live: 30, resident: 220 } as const;

before(async () => {
  const redis = await redisOf({ after }, service.redisUrl);
  const key = learnerKey(partitionOf('default', 'many', 16), 'default', 'many');
  await redis.hset(key, learnerField, encodeLearner({ ...newLearner, version: answers, attempts: answers }));
  await clickhouseOf({ after }, service).command({
    query: `INSERT INTO attempts (tenant, user_id, skill_id, item_id, event_id, is_correct, occurred_at, received_at,
        learner_seq, partition_id, outbox_ms, outbox_seq)
      SELECT 'default', 'many', 'skill', '', concat('event-', toString(number)), 1, now64(3) - 1000000, now64(3) - 1000000,
        number + 1, 99, number, 0 FROM numbers(${answers})`,
  });
});

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function measureMb(): { live: number; resident: number } {
  collectGarbage();
  const { heapUsed, external, rss } = process.memoryUsage();
  return { live: (heapUsed + external) / 2 ** 20, resident: rss / 2 ** 20 };
}

/** Reads the export, with a pause after each chunk. */
function startReader(pauseMs: number) {
  const { socket, send } = openWire(service.port);
  const state = { socket, bytes: 0, tail: '' };
  socket.removeAllListeners('data');
  socket.on('data', async (chunk) => {
    state.bytes += chunk.length;
    state.tail = (state.tail + chunk.toString('latin1')).slice(-500);
    socket.pause();
    await sleep(pauseMs);
    socket.resume();
  });
  send(rawRequest(service.key, { method: 'GET', path }));
  return state;
}

test('An export of 200,000 answers reaches a slow reader completely, in constant memory', async (t) => {
  const start = measureMb();
  const reader = startReader(1);
  t.after(() => reader.socket.destroy());
  let peak = start;
  const isComplete = async (): Promise<boolean> => {
    // Collecting garbage all the time would slow down the export.
    await sleep(500);
    const { live, resident } = measureMb();
    peak = { live: Math.max(peak.live, live), resident: Math.max(peak.resident, resident) };
    return reader.tail.endsWith('0\r\n\r\n');
  };
  await waitFor('the end of the export', isComplete, 900_000);
  assert.match(reader.tail, /"complete":true,"lines":200004,"answers":200000,"missing":0}\n/);
  assert.ok(reader.bytes > 150e6, `${reader.bytes} bytes`);
  for (const kind of ['live', 'resident'] as const)
    assert.ok(
      peak[kind] - start[kind] < maxGrowthMb[kind],
      `${kind} memory grew from ${start[kind]} to ${peak[kind]} MB`,
    );
});

test('An export gets 503 while three of its tenant run, and other tenants can still export', async (t) => {
  const readers = Array.from({ length: 3 }, () => startReader(1000));
  t.after(() => {
    for (const { socket } of readers) socket.destroy();
  });
  await waitFor('three exports', () => readers.every(({ bytes }) => bytes > 0));
  const { status, json } = await caller.get(path);
  assert.deepEqual([status, json.error.code], [503, 'UNAVAILABLE']);
  const other = callerOf(service, await (await keysOf(t, service)).add({ tenant: 'other' }));
  assert.equal((await other.track(event({ user_id: 'many' }))).status, 200);
  assert.equal((await other.raw({ method: 'GET', path })).status, 200);
  const [first] = readers.map(({ socket }) => socket);
  first?.destroy();
  if (first?.closed === false) await once(first, 'close');
  await waitFor('a free place', async () => (await caller.head(path)).status === 200);
});
