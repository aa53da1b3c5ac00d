/**
 * Compares the rollups with `attempts`, by tenant and day of occurred_at, while rows arrive. A rollup that was read between
 * two looks has at least what had left the outbox at the first, and at most what waits at the second or is stored after it.
 */
import { readTenantDay } from '../../contracts/tenant-day.js';
import type { PartitionLook } from '../../store/audit/audit-store.js';
import type { RawSums, Sums } from '../../warehouse/maintenance/audit-warehouse.js';
import { type AuditScope, type Check, type Finding, findingOf, readBetweenLooks } from './checks.js';

const columns = ['attempts', 'correct'] as const;
const none: Sums = { attempts: 0, correct: 0 };

export function rollupCheck(scope: AuditScope): Check & { raw(): number } {
  const { store, warehouse, days, signal } = scope;
  let stored = 0;

  async function look(): Promise<Finding[]> {
    const { before, after, found, obstacles } = await readBetweenLooks(scope, store.partitions, () =>
      warehouse.rollupSums(days, signal),
    );
    const raw = await warehouse.rawSums(days, before, signal);
    stored = [...raw.values()].reduce((sum, { all }) => sum + all.attempts, 0);
    const obstacle = obstacles.find((one) => one !== null) ?? null;
    return [...found].flatMap(([rollup, sums]) =>
      [...new Set([...sums.keys(), ...raw.keys()])].flatMap((name) =>
        outliersOf(rollup, name, sums.get(name) ?? none, raw.get(name), { before, after, obstacle }),
      ),
    );
  }

  return {
    title: 'rollups and stored answers',
    look,
    undecided: (open) => {
      const why = open[0]?.obstacle ?? 'they differ in some looks only';
      return [`${open.length} daily sums of rollups: ${why}`];
    },
    /** Stored answers of the days. */
    raw: () => stored,
  };
}

interface Around {
  readonly before: readonly PartitionLook[];
  readonly after: readonly PartitionLook[];
  readonly obstacle: string | null;
}

function outliersOf(
  rollup: string,
  name: string,
  sums: Sums,
  { certain, all }: RawSums = { certain: none, all: none },
  { before, after, obstacle }: Around,
): Finding[] {
  const isMoving =
    certain.attempts !== all.attempts ||
    [...before, ...after].some(({ waiting }) => waiting.attempts.has(name));
  return columns.flatMap((column) => {
    const inOutbox = after.reduce((sum, { waiting }) => sum + (waiting[column].get(name) ?? 0), 0);
    const [low, high, found] = [certain[column], all[column] + inOutbox, sums[column]];
    if (found >= low && found <= high) return [];
    const place = `${rollup}.${column}`;
    const expected = found < low ? low : high;
    const mismatch = {
      kind: 'rollup',
      ...readTenantDay(name),
      partition: null,
      place,
      expected,
      found,
    } as const;
    return findingOf(mismatch, obstacle ?? (isMoving ? repairPossible : null));
  });
}

/** A sum that may be computed again at this moment is seen to be neither right nor wrong. */
const repairPossible = 'rows of theirs wait in the outbox, which the pipeline may be mending';
