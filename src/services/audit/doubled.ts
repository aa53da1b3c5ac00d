/** Finds answers that are stored twice. */
import { isBefore } from '../../contracts/outbox-ids.js';
import type { AuditStore, DoubledNumber, DoubledRows } from './ports.js';
import type { Mismatch, MismatchKind } from './report.js';
import { type AuditRun, certainLooks, recurring, rest } from './run.js';

export async function findDoubled(run: AuditRun): Promise<readonly Mismatch[]> {
  let found: Mismatch[] | null = null;
  for (let look = 1; look <= certainLooks; look++) {
    run.onStep(`answers that are stored twice, look ${look}`);
    found = recurring(found, await lookOnce(run));
    if (found.length === 0) break;
    if (look < certainLooks) await rest(run);
  }
  return found ?? [];
}

async function lookOnce({ store, warehouse, days, signal }: AuditRun): Promise<Mismatch[]> {
  const ids = await warehouse.doubledIds(days, signal);
  const numbers = await surplusOf(store, await warehouse.doubledNumbers(days, signal));
  return [...ids.map(mismatchOf('doubled_id')), ...numbers.map(mismatchOf('doubled_number'))];
}

/** Learners who were erased and answer again have numbers twice until their rows of before are gone. */
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

const mismatchOf =
  (kind: MismatchKind) =>
  ({ partition, tenant, day, surplus }: DoubledRows): Mismatch => ({
    kind,
    tenant,
    day,
    partition,
    place: null,
    expected: 0,
    found: surplus,
  });
