import Type, { type Static } from 'typebox';
import { Id } from '../../contracts/ids.js';
import { unavailable } from '../../errors.js';
import type { ErasedLearner } from '../../store/corrections/erased-learners.js';
import type { LearnerList, ListedLearner } from '../../warehouse/reads/learner-list.js';
import { idAfter, listJson, PageQuery, pageLimit, pageOfIds } from './pages.js';
import type { HistoryPorts, MasteryPorts } from './read-mastery.js';

/** In the order of the learners; null for who was not erased in the last days. @throws ApiError UNAVAILABLE */
export type ErasedAmong = (tenant: string, userIds: readonly string[]) => Promise<(ErasedLearner | null)[]>;

export interface LearnerListPorts
  extends Pick<MasteryPorts, 'learners'>,
    Pick<HistoryPorts<unknown>, 'sourceLagSeconds'> {
  readonly list: LearnerList;
  readonly erasedAmong: ErasedAmong;
}

export const LearnersQuery = Type.Object({
  ...PageQuery.properties,
  prefix: Type.Optional({
    ...Id,
    description: 'What the ids begin with, byte for byte; absent: all learners',
  }),
});
export type LearnersQuery = Static<typeof LearnersQuery>;

/**
 * JSON of GET /api/v1/learners, by UTF-8 bytes of their ids. Who was erased is not among them, so that a page may have fewer
 * than its limit and not be the last.
 * @throws ApiError INVALID_REQUEST, UNAVAILABLE
 */
export async function listLearners(
  ports: LearnerListPorts,
  tenant: string,
  { prefix = '', limit = pageLimit, cursor }: LearnersQuery,
): Promise<string> {
  const after = idAfter(cursor) ?? '';
  // First the lag, when a missing answer was waiting, and last who was erased: nobody is shown after that.
  const lag = await ports.sourceLagSeconds();
  const found = await ports.list({ tenant, prefix, after, atMost: limit + 1 }).catch((error: unknown) => {
    throw unavailable('The learners cannot be listed right now; try again later', error);
  });
  const { ids, nextCursor } = pageOfIds(
    found.map(({ userId }) => userId),
    limit,
  );
  const items = await withoutErased(ports, tenant, found.slice(0, ids.length));
  const end = { next_cursor: nextCursor, source_lag_seconds: lag };
  return listJson({}, { name: 'learners', items, describe: describeLearner }, end);
}

/** Sums have answers of an ended history until they are deleted: who began a new one is shown when these are gone. */
async function withoutErased(
  { erasedAmong, learners }: LearnerListPorts,
  tenant: string,
  found: readonly ListedLearner[],
): Promise<ListedLearner[]> {
  const erased = await erasedAmong(
    tenant,
    found.map(({ userId }) => userId),
  );
  const isShown = async ({ userId, attempts }: ListedLearner, i: number): Promise<boolean> =>
    erased[i] === null || ((await learners.own(tenant, userId))?.attempts ?? 0) >= attempts;
  const shown = await Promise.all(found.map(isShown));
  return found.filter((_, i) => shown[i]);
}

const describeLearner = ({ userId, attempts, correct, skills, lastDay }: ListedLearner): object => ({
  user_id: userId,
  total_attempts: attempts,
  correct_attempts: correct,
  skills,
  last_day: lastDay,
});
