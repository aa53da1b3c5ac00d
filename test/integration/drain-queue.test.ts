import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  drainJobId,
  drainQueueName,
  type PinnedBlock,
  queuePrefix,
} from '../../src/contracts/outbox/job-data.js';
import { connectQueue } from '../../src/jobs/consumer.js';
import { startDrainJobs } from '../../src/jobs/drain-jobs.js';
import { createLogger } from '../../src/logger.js';
import type { DrainTask } from '../../src/services/outbox/complete-block.js';
import { startTestRedis } from '../support/servers/embedded.js';

const batch: PinnedBlock = {
  ranges: [{ partition: 0, from: '1-0', to: '2-0', rows: 2 }],
  rows: 2,
  fixedAt: 1,
  verify: false,
};

test('only the worker that holds the job may fix its batch', { timeout: 30_000 }, async (t) => {
  const redisUrl = await startTestRedis(t);
  const seen: (PinnedBlock | null)[] = [];
  const refusals: unknown[] = [];
  let finished = (): void => undefined;
  const done = new Promise<void>((resolve) => {
    finished = resolve;
  });
  /** The first run loses its job, as one does that stood still for longer than its lock; the second keeps it. */
  const drain = async ({ batch: fixed, save }: DrainTask) => {
    seen.push(fixed);
    const lock = `${queuePrefix}:${drainQueueName}:${drainJobId(0)}:lock`;
    if (seen.length === 1) await connection.set(lock, 'another worker', 'PX', 1000);
    await save(batch).catch((error: unknown) => refusals.push(error));
    if (seen.length === 1) throw new Error('tried again');
    if (fixed !== null) finished();
    else throw new Error('and once more, with what was kept');
    return { rows: 0, present: 0 };
  };
  const logger = createLogger('fatal', 'test');
  const connection = connectQueue(redisUrl, logger, () => false);
  /** Something waits in the first partition, whatever is drained. */
  const outbox = {
    readBacklog: async (wanted: readonly number[]) =>
      wanted.map((partition) => ({ partition, length: partition === 0 ? 1 : 0, head: '1-0', due: 0 })),
  };
  const drains = startDrainJobs({ redisUrl, partitions: 2, outbox, drain, logger });
  try {
    await done;
    assert.match(String(refusals[0]), /given to another worker/);
    assert.equal(refusals.length, 1);
    assert.deepEqual(seen, [null, null, batch]);
  } finally {
    await drains.close();
    connection.disconnect();
  }
});
