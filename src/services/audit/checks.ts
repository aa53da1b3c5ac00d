/** What the comparisons of an audit share. */
import type { DayRange, Tally } from '../../contracts/tenant-day.js';
import type { AuditStore, PartitionLook } from '../../store/audit/audit-store.js';
import type { AuditWarehouse } from '../../warehouse/maintenance/audit-warehouse.js';
import type { Mismatch } from './report.js';

export interface AuditParts {
  readonly store: AuditStore;
  readonly warehouse: AuditWarehouse;
}

export interface AuditScope extends AuditParts {
  readonly days: DayRange;
  readonly signal: AbortSignal;
}

/** One comparison, which is repeated until each of its findings is certain. */
export interface Check {
  readonly title: string;
  look(): Promise<Finding[]>;
  /** What could not be compared, and why. */
  undecided(open: readonly Finding[]): string[];
}

/** What one look found. */
export interface Finding {
  /** The same for the same finding of the next look. */
  readonly name: string;
  /** What may explain it, or hide more: the look proves nothing then. Null where nothing was in the way. */
  readonly obstacle: string | null;
  /** Null: an obstacle, and nothing that differs. */
  readonly mismatch: Mismatch | null;
}

export const findingOf = (mismatch: Mismatch, obstacle: string | null): Finding => {
  const { kind, tenant, day, partition, place } = mismatch;
  return { name: [kind, tenant, day, partition, place].join(' '), obstacle, mismatch };
};

/**
 * Reads ClickHouse between two looks at Redis.
 * @returns also what makes the comparison worthless for each partition, or null; and the last day that was archived before
 */
export async function readBetweenLooks<Read>(
  { store, warehouse, signal }: AuditScope,
  partitions: readonly number[],
  read: (before: readonly PartitionLook[]) => Promise<Read>,
) {
  /** One after the other: each takes a little of Redis' time. */
  const lookAtAll = async (): Promise<PartitionLook[]> => {
    const looks: PartitionLook[] = [];
    for (const partition of partitions) looks.push(await store.look(partition, signal));
    return looks;
  };
  const marks = async () => [(await store.epoch()).id, await warehouse.archivedThrough(signal)] as const;
  const [epoch, archivedThrough] = await marks();
  const before = await lookAtAll();
  // What had left the outbox by now is on a replica: all must have it before they are asked.
  await warehouse.catchUp(signal);
  const found = await read(before);
  const after = await lookAtAll();
  const [epochAfter, archivedAfter] = await marks();
  const shared =
    (epoch === epochAfter ? null : 'Redis was restarted meanwhile') ??
    (archivedThrough === archivedAfter ? null : 'a month is being archived');
  const obstacles = after.map((look, i) => shared ?? correctionBetween(before[i] as PartitionLook, look));
  return { before, after, found, obstacles, archivedThrough };
}

/** An erasure or a retraction is in the outbox, or due, until it is applied, and changes `removed` when it is done. */
function correctionBetween(before: PartitionLook, after: PartitionLook): string | null {
  const isSettled =
    !before.hasCorrections &&
    !after.hasCorrections &&
    before.prunedThrough === after.prunedThrough &&
    sameTally(before.removed, after.removed);
  return isSettled ? null : 'an erasure or a taking back is under way';
}

const sameTally = (a: Tally, b: Tally): boolean =>
  a.size === b.size && [...a].every(([name, n]) => b.get(name) === n);
