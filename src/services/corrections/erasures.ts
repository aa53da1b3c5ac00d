/** Erasing a learner, as callers see it. */
import { ApiError, unavailable } from '../../errors.js';
import { nothingKnown } from '../read/read-mastery.js';
import type { ErasureReceipt, ErasureStore, ErasureWarehouse, OpenErasure } from './erasure-ports.js';

export interface ErasurePorts {
  readonly erasures: ErasureStore;
  readonly receipts: Pick<ErasureWarehouse, 'find'>;
}

/**
 * Data of DELETE /api/v1/learners/{user_id}. The learner is unknown when it resolves; what is stored elsewhere goes
 * after that.
 * @throws ApiError USER_NOT_FOUND, UNAVAILABLE
 */
export async function eraseLearner(
  { erasures }: ErasurePorts,
  tenant: string,
  userId: string,
): Promise<object> {
  const begun = await erasures.begin(tenant, userId);
  if (!('id' in begun)) throw refusalOf(begun.status);
  return { erasure_id: begun.id, status_url: `/api/v1/erasures/${begun.id}` };
}

function refusalOf(status: 'absent' | 'full' | 'emptied'): ApiError {
  if (status === 'absent') return nothingKnown();
  if (status === 'full') return unavailable('Too many learners are being erased; try again later');
  return unavailable('The state store came back empty and has to be rebuilt first');
}

/** Data of GET /api/v1/erasures/{erasure_id}. @throws ApiError NOT_FOUND, UNAVAILABLE */
export async function readErasure(
  { erasures, receipts }: ErasurePorts,
  tenant: string,
  id: string,
): Promise<object> {
  const open = await erasures.find(id);
  if (open !== null && open.tenant === tenant) return describeOpen(open);
  const receipt = await receipts.find(tenant, id).catch((error: unknown) => {
    throw unavailable('ClickHouse, which keeps the receipts, is not available right now', error);
  });
  if (receipt === null) throw new ApiError('NOT_FOUND', 'There is no erasure of this id');
  return describeDone(receipt);
}

const describeOpen = ({ id, requestedAt, removed, before }: OpenErasure): object => ({
  erasure_id: id,
  status: before === null ? 'pending' : 'running',
  requested_at: new Date(requestedAt).toISOString(),
  done_at: null,
  removed,
  places: before === null ? [] : placesOf(before, null),
  proof: null,
});

const describeDone = ({
  id,
  requestedAt,
  doneAt,
  removed,
  before,
  after,
  proof,
}: ErasureReceipt): object => ({
  erasure_id: id,
  status: 'done',
  requested_at: new Date(requestedAt).toISOString(),
  done_at: new Date(doneAt).toISOString(),
  removed,
  places: placesOf(before, after),
  proof,
});

type Counts = ErasureReceipt['before'];

const placesOf = (before: Counts, after: Counts | null): object[] =>
  Object.entries(before)
    .sort()
    .map(([place, rows]) => ({ place, before: rows, after: after?.[place] ?? null }));
