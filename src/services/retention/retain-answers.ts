/**
 * Archives answers of a certain age, whole months of arrival, the oldest first: their rows are dropped, what they
 * add to the rollups and the states that they led to stay (ADR 24).
 *
 * Each step may be repeated, by a later run after a kill or by another process at the same time: sums and snapshots
 * of the same rows replace one another, a month counts by its sums from one row on, and a partition can be dropped
 * twice. What is written is compared with the rows before that row is, and the rows go after it.
 */
import type { AttemptRow } from '../../contracts/attempt-row.js';
import { dayMs, monthOf } from '../../domain/base/days.js';
import { startReplay } from '../../domain/history/replay.js';
import { groupedBy } from '../../lists.js';
import type { RetentionFence } from '../../store/audit/retention-fence.js';
import { decodeSnapshot, encodeSnapshot } from '../../store/learners/learner-codec.js';
import type { Logger } from '../../telemetry.js';
import type { AnswerArchive, ForecastArchive, StoredMonth } from '../../warehouse/maintenance/retention.js';
import type { LearnerPage, LearnerSnapshots } from '../../warehouse/reads/learner-snapshots.js';

/** Clocks of processes differ, and an answer is counted a moment after it came: months rest that long beyond their age. */
const marginDays = 1;

export interface RetentionParts {
  readonly archive: AnswerArchive;
  readonly snapshots: SnapshotWriter;
  readonly fence: RetentionFence;
  readonly forecasts: ForecastArchive;
  readonly logger: Logger;
}

export interface RetentionPlan {
  /** Oldest first. */
  readonly months: readonly StoredMonth[];
  readonly forecastMonths: readonly number[];
}

/** The last month, as 202601, all of whose answers are older than so many days. @param now Unix milliseconds */
export function lastMonthOlderThan(days: number, now: number): number {
  const youngest = new Date(now - (days + marginDays) * dayMs);
  return monthOf(youngest.setUTCDate(0));
}

/** What a run would drop. @param through the last month that is old enough */
export async function planRetention(
  { archive, forecasts }: Pick<RetentionParts, 'archive' | 'forecasts'>,
  through: number,
): Promise<RetentionPlan> {
  return {
    months: await archive.monthsUpTo(through),
    forecastMonths: await forecasts.scoredMonthsUpTo(through),
  };
}

/**
 * Archives what the plan has, as far as it comes: a month that has to wait makes the later ones wait.
 *
 * @returns the months whose rows were dropped
 * @throws what Redis and ClickHouse throw; nothing is lost by an error, the next run goes on
 */
export async function retainAnswers(
  parts: RetentionParts,
  { months, forecastMonths }: RetentionPlan,
  signal?: AbortSignal,
): Promise<number[]> {
  const dropped: number[] = [];
  for (const month of forecastMonths) {
    await parts.forecasts.drop(month);
    parts.logger.info({ month }, 'served forecasts of a month were dropped for their age');
  }
  for (const stored of months) {
    signal?.throwIfAborted();
    if (!(await archiveMonth(parts, stored, signal))) break;
    await parts.archive.drop(stored.month);
    parts.logger.info(stored, 'the answers of a month were dropped for their age: their sums stay');
    dropped.push(stored.month);
  }
  return dropped;
}

/** @returns whether its rows may go */
async function archiveMonth(
  parts: RetentionParts,
  stored: StoredMonth,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const { archive, fence, logger } = parts;
  const { month } = stored;
  const isArchived = month <= (await archive.archivedThrough());
  const reason = isArchived ? null : await fence.close(month);
  if (reason !== null) {
    logger.warn({ month, reason }, 'the answers of a month are old enough to be dropped, but have to wait');
    return false;
  }
  if (!isArchived) await writeMonth(parts, month, signal);
  const wrong = await archive.differs(month);
  if (wrong !== null) {
    logger.error({ month, reason: wrong }, 'the answers of a month are kept beyond their age');
    return false;
  }
  if (!isArchived) await archive.markArchived(stored);
  return true;
}

async function writeMonth(
  { archive, snapshots, logger }: RetentionParts,
  month: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (const tenant of await archive.tenantsOf(month)) {
    let written = 0;
    let incomplete = 0;
    let page = await archive.nextPage(month, tenant, '');
    while (page !== null) {
      signal?.throwIfAborted();
      const made = await snapshots.write(month, page);
      await archive.archive(month, page);
      written += made.written;
      incomplete += made.incomplete;
      page = await archive.nextPage(month, tenant, page.to);
    }
    const erased = await archive.forgetErased(month, tenant);
    logger.info(
      { month, tenant, snapshots: written, incomplete, erased },
      'the answers of a month were archived',
    );
  }
}

export type SnapshotWriter = ReturnType<typeof createSnapshotWriter>;

export const createSnapshotWriter = (store: LearnerSnapshots) => ({
  /**
   * Keeps learners' states after the last of their answers up to the month.
   * @returns how many snapshots were missing or older; `incomplete`: learners among them with answers that are nowhere,
   * whose states are those that a rebuild would give
   */
  write: async (month: number, page: LearnerPage) => {
    const [latest, rows] = await Promise.all([store.latest(page), store.rowsUpTo(month, page)]);
    const made = [...groupedBy(rows, ({ row }) => row.event.userId)].flatMap(([userId, own]) => {
      const snapshot = snapshotOf(
        own.map(({ row }) => row),
        latest.get(userId),
      );
      return own[0] && snapshot ? [{ ...snapshot, userId, partition: own[0].partition }] : [];
    });
    await store.save(month, page.tenant, made);
    return { written: made.length, incomplete: made.filter(({ missing }) => missing !== 0).length };
  },
});

/** Null where the learner's snapshot has all of the rows already. */
function snapshotOf(rows: readonly AttemptRow[], from: string | undefined) {
  const states = from === undefined ? null : decodeSnapshot(from);
  const known = states?.learner.attempts ?? 0;
  const newer = rows.filter(({ figures }) => figures.learnerSeq > known);
  if (newer.length === 0) return null;
  const replay = startReplay(states);
  for (const row of newer) replay.add(row);
  const after = replay.states();
  return { learnerSeq: after.learner.attempts, state: encodeSnapshot(after), missing: replay.missing() };
}
