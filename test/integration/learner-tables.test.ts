/** The list of the tables that hold a learner's rows is complete: exports and erasures rest on it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { learnerTables } from '../../src/warehouse/schema/learner-tables.js';
import { testDatabase } from '../support/inspect/warehouse.js';
import { freshDatabase } from '../support/servers/embedded.js';

test('every table with learners is in the list, and can be asked for one of them', async (t) => {
  const { clickhouseUrl } = await freshDatabase();
  const { client } = await testDatabase(t, clickhouseUrl);
  const found = await selectRows<{ table: string }>(
    client,
    `SELECT DISTINCT table FROM system.columns WHERE database = currentDatabase() AND name = 'user_id'
     AND table IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree')
     ORDER BY table`,
  );
  const listed = learnerTables.map(({ table }) => table.name).sort();
  assert.deepEqual(
    found.map(({ table }) => table),
    listed,
  );
  for (const { table } of learnerTables) {
    const names = new Set(table.columns.map(({ name }) => name));
    assert.ok(names.has('tenant') && names.has('user_id'), table.name);
  }
});
