import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { type TestContext, test } from 'node:test';
import { type ChildSpec, sendSignal, supervise } from '../../src/embedded/supervisor.js';
import { createLogger } from '../../src/logger.js';
import { groupMembers } from '../support/servers/processes.js';
import { waitFor } from '../support/wait.js';

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
const failOnAbort = async (_: ChildProcess, signal: AbortSignal): Promise<void> => {
  await untilAborted(signal);
  throw new Error('aborted');
};

function start(t: TestContext, script: string, change: Partial<ChildSpec> = {}) {
  const startTimes: number[] = [];
  const pids: number[] = [];
  const child = supervise({
    name: 'child',
    logger: createLogger('silent', 'test'),
    ...{ minDelayMs: 50, maxDelayMs: 200, logFile: 'child.log', ready: async () => undefined },
    spawn(): ChildProcess {
      const process = spawn('sh', ['-c', script], { detached: true, stdio: 'ignore' });
      startTimes.push(performance.now());
      pids.push(process.pid ?? 0);
      return process;
    },
    ...change,
  });
  t.after(() => child.stop(2_000));
  const membersOfFirst = (): number => groupMembers(pids[0] ?? 0).length;
  const waitForEnd = () => waitFor('the end of the group', () => membersOfFirst() === 0);
  /** The shell has set its trap when it runs `sleep`. */
  const waitForTrap = () => waitFor('the trap', () => membersOfFirst() === 2);
  return { child, startTimes, pids, waitForEnd, waitForTrap };
}

test('supervise restarts a dead child after growing delays', async (t) => {
  const { startTimes } = start(t, 'exit 3');
  await waitFor('five starts', () => startTimes.length >= 5);
  for (const [i, delay] of [50, 100, 200, 200].entries()) {
    const gap = (startTimes[i + 1] ?? 0) - (startTimes[i] ?? 0);
    assert.ok(gap >= delay - 5, `gap ${i}: ${gap} ms`);
  }
});

test('supervise restarts a child that its owner ended without a delay', async (t) => {
  const { startTimes } = start(t, 'exit 3', { minDelayMs: 600_000, explainExit: () => 'was ended' });
  await waitFor('five starts', () => startTimes.length >= 5);
});

test('supervise ends the process group of a dead child before the restart', async (t) => {
  const { child, pids, waitForEnd } = start(t, 'sleep 600 & sleep 600');
  await child.ready;
  sendSignal(pids[0] ?? 0, 'SIGKILL');
  await waitForEnd();
  await waitFor('the next start', () => pids.length === 2);
});

test('supervise fails the start of a child that is never ready, and ends it', async (t) => {
  const ready = () => Promise.reject(new Error('not ready'));
  const { child, pids, waitForEnd } = start(t, 'sleep 600', { ready });
  await assert.rejects(child.ready, /not ready/);
  await waitForEnd();
  assert.equal(pids.length, 1);
});

test('supervise names exit code and log file of a child that ends before it is ready', async (t) => {
  const message = 'child exited before it was ready: exit code 3; see child.log';
  for (const ready of [failOnAbort, (_: ChildProcess, signal: AbortSignal) => untilAborted(signal)]) {
    const { child, pids } = start(t, 'exit 3', { ready });
    await assert.rejects(child.ready, { message });
    await child.stop(1_000);
    assert.equal(pids.length, 1);
  }
});

test('supervise rejects a program that does not exist', async (t) => {
  const { child } = start(t, '', {
    spawn: () => spawn('/nowhere/program', { detached: true }),
    ready: () => new Promise(() => undefined),
  });
  await assert.rejects(child.ready, /child cannot be started: spawn .* ENOENT/);
});

test('stop gives a starting child time to end cleanly', async (t) => {
  const script = 'trap "sleep 0.3; exit 7" TERM; while :; do sleep 0.1; done';
  const { child, waitForTrap } = start(t, script, { ready: failOnAbort });
  const failed = assert.rejects(child.ready, /exited before it was ready: exit code 7;/);
  await waitForTrap();
  await child.stop(60_000);
  await failed;
});

test('stop ends a starting child, and kills one that ignores SIGTERM', async (t) => {
  const starting = start(t, 'sleep 600', { ready: () => new Promise(() => undefined) });
  const failed = assert.rejects(starting.child.ready);
  await starting.child.stop(2_000);
  await failed;

  const stubborn = start(t, 'trap "" TERM; while :; do sleep 0.1; done');
  await stubborn.child.ready;
  await stubborn.waitForTrap();
  await stubborn.child.stop(1_000);
  await stubborn.waitForEnd();
  assert.equal(stubborn.pids.length, 1);
});
