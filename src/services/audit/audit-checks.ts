/** The comparisons read ClickHouse between two snapshots of Redis (ADR 23). */
import { isBefore } from '../../contracts/outbox/outbox-ids.js';
import { allDays, type DayRange, parseTenantDay, tenantDay } from '../../contracts/schema/tenant-day.js';
import { computeSum, distinct, groupBy } from '../../lists.js';
import { type AuditStore, emptyCounts, type PartitionSnapshot } from '../../store/audit/audit-store.js';
import type {
  AuditWarehouse,
  DuplicateDay,
  RawDay,
  StoredDay,
} from '../../warehouse/maintenance/audit-warehouse.js';
import { type Balance, balanceFields, type Mismatch } from './audit-report.js';

export interface AuditDependencies {
  readonly store: AuditStore;
  readonly warehouse: AuditWarehouse;
}

interface AuditScope extends AuditDependencies {
  readonly days: DayRange;
  readonly signal: AbortSignal;
}

export interface Finding {
  readonly name: string;
  /** Why this check proves nothing, such as a concurrent change or unreadable rows; null: it is conclusive. */
  readonly obstacle: string | null;
  /** Null: an obstacle without a difference. */
  readonly mismatch: Mismatch | null;
}

export interface AuditCheck {
  readonly title: string;
  run(): Promise<Finding[]>;
  describeUnconfirmed(open: readonly Finding[]): string[];
}

const createFinding = (mismatch: Mismatch, obstacle: string | null = null): Finding => {
  const { kind, tenant, day, partition, place } = mismatch;
  return { name: [kind, tenant, day, partition, place].join(' '), obstacle, mismatch };
};

const intermittentReason = 'the difference is intermittent';

/** `obstacles`: per partition, the change that invalidates the comparison. */
async function readBetweenSnapshots<Read>(
  { store, warehouse, signal }: AuditScope,
  partitions: readonly number[],
  read: (before: readonly PartitionSnapshot[]) => Promise<Read>,
) {
  /** Sequential, because each snapshot blocks Redis for a moment. */
  const takeSnapshots = async (): Promise<PartitionSnapshot[]> => {
    const snapshots: PartitionSnapshot[] = [];
    for (const partition of partitions) snapshots.push(await store.readPartition(partition, signal));
    return snapshots;
  };
  const readMarks = async () =>
    [(await store.fetchEpoch()).id, await warehouse.fetchArchivedDay(signal)] as const;
  const [epoch, archivedThrough] = await readMarks();
  const before = await takeSnapshots();
  // The queried replica may lack rows that left the outbox.
  await warehouse.waitForReplicas(signal);
  const found = await read(before);
  const after = await takeSnapshots();
  const [epochAfter, archivedAfter] = await readMarks();
  const sharedObstacle =
    (epoch === epochAfter ? null : 'Redis was restarted during the comparison') ??
    (archivedThrough === archivedAfter ? null : 'a month is being archived');
  const obstacles = after.map(
    (look, i) => sharedObstacle ?? findObstacle(before[i] as PartitionSnapshot, look),
  );
  return { before, after, found, obstacles, archivedThrough };
}

function findObstacle(before: PartitionSnapshot, after: PartitionSnapshot): string | null {
  if (before.parkedMark !== after.parkedMark) return 'rows are being parked or requeued';
  // A correction is in the outbox or due until it is applied, which changes `removed`.
  const isUnchanged =
    !before.hasCorrections &&
    !after.hasCorrections &&
    before.prunedThrough === after.prunedThrough &&
    before.removedInAll === after.removedInAll;
  return isUnchanged ? null : 'an erasure or a retraction is in progress';
}

const sumBalances = (balances: Iterable<Balance>): Balance => {
  const total = { accepted: 0, removed: 0, stored: 0, waiting: 0, parked: 0 };
  for (const balance of balances) for (const part of balanceFields) total[part] += balance[part];
  return total;
};

export function createStoredCheck(scope: AuditScope): AuditCheck & { sumTotals(): Balance } {
  const { store, warehouse, days, signal } = scope;
  const balances = new Map<number, Balance>();
  let open: readonly number[] = store.partitions;

  async function run(): Promise<Finding[]> {
    const { before, found, obstacles, archivedThrough } = await readBetweenSnapshots(
      scope,
      open,
      (snapshots) => warehouse.fetchStoredDays(days, snapshots, signal),
    );
    const stored = groupBy(found, ({ partition }) => partition);
    const findings = before.map((one, i) => {
      const from = Math.max(days.from, archivedThrough + 1, one.prunedThrough + 1);
      const compared = compareDays(one, stored.get(one.partition) ?? [], { ...days, from });
      balances.set(one.partition, compared.balance);
      const obstacle = obstacles[i] ?? compared.obstacle;
      const findings = compared.mismatches.map((mismatch) => createFinding(mismatch, obstacle));
      const isInconclusive = findings.length === 0 && obstacle !== null;
      return isInconclusive ? [{ name: `partition ${one.partition}`, obstacle, mismatch: null }] : findings;
    });
    open = open.filter((_, i) => findings[i]?.length !== 0);
    return findings.flat();
  }

  return {
    title: 'accepted and stored answers',
    run,
    describeUnconfirmed: (findings) =>
      distinct(
        findings.map(({ name, mismatch, obstacle }) => {
          const where = mismatch === null ? name : `partition ${mismatch.partition}`;
          return `accepted and stored answers of ${where}: ${obstacle ?? intermittentReason}`;
        }),
      ),
    sumTotals: () => sumBalances(balances.values()),
  };
}

function compareDays(snapshot: PartitionSnapshot, stored: readonly StoredDay[], days: DayRange) {
  const { partition, counts } = snapshot;
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
  obstacle ??= findUnreadableObstacle(snapshot, mismatches);
  return { balance: sumBalances(balances), mismatches, obstacle };
}

/** Parked rows with an unreadable tenant or day may be the missing ones. */
function findUnreadableObstacle(
  { unreadable }: PartitionSnapshot,
  mismatches: readonly Mismatch[],
): string | null {
  const missing = mismatches.filter(({ kind }) => kind === 'missing');
  const lost = computeSum(missing.map(({ expected, found }) => expected - found));
  return lost > 0 && lost <= unreadable ? `${unreadable} parked rows of the partition are unreadable` : null;
}

/** The sums may balance although answers are stored twice. */
export const createDuplicateCheck = ({ store, warehouse, days, signal }: AuditScope): AuditCheck => ({
  title: 'answers stored twice',
  run: async () => {
    const findings: Finding[] = [];
    for (const doubled of await warehouse.fetchDuplicates(days, signal)) {
      const { partition, tenant, day } = doubled;
      const surplus = {
        doubled_id: doubled.surplus,
        doubled_number: await countSurplusNumbers(store, doubled),
      };
      for (const kind of ['doubled_id', 'doubled_number'] as const) {
        const mismatch = { kind, tenant, day, partition, place: null, expected: 0, found: surplus[kind] };
        if (surplus[kind] > 0) findings.push(createFinding(mismatch));
      }
    }
    return findings;
  },
  describeUnconfirmed: (open) => [`${open.length} days with intermittent duplicate answers`],
});

/** An erased learner who answers again reuses numbers until the old rows are deleted. */
async function countSurplusNumbers(store: AuditStore, { partition, tenant, numbers }: DuplicateDay) {
  const userIds = numbers.map(([userId]) => userId);
  const ends = await store.findHistoryEnds(partition, tenant, userIds);
  const surplus = numbers.map(([, ids], i) => {
    const end = ends[i] ?? null;
    return Math.max(0, ids.filter(([ms, seq]) => end === null || !isBefore({ ms, seq }, end)).length - 1);
  });
  return computeSum(surplus);
}

/**
 * By tenant and local day of the answers. A rollup has at least the rows that left the outbox before the first
 * snapshot, and at most all stored and waiting rows after the second.
 */
export function createRollupCheck(scope: AuditScope): AuditCheck & { raw(): number } {
  const { store, warehouse, days, signal } = scope;
  let stored = 0;

  async function run(): Promise<Finding[]> {
    const { before, after, found, obstacles } = await readBetweenSnapshots(scope, store.partitions, () =>
      warehouse.fetchRollupSums(days, signal),
    );
    const raw = await warehouse.fetchRawSums(days, before, signal);
    stored = computeSum(raw.map(({ day, answers }) => (day === allDays ? 0 : answers)));
    const getBounds = createBounds(raw, before, after);
    const obstacle = obstacles.find((one) => one !== null) ?? null;
    const rawDays = raw.map(({ tenant, day }) => tenantDay(tenant, day));
    return warehouse.rollups.flatMap((rollup) => {
      const own = found.filter((row) => row.rollup === rollup.name);
      const sums = new Map(own.map((row) => [tenantDay(row.tenant, row.day), row]));
      const expected = rawDays.filter((name) => (parseTenantDay(name).day !== allDays) === rollup.isDaily);
      return distinct([...sums.keys(), ...expected]).flatMap((name) => {
        const bounds = getBounds(name);
        const outliers = findOutliers(rollup.name, name, sums.get(name) ?? zeroSums, bounds);
        return outliers.map((one) =>
          createFinding(one, obstacle ?? (bounds.isChanging ? repairReason : null)),
        );
      });
    });
  }

  return {
    title: 'rollups and stored answers',
    run,
    describeUnconfirmed: (open) => [
      `${open.length} daily sums of rollups: ${open[0]?.obstacle ?? intermittentReason}`,
    ],
    raw: () => stored,
  };
}

const repairReason = 'rows of these sums are in the outbox, and the pipeline may be repairing the sums';

const columns = ['answers', 'attempts', 'correct'] as const;
type Sums = Readonly<Record<(typeof columns)[number], number>>;
const zeroSums: Sums = { answers: 0, attempts: 0, correct: 0 };

function createBounds(
  raw: readonly RawDay[],
  before: readonly PartitionSnapshot[],
  after: readonly PartitionSnapshot[],
) {
  const rawOf = new Map(raw.map((row) => [tenantDay(row.tenant, row.day), row]));
  return (name: string) => {
    const row = rawOf.get(name) ?? { ...zeroSums, left: zeroSums };
    const high = { answers: row.answers, attempts: row.attempts, correct: row.correct };
    for (const look of after) {
      const waiting = sumPending(look, name);
      for (const column of columns) high[column] += waiting[column];
    }
    const hasPending = [...before, ...after].some((look) => sumPending(look, name).attempts > 0);
    return { low: row.left, high, isChanging: hasPending || row.left.attempts !== row.attempts };
  };
}

function sumPending({ counts }: PartitionSnapshot, name: string): Sums {
  const { tenant, day } = parseTenantDay(name);
  if (day !== allDays) return counts.get(name) ?? zeroSums;
  const own = [...counts].filter(([one]) => parseTenantDay(one).tenant === tenant).map(([, sums]) => sums);
  const sum = (column: keyof Sums): number => computeSum(own.map((sums) => sums[column]));
  return { answers: sum('answers'), attempts: sum('attempts'), correct: sum('correct') };
}

const findOutliers = (
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
