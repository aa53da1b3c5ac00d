/**
 * Version 8: sums of learners in half the bytes, and two more tables of them, which are filled from the sums by day. No
 * process of an earlier version may write meanwhile (docs/operations.md), and this one writes when its schema is there.
 */
import type { ClickHouseClient } from '@clickhouse/client';
import { runStatement, selectNumber } from '../clickhouse/client.js';
import { type Cluster, type Column, declare, everywhere, storedName, type Table } from '../clickhouse/ddl.js';
import { oneBlock } from '../clickhouse/insert-rows.js';
import {
  archivedLearnerSkill,
  learnerDays,
  learnerSkill,
  learnerSkillTotals,
  type Rollup,
  rollupColumns,
  selectDays,
  selectRollup,
} from './rollups.js';

/** What an older table has and this version's has not goes; the others get the types of now. Doing it again does nothing. */
export const narrowColumns = (cluster: Cluster): string[] => [
  `ALTER TABLE ${everywhere(`${learnerSkill.table.name}_mv`, cluster)} MODIFY QUERY ${selectRollup(learnerSkill, undefined, storedName('attempts', cluster))}`,
  ...alterTables(learnerSkill.table, ['first_answer', 'log_seconds_squared'], cluster),
  ...alterTables(archivedLearnerSkill, ['first_answer'], cluster),
];

function alterTables({ name, columns, orderBy }: Table, gone: readonly string[], cluster: Cluster): string[] {
  const keys = orderBy.slice(1, -1).split(', ');
  const changed = columns.filter((column) => !keys.includes(column.name));
  const names = cluster === null ? [name] : [storedName(name, cluster), name];
  return names.map((one) => {
    const isStored = one === storedName(name, cluster);
    const declared = ({ codec, ...plain }: Column) =>
      declare(isStored && codec !== undefined ? { ...plain, codec } : plain);
    const changes = [
      ...gone.map((column) => `DROP COLUMN IF EXISTS ${column}`),
      ...changed.map((column) => `MODIFY COLUMN ${declared(column)}`),
    ];
    return `ALTER TABLE ${everywhere(one, cluster)} ${changes.join(', ')}`;
  });
}

/** Learners are taken in lots of about so many days, for each is one block: it is there as a whole or not at all. */
const daysOfLot = 1_000_000;

/** @throws Error where a table does not take its rows */
export async function fillTotals(client: ClickHouseClient): Promise<void> {
  const days = await selectNumber(client, `SELECT count() FROM ${learnerSkill.table.name}`);
  const lots = Math.ceil(days / daysOfLot);
  for (const rollup of [learnerSkillTotals, learnerDays])
    for (let lot = 0; lot < lots; lot++) await fillLot(client, rollup, `${lots}:${lot}`);
}

/** ClickHouse notes a token before it moves the part into place: who is killed in between needs another one. */
const maxTokens = 5;

async function fillLot(client: ClickHouseClient, rollup: Rollup, lot: string): Promise<void> {
  const [lots, number] = lot.split(':');
  const { name } = rollup.table;
  const isOfLot = `cityHash64(tenant, user_id) % ${lots} = ${number}`;
  const answers = (table: string) => `(SELECT sum(attempts) FROM ${table} WHERE ${isOfLot})`;
  const missing = `SELECT ${answers(learnerSkill.table.name)} - ${answers(name)}`;
  for (let token = 0; (await selectNumber(client, missing)) !== 0; token++) {
    if (token === maxTokens) throw new Error(`${name} does not take its rows`);
    await runStatement(
      client,
      `INSERT INTO ${name} (${rollupColumns(rollup)}) ${selectDays(rollup, 'd', `${learnerSkill.table.name} AS d`, isOfLot)}`,
      {
        settings: { ...oneBlock, insert_deduplication_token: `fill:${name}:${lot}:${token}` },
      },
    );
  }
}
