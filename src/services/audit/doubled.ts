/** Finds answers that are stored twice: the sums alone could balance. */
import { isBefore } from '../../contracts/outbox-ids.js';
import type { AuditStore } from '../../store/audit/audit-store.js';
import type { DoubledAnswers } from '../../warehouse/maintenance/audit-warehouse.js';
import { type AuditScope, type Check, type Finding, findingOf } from './checks.js';

export const doubledCheck = ({ store, warehouse, days, signal }: AuditScope): Check => ({
  title: 'answers that are stored twice',
  look: async () => {
    const findings: Finding[] = [];
    for (const doubled of await warehouse.doubled(days, signal)) {
      const { partition, tenant, day } = doubled;
      const surplus = {
        doubled_id: doubled.doubledIds,
        doubled_number: await surplusNumbers(store, doubled),
      };
      for (const kind of ['doubled_id', 'doubled_number'] as const) {
        const mismatch = { kind, tenant, day, partition, place: null, expected: 0, found: surplus[kind] };
        if (surplus[kind] > 0) findings.push(findingOf(mismatch, null));
      }
    }
    return findings;
  },
  undecided: (open) => [`${open.length} days with answers that are stored twice in some looks only`],
});

/** Learners who were erased and answer again have numbers twice until their earlier rows are deleted. */
async function surplusNumbers(
  store: AuditStore,
  { partition, tenant, doubledNumbers }: DoubledAnswers,
): Promise<number> {
  const learners = doubledNumbers.map(({ userId }) => ({ tenant, userId }));
  const ends = await store.endOfHistory(partition, learners);
  const surplus = doubledNumbers.map(({ ids }, i) => {
    const end = ends[i] ?? null;
    return Math.max(0, ids.filter((id) => end === null || !isBefore(id, end)).length - 1);
  });
  return surplus.reduce((sum, n) => sum + n, 0);
}
