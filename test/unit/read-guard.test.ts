import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLimiter } from '../../src/concurrency.js';
import { createReadGuard } from '../../src/warehouse/reads/skill-history.js';

test('who of a tenant finds no place in time is told nothing, and another tenant is served meanwhile', async () => {
  const rules = {
    maxRunning: 4,
    maxRunningOfTenant: 2,
    maxQueuedOfTenant: 1,
    maxQueueWaitMs: 1,
    rejectionMessage: 'Too many',
  };
  const guard = createReadGuard(createLimiter(rules));
  const ends: { resolve: (value: string) => void; reject: (error: Error) => void }[] = [];
  const read = (tenant: string) =>
    guard(tenant, () => new Promise<string>((resolve, reject) => ends.push({ resolve, reject })));
  const running = [read('crowd'), read('crowd')];
  const waiting = read('crowd');
  assert.equal(await read('crowd'), null, 'at once behind a full line');
  assert.equal(await waiting, null);
  const other = read('other');
  await sleep(2);
  ends[2]?.resolve('rows');
  assert.equal(await other, 'rows');
  ends[0]?.resolve('rows');
  ends[1]?.reject(new Error('away'));
  assert.equal(await running[0], 'rows');
  await assert.rejects(running[1] as Promise<unknown>, /away/);
  const later = read('crowd');
  await sleep(2);
  ends[3]?.resolve('rows');
  assert.equal(await later, 'rows');
});
