/**
 * Archives answers of a certain age, whole months of arrival, the oldest first: their rows are dropped, what they
 * add to the rollups and the states that they led to stay (ADR 24).
 *
 * Each step may be repeated, by a later run after a kill or by another process at the same time: sums and snapshots
 * of the same rows replace one another, a month counts by its sums from one row on, and a partition can be dropped
 * twice. What is written is compared with the rows before that row is, and the rows go after it.
 */
import type { Logger } from '../../telemetry.js';
import type {
  AnswerArchive,
  ForecastArchive,
  LearnerPage,
  RetentionFence,
  SnapshotWriter,
  StoredMonth,
} from './retention-ports.js';

const dayMs = 86_400_000;
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
  youngest.setUTCDate(0);
  return youngest.getUTCFullYear() * 100 + youngest.getUTCMonth() + 1;
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
    for await (const page of pagesOf(archive, month, tenant)) {
      signal?.throwIfAborted();
      const made = await snapshots.write(month, page);
      await archive.archive(month, page);
      written += made.written;
      incomplete += made.incomplete;
    }
    const erased = await archive.forgetErased(month, tenant);
    logger.info(
      { month, tenant, snapshots: written, incomplete, erased },
      'the answers of a month were archived',
    );
  }
}

async function* pagesOf(
  archive: AnswerArchive,
  month: number,
  tenant: string,
): AsyncGenerator<LearnerPage, void, undefined> {
  for (let after = ''; ; ) {
    const page = await archive.nextPage(month, tenant, after);
    if (page === null) return;
    yield page;
    after = page.to;
  }
}
