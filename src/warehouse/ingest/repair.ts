/**
 * Recomputes rollups after an interrupted insert. Only the drain of a row's partition writes it, and waits
 * for the repair. Readers miss the affected days between DELETE and INSERT. The next comparison finds an
 * interrupted repair.
 */
import type { ClickHouseClient } from '@clickhouse/client';
import type { OutboxRange } from '../../contracts/job-data.js';
import { toFirstRowId, toLastRowId } from '../../contracts/outbox-ids.js';
import { runStatement, selectNumber, syncReplicas } from '../clickhouse/client.js';
import { type Cluster, deleteFrom } from '../clickhouse/ddl.js';
import { type Rollup, rollupColumns, selectRollup } from '../schema/rollup.js';
import { archivedDays, isArchived, keptRows, selectArchived } from '../schema/rollups.js';

/** The bounds of outbox_ms let ClickHouse use the skip index. */
export function inRanges(ranges: readonly OutboxRange[]): string {
  if (ranges.length === 0) return '0';
  const bounds = ranges.map(({ partition, from, to }) => {
    return { partition, from: toFirstRowId(from), to: toLastRowId(to) };
  });
  const first = Math.min(...bounds.map(({ from }) => from.ms));
  const last = Math.max(...bounds.map(({ to }) => to.ms));
  const each = bounds.map(
    ({ partition, from, to }) =>
      `(partition_id = ${partition} AND (outbox_ms, outbox_seq) BETWEEN (${from.ms}, ${from.seq}) AND (${to.ms}, ${to.seq}))`,
  );
  return `outbox_ms BETWEEN ${first} AND ${last} AND (${each.join(' OR ')})`;
}

interface Repairs {
  readonly client: ClickHouseClient;
  readonly cluster: Cluster;
  readonly signal?: AbortSignal | undefined;
}

/** Conditions on the archive use the alias `a`. */
export interface RollupPart {
  readonly inAttempts: string;
  readonly inArchive: string;
  readonly inRollup: string;
  readonly onlyWhereWrong?: boolean;
}

export function partOfRanges({ unit }: Rollup, ranges: readonly OutboxRange[]): RollupPart {
  const names = Object.keys(unit);
  const expressions = Object.values(unit).join(', ');
  const touched = `(SELECT DISTINCT ${expressions} FROM attempts WHERE ${inRanges(ranges)})`;
  return {
    inAttempts: `(${expressions}) IN ${touched}`,
    inArchive: `(${names.map((name) => `a.${name}`).join(', ')}) IN ${touched}`,
    inRollup: `(${names.join(', ')}) IN ${touched}`,
  };
}

const maxRounds = 5;

/**
 * Compares again after a repair: a process that paused between DELETE and INSERT may add its sums twice.
 * @returns whether the part was repaired
 */
export async function repairPart(repairs: Repairs, rollup: Rollup, part: RollupPart): Promise<boolean> {
  const { client, cluster, signal } = repairs;
  const { name } = rollup.table;
  for (let round = 0; ; round++) {
    await syncReplicas(client, name, cluster, signal);
    const differing = await selectNumber(client, countDiffering(rollup, part), { signal });
    if (differing === 0) return round > 0;
    if (round === maxRounds) throw new Error(`${name} differs from attempts again and again`);
    await computeAgain(repairs, rollup, part);
  }
}

async function computeAgain(
  { client, cluster, signal }: Repairs,
  rollup: Rollup,
  part: RollupPart,
): Promise<void> {
  const { name } = rollup.table;
  // This condition makes a late statement of a killed process change nothing. The setting makes a DELETE
  // evaluate subqueries first.
  const isWrong = part.onlyWhereWrong ? '1' : `(${countDiffering(rollup, part)}) > 0`;
  await runStatement(client, `${deleteFrom(name, cluster)} WHERE ${part.inRollup} AND ${isWrong}`, {
    settings: { mutations_execute_subqueries_on_initiator: 1 },
    signal,
  });
  const isGone = `(SELECT count() FROM ${name} WHERE ${part.inRollup}) = 0`;
  const insert = `INSERT INTO ${name} (${rollupColumns(rollup)})
${selectRollup(rollup, `${isGone} AND ${keptRows} AND ${part.inAttempts}`)}
UNION ALL
${selectArchived(rollup, `${isGone} AND ${part.inArchive}`)}`;
  // Insert even if an earlier repair inserted an equal block.
  await runStatement(client, insert, { settings: { insert_deduplicate: 0 }, signal });
}

/** Counts are enough: a rollup has all rows of a block or none. */
function countDiffering(
  { table, unit, levels }: Rollup,
  { inAttempts, inArchive, inRollup }: RollupPart,
): string {
  const names = Object.keys(unit).join(', ');
  const named = Object.entries(unit).map(([name, expression]) => `${expression} AS ${name}`);
  return `SELECT toUInt32(count()) AS units FROM (
  SELECT ${names} FROM (
    SELECT ${named.join(', ')}, toInt64(${levels.length}) AS n FROM attempts WHERE ${keptRows} AND ${inAttempts}
    UNION ALL
    SELECT ${names}, ${levels.length} * toInt64(a.attempts) AS n FROM ${archivedDays} WHERE ${isArchived} AND ${inArchive}
    UNION ALL
    SELECT ${names}, -toInt64(attempts) AS n FROM ${table.name} WHERE ${inRollup}
  ) GROUP BY ${names} HAVING sum(n) != 0
)`;
}
