/**
 * Comparing a rollup with `attempts` while rows arrive. A rollup that was read between two looks has at least what had
 * left the outbox at the first, and at most what waits at the second or is stored after it. Pure.
 */
import { readTenantDay } from '../../contracts/tenant-day.js';
import type { PartitionLook, RawSums, SumBounds } from './ports.js';
import type { Mismatch } from './report.js';

/** The two looks around the reading of a rollup, and what was stored after them. */
export interface Around {
  readonly before: readonly PartitionLook[];
  readonly after: readonly PartitionLook[];
  readonly raw: ReadonlyMap<string, RawSums>;
}

/** A sum that is out of its bounds. */
export interface Outlier {
  readonly mismatch: Mismatch;
  /** Rows of this tenant and day were on their way: a repair may have been computing its sums again. */
  readonly touched: boolean;
}

const none: SumBounds = { attempts: 0, correct: 0 };
const columns = ['attempts', 'correct'] as const;

export function findOutliers(
  rollup: string,
  sums: ReadonlyMap<string, SumBounds>,
  around: Around,
): Outlier[] {
  const names = new Set([...sums.keys(), ...around.raw.keys()]);
  return [...names].flatMap((name) => outliersOf(rollup, name, sums.get(name) ?? none, around));
}

function outliersOf(rollup: string, name: string, sums: SumBounds, around: Around): Outlier[] {
  const { certain, all } = around.raw.get(name) ?? { certain: none, all: none };
  const touched = certain.attempts !== all.attempts || isWaiting(name, around);
  return columns.flatMap((column) => {
    const low = certain[column];
    const high = all[column] + waitingOf(name, column, around.after);
    const found = sums[column];
    if (found >= low && found <= high) return [];
    const { tenant, day } = readTenantDay(name);
    const place = `${rollup}.${column}`;
    const expected = found < low ? low : high;
    return [
      { mismatch: { kind: 'rollup', tenant, day, partition: null, place, expected, found }, touched },
    ] satisfies Outlier[];
  });
}

const isWaiting = (name: string, { before, after }: Around): boolean =>
  [...before, ...after].some(({ waitingSums }) => waitingSums.attempts.has(name));

const waitingOf = (name: string, column: (typeof columns)[number], looks: readonly PartitionLook[]): number =>
  looks.reduce((sum, { waitingSums }) => sum + (waitingSums[column].get(name) ?? 0), 0);
