import assert from 'node:assert/strict';
import { test } from 'node:test';
import { singleFlight } from '../../src/concurrency.js';

test('one run for all that ask meanwhile, a new one afterwards, however the one before ended', async () => {
  const runs: { resolve: (value: number) => void; reject: (error: Error) => void }[] = [];
  const ask = singleFlight(() => new Promise<number>((resolve, reject) => runs.push({ resolve, reject })));
  const first = [ask(), ask()];
  assert.equal(runs.length, 1);
  runs[0]?.resolve(1);
  assert.deepEqual(await Promise.all(first), [1, 1]);
  const second = [ask(), ask()];
  assert.equal(runs.length, 2);
  runs[1]?.reject(new Error('away'));
  for (const one of second) await assert.rejects(one, /away/);
  const third = ask();
  runs[2]?.resolve(3);
  assert.equal(await third, 3);
});
