import Type, { type Static } from 'typebox';
import type { Call } from '../../contracts/access/call.js';
import type { ListedLearner } from '../../contracts/responses/learners.js';
import { StoredId } from '../../contracts/schema/ids.js';
import type { ErasureStore } from '../../store/corrections/erasures.js';
import type { LearnerList } from '../../warehouse/reads/learner-list.js';
import type { SourceLagPorts } from '../outbox/wait-until-stored.js';
import {
  buildPage,
  decodeIdCursor,
  defaultPageLimit,
  encodeIdCursor,
  encodeList,
  PageQuery,
} from '../paging/pages.js';
import type { MasteryPorts } from './read-mastery.js';

export type ErasureLookup = Pick<ErasureStore, 'findErased' | 'isOpen'>;

export interface LearnerListPorts extends SourceLagPorts, Pick<MasteryPorts, 'learners'> {
  readonly list: LearnerList;
  readonly erasures: ErasureLookup;
}

export const LearnersQuery = Type.Object({
  ...PageQuery.properties,
  prefix: Type.Optional({
    ...StoredId,
    description: 'Prefix of the user_ids, compared byte by byte. If absent, all learners are listed.',
  }),
});

/** Ordered by UTF-8 bytes of ids. Omits erased learners, so any page may be short. */
export async function listLearners(
  ports: LearnerListPorts,
  { tenant, query }: Call<Static<typeof LearnersQuery>>,
): Promise<string> {
  const { prefix = '', limit = defaultPageLimit, cursor } = query;
  const after = decodeIdCursor(cursor) ?? '';
  // Lag first: a missing answer is then still pending. Erasures last: no erased learner is shown.
  const lag = await ports.sourceLagSeconds();
  const found = await ports.list(tenant, prefix, after, limit + 1);
  const page = buildPage(found, limit, ({ user_id }) => encodeIdCursor(user_id));
  const items = await removeErased(ports, tenant, page.items);
  return encodeList({ source_lag_seconds: lag }, 'learners', { ...page, items });
}

/** Until an erasure is done, sums include the erased history. Learners with a new history stay. */
async function removeErased(
  { erasures, learners }: LearnerListPorts,
  tenant: string,
  found: readonly ListedLearner[],
): Promise<ListedLearner[]> {
  const userIds = found.map(({ user_id }) => user_id);
  const hasNewHistory = async (userId: string): Promise<boolean> =>
    (await learners.readState(tenant, userId)) !== null && !(await erasures.isOpen(tenant, userId));
  const erased = await erasures.findErased(tenant, userIds);
  const shown = await Promise.all(userIds.map((userId, i) => erased[i] === null || hasNewHistory(userId)));
  return found.filter((_, i) => shown[i]);
}
