import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTurns } from '../../src/warehouse/turns.js';

/** Reads that end when the test says so. */
function stage(mostWaiting: number, waitMs: number) {
  const turns = createTurns({ atOnce: 2, mostWaiting, waitMs });
  const ends: ((error?: Error) => void)[] = [];
  const read = (name: string): Promise<string> =>
    turns(
      () =>
        new Promise((resolve, reject) => {
          ends.push((error) => (error === undefined ? resolve(name) : reject(error)));
        }),
    );
  return { read, ends };
}

test('two at once, then a line in its order, and a full one refuses', async () => {
  const { read, ends } = stage(2, 60_000);
  const all = ['a', 'b', 'c', 'd'].map(read);
  await assert.rejects(read('e'), { code: 'UNAVAILABLE' });
  assert.equal(ends.length, 2);
  ends[0]?.(new Error('away'));
  await assert.rejects(all[0] as Promise<string>, /away/);
  assert.equal(ends.length, 3, 'a read that fails gives its place to the next');
  const later = read('f');
  for (let i = 1; i < 5; i++) {
    ends[i]?.();
    assert.equal(await (all[i] ?? later), ['b', 'c', 'd', 'f'][i - 1]);
  }
  const again = [read('g'), read('h')];
  assert.equal(ends.length, 7, 'both places are free again');
  for (const end of ends) end();
  assert.deepEqual(await Promise.all(again), ['g', 'h']);
});

test('who stands in the line for too long is refused, and takes no place', async () => {
  const { read, ends } = stage(5, 1);
  const running = [read('a'), read('b')];
  await assert.rejects(read('c'), { code: 'UNAVAILABLE' });
  for (const end of ends) end();
  assert.deepEqual(await Promise.all(running), ['a', 'b']);
  const again = [read('d'), read('e')];
  assert.equal(ends.length, 4);
  for (const end of ends) end();
  assert.deepEqual(await Promise.all(again), ['d', 'e']);
});
