import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { test } from 'node:test';
import { createClosers, installShutdown } from '../../src/lifecycle.js';
import { createLogger } from '../../src/logger.js';

const logger = createLogger('silent', 'test');
const never = () => new Promise<never>(() => undefined);

/** A process that records its exit codes instead of ending. */
function createHost(deadlineMs?: number) {
  const exits: number[] = [];
  const host = Object.assign(new EventEmitter(), { exit: (code: number) => exits.push(code) });
  return { host, exits, closers: createClosers(logger, deadlineMs) };
}

test('close runs each closer once, the newest first, also those that are added while it runs', async () => {
  const closers = createClosers(logger);
  const order: string[] = [];
  closers.add('redis', () => order.push('redis'));
  closers.add('pool', () => order.push('pool'));
  closers.add('server', () => {
    order.push('server');
    closers.add('late', () => order.push('late'));
  });
  assert.deepEqual(await Promise.all([closers.close(), closers.close()]), [true, true]);
  assert.deepEqual(order, ['server', 'late', 'pool', 'redis']);
  assert.equal(closers.closing, true);
  closers.add('later', () => order.push('later'));
  await closers.close();
  assert.equal(order.at(-1), 'later');
});

test('close runs the other closers if one throws, rejects or hangs, and returns false', async () => {
  const closers = createClosers(logger, 200);
  let hasRun = false;
  closers.add('last', () => {
    hasRun = true;
  });
  closers.add('hangs', never);
  closers.add('rejects', () => Promise.reject(new Error('rejected')));
  closers.add('throws', () => {
    throw new Error('thrown');
  });
  assert.equal(await closers.close(), false);
  assert.ok(hasRun);
});

test('close has one deadline for all closers', async () => {
  const closers = createClosers(logger, 300);
  for (let i = 0; i < 200; i++) closers.add(`hangs ${i}`, never);
  const since = performance.now();
  assert.equal(await closers.close(), false);
  // A deadline for each closer would take a minute.
  assert.ok(performance.now() - since < 30_000);
});

test('installShutdown closes everything on a signal and exits with 0, or with 1 if a closer failed', async () => {
  for (const [signal, close, code] of [
    ['SIGTERM', () => undefined, 0],
    ['SIGINT', () => Promise.reject(new Error('failed')), 1],
  ] as const) {
    const { host, exits, closers } = createHost();
    closers.add('child', close);
    const shutdown = installShutdown(logger, closers, host);
    host.emit(signal);
    await shutdown(0);
    assert.deepEqual(exits, [code]);
  }
});

test('installShutdown ignores a second signal within one second, and exits with 1 on a later one', async () => {
  const { host, exits, closers } = createHost(60_000);
  const slow = new EventEmitter();
  closers.add('slow', () => once(slow, 'done'));
  let time = 5_000;
  const shutdown = installShutdown(logger, closers, host, () => time);
  host.emit('SIGINT');
  time += 999;
  host.emit('SIGINT');
  assert.deepEqual(exits, []);
  time += 1;
  host.emit('SIGINT');
  assert.deepEqual(exits, [1]);
  slow.emit('done');
  await shutdown(0);
});

test('installShutdown closes everything and exits with 1 on an uncaught error', async () => {
  for (const event of ['uncaughtException', 'unhandledRejection']) {
    const { host, exits, closers } = createHost();
    let isClosed = false;
    closers.add('child', () => {
      isClosed = true;
    });
    const shutdown = installShutdown(logger, closers, host);
    host.emit(event, new Error('boom'));
    await shutdown(0);
    assert.deepEqual([isClosed, exits], [true, [1]]);
  }
});
