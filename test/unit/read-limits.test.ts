/** Limits for concurrent reads of ClickHouse. The client has eight connections. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ClickHouseClient } from '@clickhouse/client';
import { createLimiter } from '../../src/concurrency.js';
import { createReadGuard, createSkillHistory } from '../../src/warehouse/reads/skill-history.js';
import { createStoredRows } from '../../src/warehouse/reads/stored-rows.js';
import { waitFor } from '../support/wait.js';

const rules = {
  ...{ maxRunning: 2, maxRunningOfTenant: 1, maxQueuedOfTenant: 50, maxQueueWaitMs: 60_000 },
  rejectionMessage: 'Too many',
};
const tenants = ['a', 'b', 'c', 'd'];

/** A client without rows that records the maximum of concurrent queries. */
function createCountingClient() {
  let running = 0;
  let maximum = 0;
  const query = async (): Promise<unknown> => {
    running += 1;
    maximum = Math.max(maximum, running);
    await nextTurn();
    running -= 1;
    return { json: async () => [], text: async () => '' };
  };
  return { client: { query } as unknown as ClickHouseClient, getMaximum: () => maximum };
}

test('The skill history and the export read ClickHouse with at most maxRunning queries', async () => {
  const first = createCountingClient();
  const history = createSkillHistory(first.client, createReadGuard(createLimiter(rules)));
  const query = { userId: 'u', skillId: 's', upTo: 1, atMost: 1 };
  await Promise.all(tenants.map((tenant) => history.fetchAttempts({ ...query, tenant })));
  assert.equal(first.getMaximum(), 2);

  const second = createCountingClient();
  const stored = createStoredRows(second.client, createLimiter(rules));
  const exportTables = async (tenant: string): Promise<void> => {
    for await (const page of stored.readOtherTables(tenant, 'u')) assert.deepEqual(page, []);
  };
  await Promise.all(tenants.map(exportTables));
  assert.equal(second.getMaximum(), 2);
});

test('The read guard returns null to a tenant with too many reads, and serves other tenants', async () => {
  const limits = { ...rules, maxRunning: 4, maxRunningOfTenant: 2, maxQueuedOfTenant: 1, maxQueueWaitMs: 1 };
  const guard = createReadGuard(createLimiter(limits));
  const reads: { resolve: (value: string) => void; reject: (error: Error) => void }[] = [];
  const read = (tenant: string) =>
    guard(tenant, () => new Promise<string>((resolve, reject) => reads.push({ resolve, reject })));
  const running = [read('busy'), read('busy')] as const;
  const queued = read('busy');
  assert.equal(await read('busy'), null, 'the queue is full');
  assert.equal(await queued, null, 'the wait is over');
  const other = read('other');
  await waitFor('the read of the other tenant', () => reads.length === 3);
  reads[2]?.resolve('rows');
  assert.equal(await other, 'rows');
  reads[0]?.resolve('rows');
  reads[1]?.reject(new Error('unavailable'));
  assert.equal(await running[0], 'rows');
  await assert.rejects(running[1], /unavailable/);
  const later = read('busy');
  await waitFor('the later read', () => reads.length === 4);
  reads[3]?.resolve('rows');
  assert.equal(await later, 'rows');
});
