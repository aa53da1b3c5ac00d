import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { type TestContext, test } from 'node:test';
import { type ChildSpec, sendSignal, supervise } from '../../src/embedded/supervisor.js';
import { createLogger } from '../../src/logger.js';
import { groupMembers } from '../support/servers/processes.js';
import { waitFor } from '../support/wait.js';

const LIMIT = { timeout: 60_000 };

function start(
  t: TestContext,
  script: string,
  ready: ChildSpec['ready'] = async () => undefined,
  more: Pick<ChildSpec, 'explainExit' | 'minDelayMs'> = {},
) {
  const births: number[] = [];
  const pids: number[] = [];
  const child = supervise({
    name: 'child',
    logger: createLogger('silent', 'test'),
    minDelayMs: 50,
    maxDelayMs: 200,
    logFile: 'child.log',
    ...more,
    ready,
    spawn(): ChildProcess {
      const process = spawn('sh', ['-c', script], { detached: true, stdio: 'ignore' });
      births.push(performance.now());
      pids.push(process.pid ?? 0);
      return process;
    },
  });
  t.after(() => child.stop(2_000));
  return { child, births, pids };
}

test('a child that dies is started again, later each time', LIMIT, async (t) => {
  const { births } = start(t, 'exit 3');
  await waitFor('five lives', () => births.length >= 5);
  const gaps = births.slice(1).map((time, i) => time - (births[i] ?? 0));
  [50, 100, 200, 200].forEach((least, i) => {
    assert.ok((gaps[i] ?? 0) >= least - 5, `gap ${i}: ${gaps[i]} ms`);
  });
});

test('one that was ended on purpose is started again at once, however often', LIMIT, async (t) => {
  const more = { minDelayMs: 5_000, explainExit: () => 'was ended' };
  const { births } = start(t, 'exit 3', undefined, more);
  await waitFor('five lives', () => births.length >= 5);
  assert.ok((births[4] ?? 0) - (births[0] ?? 0) < 5_000);
});

test('what a dead child leaves in its group ends with it', LIMIT, async (t) => {
  const { child, pids } = start(t, 'sleep 60 & sleep 60');
  await child.ready;
  const [first = 0] = pids;
  sendSignal(first, 'SIGKILL');
  await waitFor('the group to end', () => groupMembers(first).length === 0);
  await waitFor('the next life', () => pids.length === 2);
});

test('a child that is never ready fails the start and is ended', LIMIT, async (t) => {
  const { child, pids } = start(t, 'sleep 60', async () => {
    throw new Error('not today');
  });
  await assert.rejects(child.ready, /not today/);
  await waitFor('its group to end', () => groupMembers(pids[0] ?? 0).length === 0);
  assert.equal(pids.length, 1);
});

const untilOver = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve()));

test('a child that dies while it starts fails the start with its last words', LIMIT, async (t) => {
  const says = [
    async (signal: AbortSignal) => {
      await untilOver(signal);
      throw new Error('over');
    },
    untilOver,
  ];
  for (const ready of says) {
    const { child, pids } = start(t, 'exit 3', (_, signal) => ready(signal));
    await assert.rejects(
      child.ready,
      /^Error: child ended before it was ready: exit code 3; see child\.log$/,
    );
    await child.stop(1_000);
    assert.equal(pids.length, 1);
  }
});

test('a child that is stopped while it starts has the time to end cleanly', LIMIT, async (t) => {
  const { child, pids } = start(
    t,
    'trap "sleep 0.3; exit 7" TERM; while :; do sleep 0.1; done',
    (_, signal) =>
      untilOver(signal).then(() => {
        throw new Error('over');
      }),
  );
  const failed = assert.rejects(child.ready, /ended before it was ready: exit code 7;/);
  await waitFor('the trap', () => groupMembers(pids[0] ?? 0).length === 2);
  await child.stop(30_000);
  await failed;
});

test('a stop during the start, or of a child that ignores SIGTERM, ends it in time', LIMIT, async (t) => {
  const starting = start(t, 'sleep 60', () => new Promise(() => undefined));
  const started = assert.rejects(starting.child.ready);
  await starting.child.stop(2_000);
  await started;

  const deaf = start(t, 'trap "" TERM; while :; do sleep 0.1; done');
  await deaf.child.ready;
  await waitFor('the trap', () => groupMembers(deaf.pids[0] ?? 0).length === 2);
  const since = performance.now();
  await deaf.child.stop(1_000);
  assert.ok(performance.now() - since < 5_000);
  await waitFor('its group to end', () => groupMembers(deaf.pids[0] ?? 0).length === 0);
  assert.equal(deaf.pids.length, 1);
});

test('a program that does not exist fails the start', LIMIT, async () => {
  const child = supervise({
    name: 'nothing',
    logger: createLogger('silent', 'test'),
    spawn: () => spawn('/nowhere/program', { detached: true }),
    ready: () => new Promise(() => undefined),
  });
  await assert.rejects(child.ready, /nothing cannot be started: spawn .* ENOENT/);
  await child.stop(1_000);
});
