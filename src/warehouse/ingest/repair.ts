/**
 * Computing rollups again from `attempts`, for rows whose insert may have been killed before the views had them.
 *
 * Safe, because a rollup's row is made by one Redis partition alone (rollups.ts), whose drain is the only writer
 * and waits meanwhile. Deleting and inserting are two steps: readers may miss the touched days for a moment, and
 * a repair that dies in between is found by the next comparison. Days may have answers whose rows were dropped for
 * their age: what they make is taken from the archive.
 */
import type { ClickHouseClient } from '@clickhouse/client';
import type { OutboxRange } from '../../contracts/jobs.js';
import { firstRowOf, lastRowOf } from '../../contracts/outbox-ids.js';
import { selectRows } from '../clickhouse/client.js';
import { type Cluster, catchUp, deleteFrom } from '../clickhouse/cluster.js';
import { archivedDays, isArchived, keptRows, selectArchived } from '../schema/archive.js';
import { type Rollup, rollupColumns, selectRollup } from '../schema/rollups.js';

/** Condition over `attempts`; the bounds are numbers, whatever the ranges' texts say. Ids are compared as pairs, the bounds on outbox_ms serve the skip index. */
export function inRanges(ranges: readonly OutboxRange[]): string {
  if (ranges.length === 0) return '0';
  const bounds = ranges.map(({ from, to }) => [firstRowOf(from), lastRowOf(to)] as const);
  const first = Math.min(...bounds.map(([from]) => from.ms));
  const last = Math.max(...bounds.map(([, to]) => to.ms));
  const each = bounds.map(
    ([from, to], i) =>
      `(partition_id = ${ranges[i]?.partition} AND (outbox_ms, outbox_seq) BETWEEN (${from.ms}, ${from.seq}) AND (${to.ms}, ${to.seq}))`,
  );
  return `outbox_ms BETWEEN ${first} AND ${last} AND (${each.join(' OR ')})`;
}

/** Where a repair runs, and what ends it. */
interface Repairs {
  readonly client: ClickHouseClient;
  readonly cluster: Cluster;
  readonly signal?: AbortSignal | undefined;
}

/** The same keys of a rollup as conditions over the table, over the archive `a` and over the rollup. */
export interface RollupPart {
  readonly inAttempts: string;
  readonly inArchive: string;
  readonly inRollup: string;
  /** Whether they hold for nothing any more where the rollup is right. */
  readonly onlyWhereWrong: boolean;
}

/** The keys that rows of the ranges have. */
export function partOfRanges({ keys }: Rollup, ranges: readonly OutboxRange[]): RollupPart {
  const names = Object.keys(keys);
  const expressions = Object.values(keys).join(', ');
  const touched = `(SELECT DISTINCT ${expressions} FROM attempts WHERE ${inRanges(ranges)})`;
  return {
    inAttempts: `(${expressions}) IN ${touched}`,
    inArchive: `(${names.map((name) => `a.${name}`).join(', ')}) IN ${touched}`,
    inRollup: `(${names.join(', ')}) IN ${touched}`,
    onlyWhereWrong: false,
  };
}

/** Of one that stood still while another one repaired: each finds what the other's rows make wrong. */
const maxRounds = 5;

/**
 * Compared again after each time: a process that slept between deleting and inserting may wake up when its job was
 * given away and the sums are there already.
 *
 * @returns whether that part of the rollup differed from the table and was computed again
 */
export async function repairPart(repairs: Repairs, rollup: Rollup, part: RollupPart): Promise<boolean> {
  const { client, cluster, signal } = repairs;
  for (let round = 0; ; round++) {
    await complete(client, rollup.table.name, cluster, signal);
    const [row] = await selectRows<{ keys: number }>(client, countDiffering(rollup, part), signal);
    if ((row?.keys ?? 0) === 0) return round > 0;
    if (round === maxRounds) throw new Error(`${rollup.table.name} differs from attempts again and again`);
    await computeAgain(repairs, rollup, part);
  }
}

async function computeAgain(
  { client, cluster, signal }: Repairs,
  rollup: Rollup,
  part: RollupPart,
): Promise<void> {
  const cancel = signal && { abort_signal: signal };
  // Either may arrive when its process was killed and another one has repaired: there is nothing to do then. Scalars,
  // because they are asked before the first row goes or comes; in a deletion the setting sees to that, part by part it
  // is otherwise.
  const isWrong = part.onlyWhereWrong ? '1' : `(${countDiffering(rollup, part)}) > 0`;
  await client.command({
    query: `${deleteFrom(rollup.table.name, cluster)} WHERE ${part.inRollup} AND ${isWrong}`,
    clickhouse_settings: { mutations_execute_subqueries_on_initiator: 1 },
    ...cancel,
  });
  const isGone = `(SELECT count() FROM ${rollup.table.name} WHERE ${part.inRollup}) = 0`;
  await client.command({
    query: `INSERT INTO ${rollup.table.name} (${rollupColumns(rollup)})
${selectRollup(rollup, `${isGone} AND ${keptRows} AND ${part.inAttempts}`)}
UNION ALL
${selectArchived(rollup, `${isGone} AND ${part.inArchive}`)}`,
    // The same rows may have been inserted by an earlier repair and deleted since: they are wanted again.
    clickhouse_settings: { insert_deduplicate: 0 },
    ...cancel,
  });
}

/** Lets whichever replica is asked next know of all rows that any of them took. */
export async function complete(
  client: ClickHouseClient,
  table: string,
  cluster: Cluster,
  signal?: AbortSignal,
): Promise<void> {
  const query = catchUp(table, cluster);
  if (query !== null) await client.command({ query, ...(signal && { abort_signal: signal }) });
}

/** A block is in a rollup as a whole or not at all, so that counts show it. */
function countDiffering({ table, keys }: Rollup, { inAttempts, inArchive, inRollup }: RollupPart): string {
  const names = Object.keys(keys).join(', ');
  const named = Object.entries(keys).map(([name, expression]) => `${expression} AS ${name}`);
  return `SELECT toUInt32(count()) AS keys FROM (
  SELECT ${names} FROM (
    SELECT ${named.join(', ')}, toInt64(1) AS n FROM attempts WHERE ${keptRows} AND ${inAttempts}
    UNION ALL
    SELECT ${names}, toInt64(a.attempts) AS n FROM ${archivedDays} WHERE ${isArchived} AND ${inArchive}
    UNION ALL
    SELECT ${names}, -toInt64(attempts) AS n FROM ${table.name} WHERE ${inRollup}
  ) GROUP BY ${names} HAVING sum(n) != 0
)`;
}
