import Type, { type Static } from 'typebox';
import type { Call } from '../../contracts/call.js';
import { Id } from '../../contracts/ids.js';
import type { ListedLearner } from '../../contracts/responses/learners.js';
import type { ErasureStore } from '../../store/corrections/erasures.js';
import type { LearnerList } from '../../warehouse/reads/learner-list.js';
import { cursorAfter, idAfter, listJson, PageQuery, pageLimit, pageOf } from './pages.js';
import type { MasteryPorts } from './read-mastery.js';
import type { StoredPorts } from './stored.js';

export type EndedHistories = Pick<ErasureStore, 'findErased' | 'isOpen'>;

export interface LearnerListPorts extends StoredPorts, Pick<MasteryPorts, 'learners'> {
  readonly list: LearnerList;
  readonly ended: EndedHistories;
}

export const LearnersQuery = Type.Object({
  ...PageQuery.properties,
  prefix: Type.Optional({
    ...Id,
    description: 'Beginning of the ids, byte for byte; absent: all learners',
  }),
});

/** Ordered by UTF-8 bytes of ids. Omits erased learners, so any page may be short. */
export async function listLearners(
  ports: LearnerListPorts,
  { tenant, query }: Call<Static<typeof LearnersQuery>>,
): Promise<string> {
  const { prefix = '', limit = pageLimit, cursor } = query;
  const after = idAfter(cursor) ?? '';
  // Lag first: a missing answer is then still pending. Erasures last: no erased learner is shown.
  const lag = await ports.sourceLagSeconds();
  const found = await ports.list(tenant, prefix, after, limit + 1);
  const page = pageOf(found, limit, ({ user_id }) => cursorAfter(user_id));
  const items = await withoutErased(ports, tenant, page.items);
  return listJson({ source_lag_seconds: lag }, 'learners', { ...page, items });
}

/** Until an erasure is done, sums include the erased history. Learners with a new history stay. */
async function withoutErased(
  { ended, learners }: LearnerListPorts,
  tenant: string,
  found: readonly ListedLearner[],
): Promise<ListedLearner[]> {
  const userIds = found.map(({ user_id }) => user_id);
  const isThere = async (userId: string): Promise<boolean> =>
    (await learners.readState(tenant, userId)) !== null && !(await ended.isOpen(tenant, userId));
  const erased = await ended.findErased(tenant, userIds);
  const shown = await Promise.all(userIds.map((userId, i) => erased[i] === null || isThere(userId)));
  return found.filter((_, i) => shown[i]);
}
