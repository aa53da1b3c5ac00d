import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createLimiter } from '../../src/concurrency.js';

/** Work that ends when the test says so; it is named after its tenant's letter and a number. */
function stage({ maxRunningOfTenant = 2, maxQueuedOfTenant = 9, maxQueueWaitMs = 60_000 }) {
  const limit = createLimiter({
    maxRunning: 2,
    maxRunningOfTenant,
    maxQueuedOfTenant,
    maxQueueWaitMs,
    rejectionMessage: 'Too many',
  });
  const begun: string[] = [];
  const ends = new Map<string, (error?: Error) => void>();
  const work = (name: string): Promise<string> =>
    limit(name.charAt(0), () => {
      begun.push(name);
      return new Promise((resolve, reject) => {
        ends.set(name, (error) => (error === undefined ? resolve(name) : reject(error)));
      });
    });
  const end = async (name: string, error?: Error): Promise<void> => {
    ends.get(name)?.(error);
    await nextTurn();
  };
  return { work, begun, end };
}

test('two at once, then a line in its order, and a full one refuses its tenant alone', async () => {
  const { work, begun, end } = stage({ maxQueuedOfTenant: 2 });
  const all = ['a1', 'a2', 'a3', 'a4'].map(work);
  await assert.rejects(work('a5'), { code: 'UNAVAILABLE', message: 'Too many' });
  all.push(work('b1'));
  await nextTurn();
  assert.deepEqual(begun, ['a1', 'a2']);
  const failed = assert.rejects(all[0] as Promise<string>, /away/);
  await end('a1', new Error('away'));
  await failed;
  assert.equal(begun.length, 3, 'work that fails gives its place to the next');
  for (const name of ['a2', 'a3', 'b1', 'a4']) await end(name);
  assert.deepEqual(await Promise.all(all.slice(1)), ['a2', 'a3', 'a4', 'b1']);
  const again = [work('a6'), work('a7')];
  await nextTurn();
  assert.equal(begun.length, 7, 'both places are free again');
  for (const name of ['a6', 'a7']) await end(name);
  await Promise.all(again);
});

test('a tenant with much in the line is passed by one with little', async () => {
  const { work, begun, end } = stage({});
  const all = ['a1', 'a2', 'a3', 'a4', 'a5'].map(work);
  await nextTurn();
  await end('a1');
  all.push(...['b1', 'b2', 'c1'].map(work));
  for (const name of ['a2', 'a3', 'b1', 'c1', 'a4', 'b2', 'a5']) await end(name);
  await Promise.all(all);
  assert.deepEqual(begun, ['a1', 'a2', 'a3', 'b1', 'c1', 'a4', 'b2', 'a5']);
});

test('no tenant has all places', async () => {
  const { work, begun, end } = stage({ maxRunningOfTenant: 1 });
  const all = ['a1', 'a2', 'b1'].map(work);
  await nextTurn();
  assert.deepEqual(begun, ['a1', 'b1']);
  await end('b1');
  assert.deepEqual(begun, ['a1', 'b1']);
  await end('a1');
  assert.deepEqual(begun, ['a1', 'b1', 'a2']);
  await end('a2');
  await Promise.all(all);
});

test('who stands in the line for too long is refused, and takes no place', async () => {
  const { work, begun, end } = stage({ maxQueueWaitMs: 1 });
  const running = [work('a1'), work('a2')];
  await assert.rejects(work('a3'), { code: 'UNAVAILABLE' });
  for (const name of ['a1', 'a2']) await end(name);
  await Promise.all(running);
  const again = [work('a4'), work('a5')];
  await nextTurn();
  assert.deepEqual(begun, ['a1', 'a2', 'a4', 'a5']);
  for (const name of ['a4', 'a5']) await end(name);
  await Promise.all(again);
});
