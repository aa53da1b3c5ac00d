/** accepted - removed = stored + in the outbox + parked, for each partition, tenant and day of arrival. Pure. */
import { readTenantDay } from '../../contracts/tenant-day.js';
import type { DayRange, PartitionLook, Tally } from './ports.js';
import type { Balance, Mismatch } from './report.js';

/** What one look came to. */
interface Balanced {
  readonly balance: Balance;
  readonly mismatches: readonly Mismatch[];
}

/** @param stored the partition's stored answers below the frontier of the look */
export function compareBalance(look: PartitionLook, stored: Tally, days: DayRange): Balanced {
  const { accepted, removed, waiting, parked, partition } = look;
  const total = { accepted: 0, removed: 0, stored: 0, waiting: 0, parked: 0 };
  const mismatches: Mismatch[] = [];
  const names = new Set([accepted, removed, stored, waiting, parked].flatMap((tally) => [...tally.keys()]));
  for (const name of names) {
    const { tenant, day } = readTenantDay(name);
    if (day < days.from || day > days.to || day <= look.prunedThrough) continue;
    const of = (tally: Tally): number => tally.get(name) ?? 0;
    total.accepted += of(accepted);
    total.removed += of(removed);
    total.stored += of(stored);
    total.waiting += of(waiting);
    total.parked += of(parked);
    const expected = of(accepted) - of(removed);
    const found = of(stored) + of(waiting) + of(parked);
    const kind = found < expected ? 'missing' : 'surplus';
    if (found !== expected) mismatches.push({ kind, tenant, day, partition, place: null, expected, found });
  }
  return { balance: total, mismatches };
}

/**
 * Whether nothing was taken away from the partition's stored rows between the two looks: an erasure or a taking back
 * is in the outbox while it is carried out, and changes `removed` when it is done.
 */
export const isSettled = (before: PartitionLook, after: PartitionLook): boolean =>
  !before.hasCorrections &&
  !after.hasCorrections &&
  before.prunedThrough === after.prunedThrough &&
  sameTally(before.removed, after.removed);

const sameTally = (a: Tally, b: Tally): boolean =>
  a.size === b.size && [...a].every(([name, n]) => b.get(name) === n);
