/** Threads of fits that cannot be started. */
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { createFitPool } from '../../src/compute/job-pools.js';

/** As one for which the machine has no descriptors left. */
class BrokenWorker extends Worker {
  constructor() {
    super('throw new Error("no thread")', { eval: true });
  }
}

test('a thread that cannot be started fails what waits for it and what comes, and not the process', {
  timeout: 10_000,
}, async (t) => {
  const threads = createRequire(import.meta.url)('node:worker_threads');
  threads.Worker = BrokenWorker;
  const pool = createFitPool({ threads: 1, redisUrl: '', clickhouseUrl: '', servesRequests: true });
  t.after(() => {
    threads.Worker = Worker;
    return pool.close();
  });
  const failed = { message: 'no thread' };
  await assert.rejects(pool.readAnswers('default'), failed);
  await assert.rejects(pool.readAnswers('default'), failed);
});
