/**
 * Archives months of arrival, oldest first: drops rows, keeps sums and states (ADR 24). Each step is
 * idempotent. `markArchived` activates a month's archive after a comparison, before its rows are dropped.
 */
import { dayMs, toMonth } from '../../domain/base/common.js';
import type { Logger } from '../../logger.js';
import type { RetentionFence } from '../../store/audit/retention-fence.js';
import { encodeSnapshot } from '../../store/learners/learner-snapshot.js';
import { parseLearners, replayLearner, type StoredLearner } from '../../store/learners/stored-learners.js';
import { partitionOf } from '../../store/redis/keys.js';
import type { AnswerArchive } from '../../warehouse/maintenance/answer-archive.js';

/** For differences between clocks. */
const marginDays = 1;

export interface RetentionDependencies {
  readonly archive: AnswerArchive;
  readonly fence: RetentionFence;
  readonly partitions: number;
  readonly logger: Logger;
}

export type RetentionPlan = Awaited<ReturnType<typeof planRetention>>;
type StoredMonth = RetentionPlan['months'][number];

/** The last month, as 202601, with all answers older than `days`. @param now Unix milliseconds */
export function findLastOldMonth(days: number, now: number): number {
  const youngest = new Date(now - (days + marginDays) * dayMs);
  return toMonth(youngest.setUTCDate(0));
}

/** Oldest first. @param through last month to drop, as 202601 */
export const planRetention = async (
  { archive }: Pick<RetentionDependencies, 'archive'>,
  through: number,
) => ({
  months: await archive.listMonths(through),
  forecastMonths: await archive.listScoredMonths(through),
});

/** A month that has to wait delays later ones. @returns the dropped months */
export async function applyRetention(
  dependencies: RetentionDependencies,
  { months, forecastMonths }: RetentionPlan,
  signal?: AbortSignal,
): Promise<number[]> {
  const dropped: number[] = [];
  for (const month of forecastMonths) {
    await dependencies.archive.dropForecasts(month);
    dependencies.logger.info({ month }, 'served forecasts of a month deleted (ATTEMPT_RETENTION_DAYS)');
  }
  for (const stored of months) {
    signal?.throwIfAborted();
    if (!(await archiveMonth(dependencies, stored, signal))) break;
    await dependencies.archive.dropMonth(stored.month);
    dependencies.logger.info(stored, 'answers of a month deleted (ATTEMPT_RETENTION_DAYS); sums remain');
    dropped.push(stored.month);
  }
  return dropped;
}

/** @returns true if its rows may be dropped */
async function archiveMonth(
  dependencies: RetentionDependencies,
  stored: StoredMonth,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const { archive, fence, logger } = dependencies;
  const { month } = stored;
  const isArchived = month <= (await archive.fetchArchivedMonth());
  const reason = isArchived ? null : await fence.close(month);
  if (reason !== null) {
    logger.warn({ month, reason }, 'answers of a month cannot be deleted yet; see reason');
    return false;
  }
  if (!isArchived) await writeArchive(dependencies, month, signal);
  const difference = await archive.findDifference(month);
  if (difference !== null) {
    logger.error(
      { month, reason: difference },
      'answers of a month are not deleted: the archive differs from the rows; run npm run audit',
    );
    return false;
  }
  if (!isArchived) await archive.markArchived(stored);
  return true;
}

async function writeArchive(
  { archive, partitions, logger }: RetentionDependencies,
  month: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (const tenant of await archive.listTenants(month)) {
    let written = 0;
    let incomplete = 0;
    let page = await archive.fetchNextPage(month, tenant, '');
    while (page !== null) {
      signal?.throwIfAborted();
      const learners = [...parseLearners(await archive.fetchLearners(month, page))];
      const snapshots = learners.flatMap((learner) => buildSnapshot(learner, month, partitions) ?? []);
      await archive.saveSnapshots(month, snapshots);
      await archive.saveSums(month, page);
      written += snapshots.length;
      incomplete += snapshots.filter(({ broken }) => broken > 0).length;
      page = await archive.fetchNextPage(month, tenant, page.to);
    }
    const erased = await archive.removeErased(month, tenant);
    const counts = { month, tenant, snapshots: written, incomplete, erased };
    logger.info(counts, 'answers of a month archived');
  }
}

/** State after the commit of the month's last answer. With missing rows, the state of a rebuild. */
function buildSnapshot({ tenant, userId, from, rows }: StoredLearner, month: number, partitions: number) {
  const last = rows.findLast(({ event }) => toMonth(event.receivedAt) <= month)?.figures;
  if (last === undefined) return null;
  const own = rows.filter(
    ({ figures: { learnerSeq, learnerVersion } }) =>
      learnerSeq <= last.learnerSeq || (learnerVersion > 0 && learnerVersion === last.learnerVersion),
  );
  const { states, broken } = replayLearner({ from, rows: own });
  const partition = partitionOf(tenant, userId, partitions);
  return {
    ...{ tenant, userId, partition, broken },
    learnerSeq: states.learner.attempts,
    state: encodeSnapshot(states),
  };
}
