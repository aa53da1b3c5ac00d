import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createReadGuard } from '../../src/warehouse/read-guard.js';

test('four reads at once, no line behind them, and a place free again however a read ends', async () => {
  const guard = createReadGuard();
  const ends: { resolve: (value: string) => void; reject: (error: Error) => void }[] = [];
  const read = () => guard(() => new Promise<string>((resolve, reject) => ends.push({ resolve, reject })));
  const running = [read(), read(), read(), read()];
  assert.equal(await read(), null);
  ends[0]?.resolve('rows');
  ends[1]?.reject(new Error('away'));
  assert.equal(await running[0], 'rows');
  await assert.rejects(running[1] as Promise<unknown>, /away/);
  const later = [read(), read()];
  assert.equal(await read(), null);
  for (const { resolve } of ends.slice(2)) resolve('rows');
  assert.deepEqual(await Promise.all([...running.slice(2), ...later]), ['rows', 'rows', 'rows', 'rows']);
});
