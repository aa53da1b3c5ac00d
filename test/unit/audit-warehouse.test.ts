import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import { createAuditWarehouse } from '../../src/warehouse/maintenance/audit-warehouse.js';

test('fetchStoredDays returns more rows than a call can have arguments', async () => {
  const rows = Array.from({ length: 300_000 }, (_, day) => ({ json: () => ({ day }) }));
  const query = async (): Promise<unknown> => ({
    stream: async function* () {
      yield rows;
    },
  });
  const warehouse = createAuditWarehouse({ query } as unknown as ClickHouseClient, null);
  const signal = AbortSignal.timeout(60_000);
  // The last day of a year and the first of the next: two months.
  const stored = await warehouse.fetchStoredDays({ from: 20_088, to: 20_089 }, [], signal);
  assert.equal(stored.length, 600_000);
});
