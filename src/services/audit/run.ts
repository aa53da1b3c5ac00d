/** What the comparisons of one audit share. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { AuditStore, AuditWarehouse, DayRange, PartitionLook } from './ports.js';
import type { Mismatch } from './report.js';

export interface AuditRun {
  readonly store: AuditStore;
  readonly warehouse: AuditWarehouse;
  readonly days: DayRange;
  readonly signal: AbortSignal;
  readonly onStep: (step: string) => void;
  /** How long rows and corrections on their way are waited for, and the pause between two looks; milliseconds. */
  readonly patienceMs: number;
  readonly pauseMs: number;
}

/** What a comparison came to. */
export interface Compared {
  readonly mismatches: readonly Mismatch[];
  /** What could not be compared, and why. */
  readonly notCompared: readonly string[];
}

/** So many looks in a row have to show the same before it is told: one may meet what is being mended. */
export const certainLooks = 3;

export const partitionsOf = ({ partitions }: AuditStore): number[] =>
  Array.from({ length: partitions }, (_, partition) => partition);

/** One after the other: each look takes a little of Redis' time. */
export async function lookAt(
  { store, signal }: AuditRun,
  partitions: readonly number[],
): Promise<PartitionLook[]> {
  const looks: PartitionLook[] = [];
  for (const partition of partitions) looks.push(await store.look(partition, signal));
  return looks;
}

/** Waits from the end of one look to the next. */
export async function rest({ pauseMs, signal }: AuditRun): Promise<void> {
  await sleep(pauseMs, undefined, { signal });
}

/** Those that were there at the look before, too; null: there was none. */
export function recurring(before: readonly Mismatch[] | null, now: readonly Mismatch[]): Mismatch[] {
  if (before === null) return [...now];
  const known = new Set(before.map(nameOf));
  return now.filter((mismatch) => known.has(nameOf(mismatch)));
}

export const nameOf = ({ kind, tenant, day, partition, place }: Mismatch): string =>
  [kind, tenant, day, partition, place].join(' ');
