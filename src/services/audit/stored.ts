/** accepted - removed = stored + in the outbox + parked, for each partition, tenant and day of arrival. */
import { type DayRange, readTenantDay, type Tally } from '../../contracts/tenant-day.js';
import type { PartitionLook } from '../../store/audit/audit-store.js';
import type { StoredTallies } from '../../warehouse/maintenance/audit-warehouse.js';
import { type AuditScope, type Check, type Finding, findingOf, readBetweenLooks } from './checks.js';
import type { Balance, Mismatch } from './report.js';

/** Partitions that agree are done with; the others are looked at again. */
export function storedCheck(scope: AuditScope): Check & { totals(): Balance } {
  const { store, warehouse, days, signal } = scope;
  const balances = new Map<number, Balance>();
  let open: readonly number[] = store.partitions;

  async function look(): Promise<Finding[]> {
    const { before, found, obstacles, archivedThrough } = await readBetweenLooks(scope, open, (looks) =>
      warehouse.stored(days, looks, signal),
    );
    const compared = { ...days, from: Math.max(days.from, archivedThrough + 1) };
    const findings = before.map((one, i) => {
      const { balance, mismatches, obstacle } = compareBalance(one, found.get(one.partition), compared);
      balances.set(one.partition, balance);
      return findingsOf(one.partition, mismatches, obstacles[i] ?? obstacle);
    });
    open = open.filter((_, i) => findings[i]?.length !== 0);
    return findings.flat();
  }

  return {
    title: 'accepted and stored answers',
    look,
    undecided: (findings) => [
      ...new Set(
        findings.map(({ name, mismatch, obstacle }) => {
          const where = mismatch === null ? name : `partition ${mismatch.partition}`;
          return `accepted and stored answers of ${where}: ${obstacle ?? 'they differ in some looks only'}`;
        }),
      ),
    ],
    totals: () => sumOf([...balances.values()]),
  };
}

const findingsOf = (
  partition: number,
  mismatches: readonly Mismatch[],
  obstacle: string | null,
): Finding[] =>
  mismatches.length === 0 && obstacle !== null
    ? [{ name: `partition ${partition}`, obstacle, mismatch: null }]
    : mismatches.map((mismatch) => findingOf(mismatch, obstacle));

const places = ['accepted', 'removed', 'stored', 'waiting', 'parked'] as const;

const sumOf = (balances: readonly Balance[]): Balance => {
  const total = { accepted: 0, removed: 0, stored: 0, waiting: 0, parked: 0 };
  for (const balance of balances) for (const place of places) total[place] += balance[place];
  return total;
};

const nothing: StoredTallies = { below: new Map(), among: new Map() };

/** @returns `obstacle`: why some of the sums are not decided */
function compareBalance(
  look: PartitionLook,
  { below, among }: StoredTallies = nothing,
  days: DayRange,
): { balance: Balance; mismatches: Mismatch[]; obstacle: string | null } {
  const { partition, accepted, removed, waiting, parked, prunedThrough } = look;
  const all = [accepted, removed, below, waiting.arrived, parked.arrived, among];
  const balances: Balance[] = [];
  const mismatches: Mismatch[] = [];
  let isLeaving = false;
  for (const name of new Set(all.flatMap((tally) => [...tally.keys()]))) {
    const { tenant, day } = readTenantDay(name);
    if (day < days.from || day > days.to || day <= prunedThrough) continue;
    const of = (tally: Tally): number => tally.get(name) ?? 0;
    const balance = {
      ...{ accepted: of(accepted), removed: of(removed), stored: of(below) },
      ...{ waiting: of(waiting.arrived), parked: of(parked.arrived) },
    };
    balances.push(balance);
    const expected = balance.accepted - balance.removed;
    const found = balance.stored + balance.waiting + balance.parked;
    // What is stored and was counted as waiting may have left the outbox from its middle.
    if (found < expected && expected - found <= of(among)) isLeaving = true;
    else if (found !== expected) {
      const kind = found < expected ? 'missing' : 'surplus';
      mismatches.push({ kind, tenant, day, partition, place: null, expected, found });
    }
  }
  const obstacle = isLeaving ? 'rows are leaving the outbox' : unreadable(look, mismatches);
  return { balance: sumOf(balances), mismatches, obstacle };
}

/** Rows whose tenant and day cannot be read may be the missing ones. */
function unreadable({ waiting, parked }: PartitionLook, mismatches: readonly Mismatch[]): string | null {
  const missing = mismatches.filter(({ kind }) => kind === 'missing');
  const lost = missing.reduce((sum, { expected, found }) => sum + expected - found, 0);
  const rows = waiting.unreadable + parked.unreadable;
  return lost > 0 && lost <= rows ? `${rows} of its parked rows cannot be read` : null;
}
