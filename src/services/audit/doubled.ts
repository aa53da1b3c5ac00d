/** Finds answers that are stored twice: the sums alone could balance. */
import { isBefore } from '../../contracts/outbox-ids.js';
import type { AuditStore } from '../../store/audit/audit-store.js';
import type { DoubledNumber, DoubledRows } from '../../warehouse/maintenance/audit-warehouse.js';
import { type AuditScope, type Check, type Finding, findingOf } from './checks.js';
import type { MismatchKind } from './report.js';

export const doubledCheck = ({ store, warehouse, days, signal }: AuditScope): Check => ({
  title: 'answers that are stored twice',
  look: async () => {
    const ids = await warehouse.doubledIds(days, signal);
    const numbers = await surplusOf(store, await warehouse.doubledNumbers(days, signal));
    return [
      ...ids.map((rows) => doubled('doubled_id', rows)),
      ...numbers.map((rows) => doubled('doubled_number', rows)),
    ];
  },
  undecided: (open) => [`${open.length} days with answers that are stored twice in some looks only`],
});

/** Learners who were erased and answer again have numbers twice until their earlier rows are deleted. */
async function surplusOf(store: AuditStore, doubled: readonly DoubledNumber[]): Promise<DoubledRows[]> {
  const sums = new Map<string, DoubledRows>();
  for (const partition of new Set(doubled.map((one) => one.partition))) {
    const own = doubled.filter((one) => one.partition === partition);
    const ends = await store.endOfHistory(partition, own);
    for (const [i, { tenant, day, ids }] of own.entries()) {
      const end = ends[i] ?? null;
      const surplus = ids.filter((id) => end === null || !isBefore(id, end)).length - 1;
      if (surplus < 1) continue;
      const name = `${partition} ${tenant} ${day}`;
      sums.set(name, { partition, tenant, day, surplus: surplus + (sums.get(name)?.surplus ?? 0) });
    }
  }
  return [...sums.values()];
}

const doubled = (kind: MismatchKind, { partition, tenant, day, surplus }: DoubledRows): Finding =>
  findingOf({ kind, tenant, day, partition, place: null, expected: 0, found: surplus }, null);
