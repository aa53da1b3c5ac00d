/** Reads of ClickHouse that take turns: each is one connection of the client, of which there are eight. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClickHouseClient } from '@clickhouse/client';
import { createLimiter } from '../../src/concurrency.js';
import { createReadGuard, createSkillHistory } from '../../src/warehouse/reads/skill-history.js';
import { createStoredRows } from '../../src/warehouse/reads/stored-rows.js';

const rules = {
  maxRunning: 2,
  maxRunningOfTenant: 1,
  maxQueuedOfTenant: 50,
  maxQueueWaitMs: 10_000,
  rejectionMessage: 'Too many',
};
const tenants = ['a', 'b', 'c', 'd'];

/** Has no rows, and counts the queries at once. */
function countingClient(): { client: ClickHouseClient; most: () => number } {
  let running = 0;
  let most = 0;
  const query = async (): Promise<unknown> => {
    running += 1;
    most = Math.max(most, running);
    await sleep(1);
    running -= 1;
    return { json: async () => [] };
  };
  return { client: { query } as unknown as ClickHouseClient, most: () => most };
}

test('explanations take a connection for each turn', async () => {
  const { client, most } = countingClient();
  const history = createSkillHistory(client, createReadGuard(createLimiter(rules)));
  const wanted = { userId: 'u', skillId: 's', upTo: 1, atMost: 1 };
  await Promise.all(tenants.map((tenant) => history.fetchAttempts({ ...wanted, tenant })));
  assert.equal(most(), 2);
});

test('exports take turns for every page of every table', async () => {
  const { client, most } = countingClient();
  const stored = createStoredRows(client, createLimiter(rules));
  const exportOne = async (tenant: string): Promise<void> => {
    for await (const page of stored.readOtherTables(tenant, 'u')) assert.deepEqual(page, []);
  };
  await Promise.all(tenants.map(exportOne));
  assert.equal(most(), 2);
});
