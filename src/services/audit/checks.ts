/** The comparisons read ClickHouse between two snapshots of Redis (ADR 23). */
import { isBefore } from '../../contracts/outbox-ids.js';
import { allDays, type DayRange, parseTenantDay, tenantDay } from '../../contracts/tenant-day.js';
import { computeSum, distinct, groupBy } from '../../lists.js';
import { type AuditStore, emptyCounts, type PartitionSnapshot } from '../../store/audit/audit-store.js';
import type {
  AuditWarehouse,
  DuplicateDay,
  RawDay,
  StoredDay,
} from '../../warehouse/maintenance/audit-warehouse.js';
import { type Balance, balanceParts, type Mismatch } from './report.js';

export interface AuditParts {
  readonly store: AuditStore;
  readonly warehouse: AuditWarehouse;
}

interface Scope extends AuditParts {
  readonly days: DayRange;
  readonly signal: AbortSignal;
}

export interface Finding {
  readonly name: string;
  /** Concurrent change that may explain the finding or hide others. */
  readonly obstacle: string | null;
  readonly mismatch: Mismatch | null;
}

export interface Check {
  readonly title: string;
  look(): Promise<Finding[]>;
  undecided(open: readonly Finding[]): string[];
}

const findingOf = (mismatch: Mismatch, obstacle: string | null = null): Finding => {
  const { kind, tenant, day, partition, place } = mismatch;
  return { name: [kind, tenant, day, partition, place].join(' '), obstacle, mismatch };
};

const inSomeLooks = 'they differ in some looks only';

/** `obstacles`: per partition, the change that invalidates the comparison. */
async function readBetweenLooks<Read>(
  { store, warehouse, signal }: Scope,
  partitions: readonly number[],
  read: (before: readonly PartitionSnapshot[]) => Promise<Read>,
) {
  /** Sequential, because each snapshot blocks Redis for a moment. */
  const lookAtAll = async (): Promise<PartitionSnapshot[]> => {
    const looks: PartitionSnapshot[] = [];
    for (const partition of partitions) looks.push(await store.readPartition(partition, signal));
    return looks;
  };
  const marks = async () =>
    [(await store.fetchEpoch()).id, await warehouse.fetchArchivedDay(signal)] as const;
  const [epoch, archivedThrough] = await marks();
  const before = await lookAtAll();
  // The queried replica may lack rows that left the outbox.
  await warehouse.waitForReplicas(signal);
  const found = await read(before);
  const after = await lookAtAll();
  const [epochAfter, archivedAfter] = await marks();
  const shared =
    (epoch === epochAfter ? null : 'Redis was restarted meanwhile') ??
    (archivedThrough === archivedAfter ? null : 'a month is being archived');
  const obstacles = after.map((look, i) => shared ?? changeBetween(before[i] as PartitionSnapshot, look));
  return { before, after, found, obstacles, archivedThrough };
}

function changeBetween(before: PartitionSnapshot, after: PartitionSnapshot): string | null {
  if (before.parkedMark !== after.parkedMark) return 'rows are being parked or moved back';
  // A correction is in the outbox or due until it is applied, which changes `removed`.
  const isSettled =
    !before.hasCorrections &&
    !after.hasCorrections &&
    before.prunedThrough === after.prunedThrough &&
    before.removedInAll === after.removedInAll;
  return isSettled ? null : 'an erasure or a taking back is under way';
}

const balanceOf = (balances: Iterable<Balance>): Balance => {
  const total = { accepted: 0, removed: 0, stored: 0, waiting: 0, parked: 0 };
  for (const balance of balances) for (const part of balanceParts) total[part] += balance[part];
  return total;
};

export function storedCheck(scope: Scope): Check & { totals(): Balance } {
  const { store, warehouse, days, signal } = scope;
  const balances = new Map<number, Balance>();
  let open: readonly number[] = store.partitions;

  async function look(): Promise<Finding[]> {
    const { before, found, obstacles, archivedThrough } = await readBetweenLooks(scope, open, (looks) =>
      warehouse.fetchStoredDays(days, looks, signal),
    );
    const stored = groupBy(found, ({ partition }) => partition);
    const findings = before.map((one, i) => {
      const from = Math.max(days.from, archivedThrough + 1, one.prunedThrough + 1);
      const compared = compareDays(one, stored.get(one.partition) ?? [], { ...days, from });
      balances.set(one.partition, compared.balance);
      const obstacle = obstacles[i] ?? compared.obstacle;
      const findings = compared.mismatches.map((mismatch) => findingOf(mismatch, obstacle));
      const isHidden = findings.length === 0 && obstacle !== null;
      return isHidden ? [{ name: `partition ${one.partition}`, obstacle, mismatch: null }] : findings;
    });
    open = open.filter((_, i) => findings[i]?.length !== 0);
    return findings.flat();
  }

  return {
    title: 'accepted and stored answers',
    look,
    undecided: (findings) =>
      distinct(
        findings.map(({ name, mismatch, obstacle }) => {
          const where = mismatch === null ? name : `partition ${mismatch.partition}`;
          return `accepted and stored answers of ${where}: ${obstacle ?? inSomeLooks}`;
        }),
      ),
    totals: () => balanceOf(balances.values()),
  };
}

function compareDays(look: PartitionSnapshot, stored: readonly StoredDay[], days: DayRange) {
  const { partition, counts } = look;
  const storedOf = new Map(stored.map((row) => [tenantDay(row.tenant, row.day), row]));
  const balances: Balance[] = [];
  const mismatches: Mismatch[] = [];
  let obstacle: string | null = null;
  for (const name of new Set([...counts.keys(), ...storedOf.keys()])) {
    const { tenant, day } = parseTenantDay(name);
    if (day < days.from || day > days.to) continue;
    const { accepted, removed, waiting, parked } = counts.get(name) ?? emptyCounts;
    const { below, among } = storedOf.get(name) ?? { below: 0, among: 0 };
    balances.push({ accepted, removed, stored: below, waiting, parked });
    const [expected, found] = [accepted - removed, below + waiting + parked];
    // The missing rows may have left the middle of the outbox after a partly stored block.
    if (found < expected && expected - found <= among) obstacle = 'rows are leaving the outbox';
    else if (found !== expected) {
      const kind = found < expected ? 'missing' : 'surplus';
      mismatches.push({ kind, tenant, day, partition, place: null, expected, found });
    }
  }
  obstacle ??= unreadableObstacle(look, mismatches);
  return { balance: balanceOf(balances), mismatches, obstacle };
}

/** Parked rows with an unreadable tenant or day may be the missing ones. */
function unreadableObstacle(
  { unreadable }: PartitionSnapshot,
  mismatches: readonly Mismatch[],
): string | null {
  const missing = mismatches.filter(({ kind }) => kind === 'missing');
  const lost = computeSum(missing.map(({ expected, found }) => expected - found));
  return lost > 0 && lost <= unreadable ? `${unreadable} of its parked rows cannot be read` : null;
}

/** The sums may balance although answers are stored twice. */
export const doubledCheck = ({ store, warehouse, days, signal }: Scope): Check => ({
  title: 'answers that are stored twice',
  look: async () => {
    const findings: Finding[] = [];
    for (const doubled of await warehouse.fetchDuplicates(days, signal)) {
      const { partition, tenant, day } = doubled;
      const surplus = { doubled_id: doubled.surplus, doubled_number: await surplusNumbers(store, doubled) };
      for (const kind of ['doubled_id', 'doubled_number'] as const) {
        const mismatch = { kind, tenant, day, partition, place: null, expected: 0, found: surplus[kind] };
        if (surplus[kind] > 0) findings.push(findingOf(mismatch));
      }
    }
    return findings;
  },
  undecided: (open) => [`${open.length} days with answers that are stored twice in some looks only`],
});

/** An erased learner who answers again reuses numbers until the old rows are deleted. */
async function surplusNumbers(store: AuditStore, { partition, tenant, numbers }: DuplicateDay) {
  const userIds = numbers.map(([userId]) => userId);
  const ends = await store.findHistoryEnds(partition, tenant, userIds);
  const surplus = numbers.map(([, ids], i) => {
    const end = ends[i] ?? null;
    return Math.max(0, ids.filter(([ms, seq]) => end === null || !isBefore({ ms, seq }, end)).length - 1);
  });
  return computeSum(surplus);
}

/**
 * By tenant and day of occurred_at. A rollup has at least the rows that left the outbox before the first
 * snapshot, and at most all stored and waiting rows after the second.
 */
export function rollupCheck(scope: Scope): Check & { raw(): number } {
  const { store, warehouse, days, signal } = scope;
  let stored = 0;

  async function look(): Promise<Finding[]> {
    const { before, after, found, obstacles } = await readBetweenLooks(scope, store.partitions, () =>
      warehouse.fetchRollupSums(days, signal),
    );
    const raw = await warehouse.fetchRawSums(days, before, signal);
    stored = computeSum(raw.map(({ day, attempts }) => (day === allDays ? 0 : attempts)));
    const boundsOf = createBounds(raw, before, after);
    const obstacle = obstacles.find((one) => one !== null) ?? null;
    const rawDays = raw.map(({ tenant, day }) => tenantDay(tenant, day));
    return warehouse.rollups.flatMap((rollup) => {
      const own = found.filter((row) => row.rollup === rollup.name);
      const sums = new Map(own.map((row) => [tenantDay(row.tenant, row.day), row]));
      const expected = rawDays.filter((name) => (parseTenantDay(name).day !== allDays) === rollup.isDaily);
      return distinct([...sums.keys(), ...expected]).flatMap((name) => {
        const bounds = boundsOf(name);
        const outliers = outliersOf(rollup.name, name, sums.get(name) ?? nothing, bounds);
        return outliers.map((one) => findingOf(one, obstacle ?? (bounds.isMoving ? repairPossible : null)));
      });
    });
  }

  return {
    title: 'rollups and stored answers',
    look,
    undecided: (open) => [`${open.length} daily sums of rollups: ${open[0]?.obstacle ?? inSomeLooks}`],
    raw: () => stored,
  };
}

const repairPossible = 'rows of theirs wait in the outbox, which the pipeline may be mending';

const columns = ['attempts', 'correct'] as const;
type Sums = Readonly<Record<(typeof columns)[number], number>>;
const nothing: Sums = { attempts: 0, correct: 0 };

function createBounds(
  raw: readonly RawDay[],
  before: readonly PartitionSnapshot[],
  after: readonly PartitionSnapshot[],
) {
  const rawOf = new Map(raw.map((row) => [tenantDay(row.tenant, row.day), row]));
  return (name: string) => {
    const row = rawOf.get(name) ?? { ...nothing, left: nothing };
    const high = { attempts: row.attempts, correct: row.correct };
    for (const look of after) {
      const waiting = waitingIn(look, name);
      for (const column of columns) high[column] += waiting[column];
    }
    const isWaiting = [...before, ...after].some((look) => waitingIn(look, name).attempts > 0);
    return { low: row.left, high, isMoving: isWaiting || row.left.attempts !== row.attempts };
  };
}

function waitingIn({ counts }: PartitionSnapshot, name: string): Sums {
  const { tenant, day } = parseTenantDay(name);
  if (day !== allDays) return counts.get(name) ?? nothing;
  const own = [...counts].filter(([one]) => parseTenantDay(one).tenant === tenant).map(([, sums]) => sums);
  const [attempts, correct] = columns.map((column) => computeSum(own.map((sums) => sums[column])));
  return { attempts: attempts ?? 0, correct: correct ?? 0 };
}

const outliersOf = (
  rollup: string,
  name: string,
  sums: Sums,
  { low, high }: { low: Sums; high: Sums },
): Mismatch[] =>
  columns.flatMap((column) => {
    const found = sums[column];
    const expected = Math.min(Math.max(found, low[column]), high[column]);
    if (found === expected) return [];
    const place = `${rollup}.${column}`;
    return [{ kind: 'rollup' as const, ...parseTenantDay(name), partition: null, place, expected, found }];
  });
