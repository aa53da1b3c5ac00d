import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { test } from 'node:test';
import { createClosers, installShutdown } from '../../src/lifecycle.js';
import { createLogger } from '../../src/logger.js';

const logger = createLogger('silent', 'test');
const never = () => new Promise<never>(() => undefined);

/** A process that only notes its exits. */
function fakeHost() {
  const exits: number[] = [];
  const host = Object.assign(new EventEmitter(), { exit: (code: number) => exits.push(code) });
  return { host, exits };
}

test('closers run once, the newest first', async () => {
  const closers = createClosers(logger);
  const order: string[] = [];
  for (const name of ['redis', 'pool', 'server']) closers.add(name, () => order.push(name));
  const [first, second] = await Promise.all([closers.close(), closers.close()]);
  assert.deepEqual([first, second, order], [true, true, ['server', 'pool', 'redis']]);
  assert.equal(closers.closing, true);
});

test('a closer that throws, rejects or hangs stops no other', async () => {
  const closers = createClosers(logger, 200);
  const ran: string[] = [];
  closers.add('last', () => ran.push('last'));
  closers.add('hangs', never);
  closers.add('rejects', async () => {
    throw new Error('rejected');
  });
  closers.add('throws', () => {
    throw new Error('thrown');
  });
  const since = performance.now();
  assert.equal(await closers.close(), false);
  assert.deepEqual(ran, ['last']);
  assert.ok(performance.now() - since < 5_000);
});

test('all closers together keep the deadline', async () => {
  const closers = createClosers(logger, 300);
  for (let i = 0; i < 200; i++) closers.add(`hangs ${i}`, never);
  const since = performance.now();
  assert.equal(await closers.close(), false);
  // With the whole deadline for each it would be a minute.
  assert.ok(performance.now() - since < 30_000);
});

test('what is created while closing is closed as well', async () => {
  const closers = createClosers(logger);
  const ran: string[] = [];
  closers.add('first', () => closers.add('late', () => ran.push('late')));
  await closers.close();
  assert.deepEqual(ran, ['late']);
  closers.add('later', () => ran.push('later'));
  await closers.close();
  assert.deepEqual(ran, ['late', 'later']);
});

test('a signal closes everything and exits with 0', async () => {
  const { host, exits } = fakeHost();
  const closers = createClosers(logger);
  const shutdown = installShutdown(logger, closers, host);
  host.emit('SIGTERM');
  await shutdown(0);
  assert.deepEqual(exits, [0]);
});

test('a closer that failed makes the exit code 1', async () => {
  const { host, exits } = fakeHost();
  const closers = createClosers(logger);
  closers.add('fails', () => Promise.reject(new Error('no')));
  const shutdown = installShutdown(logger, closers, host);
  host.emit('SIGINT');
  await shutdown(0);
  assert.deepEqual(exits, [1]);
});

test('a second signal within a second is ignored, a later one exits at once with 1', async () => {
  const { host, exits } = fakeHost();
  const closers = createClosers(logger, 60_000);
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

test('a stray error closes everything and exits with 1', async () => {
  for (const event of ['uncaughtException', 'unhandledRejection']) {
    const { host, exits } = fakeHost();
    const closers = createClosers(logger);
    let closed = false;
    closers.add('child', () => {
      closed = true;
    });
    const shutdown = installShutdown(logger, closers, host);
    host.emit(event, new Error('boom'));
    await shutdown(0);
    assert.deepEqual([closed, exits], [true, [1]]);
  }
});
