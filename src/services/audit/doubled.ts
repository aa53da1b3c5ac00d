/** Finds answers that are stored twice. */
import type { DoubledRows } from './ports.js';
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

async function lookOnce({ warehouse, days, signal }: AuditRun): Promise<Mismatch[]> {
  const ids = await warehouse.doubledIds(days, signal);
  const numbers = await warehouse.doubledNumbers(days, signal);
  return [...ids.map(mismatchOf('doubled_id')), ...numbers.map(mismatchOf('doubled_number'))];
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
