/**
 * Version 8: the sums of learners in half the bytes, over all days too, filled from those of before.
 * No process of an earlier version may write meanwhile (docs/operations.md), and this one writes when its schema is there.
 */
import type { ClickHouseClient } from '@clickhouse/client';
import { runStatement, selectNumber, selectRows } from '../clickhouse/client.js';
import { type Cluster, everywhere, storedName } from '../clickhouse/ddl.js';
import { insertUntilThere, oneBlock } from '../clickhouse/insert-rows.js';
import { rollupColumns } from './rollup.js';
import { archivedLearnerSkill, learnerSums, selectDays } from './rollups.js';
import { formerDays } from './views.js';

/** The table of before. */
const before = formerDays.name;

/**
 * Takes the sums over from the table of before, which goes. Does nothing where there is none; may be repeated after any step.
 * @throws Error where a table does not take its rows
 */
export async function takeSumsOver(client: ClickHouseClient, cluster: Cluster): Promise<void> {
  const query = `SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = '${before}'`;
  const [table] = await selectRows<{ engine: string }>(client, query);
  if (table === undefined || table.engine === 'View') return;
  await fillAll(client);
  const names = cluster === null ? [before] : [storedName(before, cluster), before];
  for (const name of [`${before}_mv`, ...names])
    await runStatement(client, `DROP TABLE IF EXISTS ${everywhere(name, cluster)} SYNC`);
}

/** A day's first answer is nothing that anybody asked for. */
export const narrowArchive = (cluster: Cluster): string[] =>
  (cluster === null ? [''] : ['_local', '']).map(
    (of) =>
      `ALTER TABLE ${everywhere(archivedLearnerSkill.name + of, cluster)} DROP COLUMN IF EXISTS first_answer`,
  );

/** Learners are taken in lots of about so many days, for each is one block: it is there as a whole or not at all. */
const daysOfLot = 300_000;

async function fillAll(client: ClickHouseClient): Promise<void> {
  const lots = Math.ceil((await selectNumber(client, `SELECT count() FROM ${before}`)) / daysOfLot);
  for (let lot = 0; lot < lots; lot++) await fillLot(client, lots, lot);
}

async function fillLot(client: ClickHouseClient, lots: number, lot: number): Promise<void> {
  const { name } = learnerSums.table;
  const isOfLot = `cityHash64(tenant, user_id) % ${lots} = ${lot}`;
  const answers = (table: string) => `(SELECT sum(attempts) FROM ${table} WHERE ${isOfLot})`;
  const missing = `SELECT ${learnerSums.levels.length} * ${answers(before)} - ${answers(name)}`;
  const rows = selectDays(learnerSums, 'd', `${before} AS d`, isOfLot);
  await insertUntilThere(
    name,
    async () => (await selectNumber(client, missing)) !== 0,
    (token) =>
      runStatement(client, `INSERT INTO ${name} (${rollupColumns(learnerSums)}) ${rows}`, {
        settings: { ...oneBlock, insert_deduplication_token: `fill:${name}:${lots}:${lot}:${token}` },
      }),
  );
}
