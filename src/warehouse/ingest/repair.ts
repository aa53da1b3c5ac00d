/**
 * Recomputes rollups after an interrupted insert. Only the drain of a row's partition writes it, and waits
 * for the repair. Readers miss the affected days between DELETE and INSERT. The next comparison finds an
 * interrupted repair.
 */
import type { ClickHouseClient } from '@clickhouse/client';
import type { OutboxRange } from '../../contracts/outbox/job-data.js';
import { toFirstRowId, toLastRowId } from '../../contracts/outbox/outbox-ids.js';
import { runStatement, selectNumber, syncReplicas } from '../clickhouse/client.js';
import { buildDeleteFrom, type ClusterName } from '../clickhouse/ddl.js';
import { skillCount, summedAnswers } from '../schema/attempt-tables.js';
import { buildRollupSelect, listRollupColumns, type Rollup } from '../schema/rollup.js';
import {
  archivedCondition,
  archiveSource,
  buildArchiveSelect,
  retainedCondition,
} from '../schema/rollups.js';

/** The bounds of outbox_ms let ClickHouse use the skip index. */
export function buildRangeCondition(ranges: readonly OutboxRange[]): string {
  if (ranges.length === 0) return '0';
  const bounds = ranges.map(({ partition, from, to }) => {
    return { partition, from: toFirstRowId(from), to: toLastRowId(to) };
  });
  const first = Math.min(...bounds.map(({ from }) => from.ms));
  const last = Math.max(...bounds.map(({ to }) => to.ms));
  const conditions = bounds.map(
    ({ partition, from, to }) =>
      `(partition_id = ${partition} AND (outbox_ms, outbox_seq) BETWEEN (${from.ms}, ${from.seq}) AND (${to.ms}, ${to.seq}))`,
  );
  return `outbox_ms BETWEEN ${first} AND ${last} AND (${conditions.join(' OR ')})`;
}

interface RepairContext {
  readonly client: ClickHouseClient;
  readonly cluster: ClusterName;
  readonly signal?: AbortSignal | undefined;
}

/** Conditions on the archive use the alias `a`. */
export interface RollupPart {
  readonly attemptsCondition: string;
  readonly archiveCondition: string;
  readonly rollupCondition: string;
  readonly selectsOnlyDifferences?: boolean;
}

export function buildRangePart({ repairUnit }: Rollup, ranges: readonly OutboxRange[]): RollupPart {
  const names = Object.keys(repairUnit);
  const expressions = Object.values(repairUnit).join(', ');
  const affectedUnits = `(SELECT DISTINCT ${expressions} FROM ${selectSource(repairUnit).from} WHERE ${buildRangeCondition(ranges)})`;
  return {
    attemptsCondition: `(${expressions}) IN ${affectedUnits}`,
    archiveCondition: `(${names.map((name) => `a.${name}`).join(', ')}) IN ${affectedUnits}`,
    rollupCondition: `(${names.join(', ')}) IN ${affectedUnits}`,
  };
}

/** Two processes that repair the same rows, one after a suspension, undo each other's result. */
const maxRepairPasses = 5;

/**
 * Compares again after a repair: a process that paused between DELETE and INSERT may add its sums twice.
 * @returns whether the part was repaired
 */
export async function repairPart(context: RepairContext, rollup: Rollup, part: RollupPart): Promise<boolean> {
  const { client, cluster, signal } = context;
  const { name } = rollup.table;
  for (let pass = 0; ; pass++) {
    await syncReplicas(client, name, cluster, signal);
    const differing = await selectNumber(client, buildDifferenceCount(rollup, part), { signal });
    if (differing === 0) return pass > 0;
    if (pass === maxRepairPasses)
      throw new Error(`${name} still differs from attempts after ${maxRepairPasses} repairs`);
    await recomputePart(context, rollup, part);
  }
}

async function recomputePart(
  { client, cluster, signal }: RepairContext,
  rollup: Rollup,
  part: RollupPart,
): Promise<void> {
  const { name } = rollup.table;
  // This condition makes a late statement of a killed process change nothing. The setting makes a DELETE
  // evaluate subqueries first.
  const differsCondition = part.selectsOnlyDifferences ? '1' : `(${buildDifferenceCount(rollup, part)}) > 0`;
  await runStatement(
    client,
    `${buildDeleteFrom(name, cluster)} WHERE ${part.rollupCondition} AND ${differsCondition}`,
    {
      settings: { mutations_execute_subqueries_on_initiator: 1 },
      signal,
    },
  );
  const deletedCondition = `(SELECT count() FROM ${name} WHERE ${part.rollupCondition}) = 0`;
  const insert = `INSERT INTO ${name} (${listRollupColumns(rollup)})
${buildRollupSelect(rollup, `${deletedCondition} AND ${retainedCondition} AND ${part.attemptsCondition}`)}
UNION ALL
${buildArchiveSelect(rollup, `${deletedCondition} AND ${part.archiveCondition}`)}`;
  // Insert even if an earlier repair inserted an equal block.
  await runStatement(client, insert, { settings: { insert_deduplicate: 0 }, signal });
}

/** `skills`: skills of a row of `from`. A unit without a skill needs only the table, which costs less. */
const selectSource = (unit: Rollup['repairUnit']) =>
  'skill_id' in unit ? { from: summedAnswers, skills: '1' } : { from: 'attempts', skills: skillCount };

/** Counts are enough: a rollup has all rows of a block or none. */
function buildDifferenceCount(
  { table, repairUnit, levels }: Rollup,
  { attemptsCondition, archiveCondition, rollupCondition }: RollupPart,
): string {
  const names = Object.keys(repairUnit).join(', ');
  const named = Object.entries(repairUnit).map(([name, expression]) => `${expression} AS ${name}`);
  const { from, skills } = selectSource(repairUnit);
  return `SELECT toUInt32(count()) AS units FROM (
  SELECT ${names} FROM (
    SELECT ${named.join(', ')}, toInt64(${levels.length} * ${skills}) AS n FROM ${from} WHERE ${retainedCondition} AND ${attemptsCondition}
    UNION ALL
    SELECT ${names}, ${levels.length} * toInt64(a.attempts) AS n FROM ${archiveSource} WHERE ${archivedCondition} AND ${archiveCondition}
    UNION ALL
    SELECT ${names}, -toInt64(attempts) AS n FROM ${table.name} WHERE ${rollupCondition}
  ) GROUP BY ${names} HAVING sum(n) != 0
)`;
}
