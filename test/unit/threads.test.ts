import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { endOf } from '../support/commands/command.js';

const flag = '--trace-require-module';
const skip = process.allowedNodeEnvironmentFlags.has(flag) ? false : `this Node has no ${flag}`;

/** Each thread loads its module and fails on a task that is null. */
const script = `(async () => {
  const { startFixedPool } = await import(${JSON.stringify(new URL('../../src/compute/thread-pools.js', import.meta.url).href)});
  const workerData = { redisUrl: 'redis://127.0.0.1:1', waitReplicas: 0, partitions: 1 };
  for (const name of ['track', 'forecast', 'fit']) {
    const pool = startFixedPool(name, 1, { workerData });
    await pool.run(null).catch((error) => console.log(name, error.name));
    await pool.close();
  }
})()`;

test('Worker threads load their modules by import: a thread that ends during a require ends the process', {
  skip,
  timeout: 60_000,
}, async (t) => {
  const child = spawn(process.execPath, [`${flag}=all`, '-e', script], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  const { code, out, err } = await endOf(child);
  assert.deepEqual([code, out], [0, 'track TypeError\nforecast TypeError\nfit TypeError\n'], err);
  assert.doesNotMatch(err, /loading ES Module/);
});
