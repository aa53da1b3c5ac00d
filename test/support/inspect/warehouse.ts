import assert from 'node:assert/strict';
import type { ClickHouseClient } from '@clickhouse/client';
import { connectWarehouse, selectRows } from '../../../src/warehouse/clickhouse/client.js';
import { createSchema } from '../../../src/warehouse/schema/create-schema.js';
import { rollups } from '../../../src/warehouse/schema/rollups.js';
import type { Scoped } from '../scope.js';
import { freshDatabase } from '../servers/embedded.js';
import { askUntil } from '../wait.js';

/** Creates the schema in a new database. */
export async function testDatabase(t: Scoped, clickhouseUrl: string) {
  const client = connectWarehouse(clickhouseUrl);
  t.after(() => client.close());
  await createSchema(client);
  return { url: clickhouseUrl, client };
}

/** A database with the schema for all tests of a file. `emptyTables` prepares it for the next test. */
export async function fileDatabase(t: Scoped) {
  const { clickhouseUrl } = await freshDatabase();
  return { clickhouseUrl, client: (await testDatabase(t, clickhouseUrl)).client };
}

/** Empties all tables but the list of migrations. Costs less than another database. */
export async function emptyTables(client: ClickHouseClient): Promise<void> {
  const tables = await selectRows<{ name: string }>(
    client,
    `SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'
     AND name != 'schema_migrations' AND total_rows > 0`,
  );
  for (const { name } of tables) await client.command({ query: `TRUNCATE TABLE ${name}` });
}

/** Tables that an insert of answers fills. */
export const filledTables: readonly string[] = ['attempts', ...rollups.map(({ table }) => table.name)];

export type Counts = Readonly<Record<'rows' | 'ids' | 'learner' | 'total' | 'skill', number>>;

/** Rows of `attempts`, distinct outbox ids, and answers per rollup. */
export async function counts(client: ClickHouseClient): Promise<Counts> {
  const [row = assert.fail('no counts')] = await selectRows<Counts>(
    client,
    `SELECT toUInt32(count()) AS rows, toUInt32(uniqExact(partition_id, outbox_ms, outbox_seq)) AS ids,
      toUInt32((SELECT sum(attempts) FROM learner_skill_daily)) AS learner,
      toUInt32((SELECT sum(attempts) FROM learner_skill_total)) AS total,
      toUInt32((SELECT sum(attempts) FROM skill_daily)) AS skill FROM attempts`,
  );
  return row;
}

export const allOnce = (n: number): Counts => ({ rows: n, ids: n, learner: n, total: n, skill: n });

/** Waits until the rollups contain `n` answers, and asserts that each answer is stored once. */
export async function storedOnce(client: ClickHouseClient, n: number): Promise<void> {
  const isStored = ({ learner, total, skill }: Counts): boolean =>
    [learner, total, skill].every((answers) => answers === n);
  assert.deepEqual(await askUntil(`${n} answers`, () => counts(client), isStored), allOnce(n));
}

/** Number of rows of a table or view. */
export async function countOf(client: ClickHouseClient, table: string): Promise<number> {
  const [row] = await selectRows<{ n: number }>(client, `SELECT toUInt32(count()) AS n FROM ${table}`);
  return row?.n ?? 0;
}
