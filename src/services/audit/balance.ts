/** accepted - removed = stored + in the outbox + parked, for each partition, tenant and day of arrival. Pure. */
import { readTenantDay } from '../../contracts/tenant-day.js';
import type { DayRange, PartitionLook, StoredTallies, Tally } from './ports.js';
import type { Balance, Mismatch } from './report.js';

/** What one look came to. */
export interface Balanced {
  readonly balance: Balance;
  readonly mismatches: readonly Mismatch[];
  /** Why some sums are not decided; null where all are. */
  readonly obstacle: string | null;
}

export function compareBalance(look: PartitionLook, stored: StoredTallies, days: DayRange): Balanced {
  const total = { accepted: 0, removed: 0, stored: 0, waiting: 0, parked: 0 };
  const mismatches: Mismatch[] = [];
  let open = 0;
  for (const name of namesOf(look, stored)) {
    const { tenant, day } = readTenantDay(name);
    if (day < days.from || day > days.to || day <= look.prunedThrough) continue;
    const sums = sumsOf(name, look, stored);
    for (const place of places) total[place] += sums[place];
    const expected = sums.accepted - sums.removed;
    const found = sums.stored + sums.waiting + sums.parked;
    if (found === expected) continue;
    const kind = found < expected ? 'missing' : 'surplus';
    // What is stored and seems to wait may be in the outbox no more.
    if (kind === 'missing' && expected - found <= (stored.among.get(name) ?? 0)) open++;
    else mismatches.push({ kind, tenant, day, partition: look.partition, place: null, expected, found });
  }
  const obstacle = open > 0 ? 'rows are leaving the outbox' : unreadable(look, mismatches);
  return { balance: total, mismatches, obstacle };
}

const places = ['accepted', 'removed', 'stored', 'waiting', 'parked'] as const;

const namesOf = (look: PartitionLook, { below, among }: StoredTallies): Set<string> =>
  new Set(
    [look.accepted, look.removed, look.waiting, look.parked, below, among].flatMap((of) => [...of.keys()]),
  );

function sumsOf(name: string, look: PartitionLook, { below }: StoredTallies): Balance {
  const of = (tally: Tally): number => tally.get(name) ?? 0;
  return {
    accepted: of(look.accepted),
    removed: of(look.removed),
    stored: of(below),
    waiting: of(look.waiting),
    parked: of(look.parked),
  };
}

/** Rows whose tenant and day nobody can tell may be the missing ones. */
function unreadable({ unreadable: rows }: PartitionLook, mismatches: readonly Mismatch[]): string | null {
  const lost = mismatches.reduce(
    (sum, { kind, expected, found }) => sum + (kind === 'missing' ? expected - found : 0),
    0,
  );
  return lost > 0 && lost <= rows ? `${rows} of its parked rows cannot be read` : null;
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
