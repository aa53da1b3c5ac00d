import type { Call } from '../../contracts/access/call.js';
import { parseTime } from '../../contracts/answers/events.js';
import type { CorrectedRows, Counts } from '../../contracts/corrections/corrections.js';
import type { ListedErasure } from '../../contracts/responses/erasures.js';
import { ApiError, rejectAsUnavailable, unavailable } from '../../errors.js';
import { splitIntoParts } from '../../lists.js';
import type { Logger } from '../../logger.js';
import type { ErasureStore, OpenErasure } from '../../store/corrections/erasures.js';
import type { GroupStore } from '../../store/groups/group-store.js';
import type {
  CorrectionWarehouse,
  ErasureReceipt,
} from '../../warehouse/maintenance/correction-warehouse.js';
import { learnerNotFound } from '../learners/read-mastery.js';
import {
  buildPage,
  createCursors,
  defaultPageLimit,
  encodeList,
  type PageQuery,
  sortNewestFirst,
} from '../paging/pages.js';
import { selectForStatement } from './apply-corrections.js';

export interface ErasurePorts {
  readonly erasures: Pick<ErasureStore, 'begin' | 'find' | 'listOpenOf' | 'removeFromGroups'>;
  readonly groups: Pick<GroupStore, 'hasMember'>;
  readonly receipts: {
    find(tenant: string, id: string): Promise<ErasureReceipt | null>;
    /** Newest first. @param after RFC 3339 request time, space, id */
    list(tenant: string, after: string | null, atMost: number): Promise<ListedErasure[]>;
  };
}

/** Resolves when the learner is unknown. ClickHouse rows are removed later. */
export async function eraseLearner({ erasures, groups }: ErasurePorts, { tenant }: Call, userId: string) {
  const started = await erasures.begin(tenant, userId, await groups.hasMember(tenant, userId));
  if ('id' in started) {
    // Immediately, because a learner who joins again before the erasure ends must become a new member.
    const open = await erasures.find(started.id);
    if (open !== null) await erasures.removeFromGroups([open.rows]);
    return { erasure_id: started.id, status_url: `/api/v1/erasures/${started.id}` };
  }
  if (started.status === 'absent') throw learnerNotFound();
  if (started.status === 'full') throw unavailable('Too many erasures are in progress; retry later.');
  throw unavailable('Learner state was lost and is not rebuilt yet; retry later.');
}

export async function readErasure({ erasures, receipts }: ErasurePorts, { tenant }: Call, id: string) {
  const open = await erasures.find(id);
  if (open !== null && open.rows.tenant === tenant) return describeErasure(open, null);
  const receipt = await rejectAsUnavailable(receipts.find(tenant, id));
  if (receipt === null) throw new ApiError('NOT_FOUND', 'No erasure has this erasure_id.');
  return describeErasure(receipt, receipt);
}

const toPosition = ({ requested_at, erasure_id }: ListedErasure): string => `${requested_at} ${erasure_id}`;

const cursors = createCursors('erasure:', (place) => {
  const [requestedAt = '', id = ''] = place.split(' ');
  return parseTime(requestedAt) !== null && idPattern.test(id) ? place : null;
});
const idPattern = /^[\da-f-]{1,64}$/;

export async function listErasures({ erasures, receipts }: ErasurePorts, { tenant, query }: Call<PageQuery>) {
  const { limit = defaultPageLimit, cursor } = query;
  const after = cursors.decode(cursor);
  // Open erasures first: one that ends in between is in both lists.
  const open = (await erasures.listOpenOf(tenant)).map((one) => summarizeErasure(one, null));
  const done = await receipts.list(tenant, after, limit + 1);
  const all = new Map([...open, ...done].map((one) => [one.erasure_id, one]));
  const left = sortNewestFirst([...all.values()], toPosition, after);
  return encodeList(
    {},
    'erasures',
    buildPage(left, limit, (last) => cursors.encode(toPosition(last))),
  );
}

type ErasureProgress = Pick<OpenErasure, 'id' | 'requestedAt' | 'removed' | 'before'>;

const summarizeErasure = (
  { id, requestedAt, before }: ErasureProgress,
  done: ErasureReceipt | null,
): ListedErasure => ({
  erasure_id: id,
  status: done !== null ? 'done' : before === null ? 'pending' : 'running',
  requested_at: new Date(requestedAt).toISOString(),
  done_at: done && new Date(done.doneAt).toISOString(),
});

function describeErasure(erasure: ErasureProgress, done: ErasureReceipt | null): object {
  return {
    ...summarizeErasure(erasure, done),
    removed: erasure.removed,
    places: Object.entries(erasure.before ?? {})
      .sort()
      .map(([place, rows]) => ({ place, before: rows, after: done?.after[place] ?? null })),
    proof: done?.proof ?? null,
  };
}

/** Forecasts from erased states may be in flight for this long. */
const maxForecastMs = 3000;

/** Searches for rows that a suspended process inserted late. The last one forgets the learner. */
const recheckDelaysMs = [3_600_000, 7 * 86_400_000] as const;
const maxRecheckLearners = 200;

interface FinisherDependencies {
  readonly store: ErasureStore;
  readonly messages: { remove(rows: readonly CorrectedRows[]): Promise<void> };
  readonly warehouse: CorrectionWarehouse;
  readonly logger: Logger;
  readonly now: () => number;
}

/**
 * Finishes applied erasures and records the proof. Idempotent. Call after the journal drain, so that none of
 * its pages is in flight.
 * @returns number of finished erasures
 */
export function createErasureFinisher({ store, messages, warehouse, logger, now }: FinisherDependencies) {
  return async (signal?: AbortSignal): Promise<number> => {
    let done = 0;
    const isApplied = ({ before, requestedAt }: OpenErasure): boolean =>
      before !== null && now() - requestedAt >= maxForecastMs;
    for (let left = (await store.open()).filter(isApplied); left.length > 0 && !signal?.aborted; ) {
      const some = selectForStatement(left);
      done += await finish(some);
      left = left.filter((erasure) => !some.includes(erasure));
    }
    if (await store.acquirePeriodicRun('look')) await recheckErased();
    if (await store.acquirePeriodicRun('purge')) await warehouse.purge();
    return done;
  };

  async function finish(some: readonly OpenErasure[]): Promise<number> {
    const rows = some.map((erasure) => erasure.rows);
    const marked = await store.removeImportMarks(rows);
    await store.removeFromSkills(rows);
    await store.removeFromGroups(rows);
    await removeLateRows(rows);
    // Events before messages: a message created in between sees the erasure.
    await store.removeEvents(rows);
    await messages.remove(rows);
    const remaining = await warehouse.countRemaining(rows);
    const completed = some.flatMap((erasure, i) => {
      const after = remaining[i] ?? {};
      if (!marked.has(erasure.rows) && Object.values(after).every((n) => n === 0))
        return [{ erasure, after }];
      logger.debug({ erasure: erasure.id, after }, 'an erasure is not completed yet');
      return [];
    });
    if (completed.length > 0)
      await warehouse.saveReceipts(completed.map(({ erasure, after }) => createReceipt(erasure, after)));
    let closed = 0;
    for (const { erasure } of completed) {
      if (!(await store.close(erasure, now()))) continue;
      closed += 1;
      logger.info({ erasure: erasure.id, before: erasure.before }, 'erasure completed');
    }
    return closed;
  }

  async function removeLateRows(rows: readonly CorrectedRows[]): Promise<void> {
    await store.removePendingRows(rows);
    await warehouse.removeLateRows(rows);
  }

  function createReceipt({ rows, before, plan: _, ...erasure }: OpenErasure, after: Counts): ErasureReceipt {
    const { tenant } = rows;
    return {
      ...erasure,
      before: before ?? {},
      tenant,
      doneAt: now(),
      after,
      proof: warehouse.buildProof(rows),
    };
  }

  async function recheckErased(): Promise<void> {
    const due = (await store.listErased()).filter(
      ({ at, looks }) => now() - at >= (recheckDelaysMs[looks] ?? 0),
    );
    for (const some of splitIntoParts(due, maxRecheckLearners)) {
      for (const { hash, userId } of await warehouse.findErasedLearners(some)) {
        const one = some.find((learner) => learner.hash === hash);
        if (one !== undefined) await removeLateRows([{ ...one, userId, fromSeq: 0 }]);
      }
      for (const one of some) await store.recordCheck(one, one.looks + 1 === recheckDelaysMs.length);
    }
  }
}
