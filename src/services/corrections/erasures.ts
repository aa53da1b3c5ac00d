/** Erasing a learner, as callers see it. */
import { ApiError, unavailable } from '../../errors.js';
import type { ErasureStore, OpenErasure } from '../../store/corrections/erasures.js';
import type {
  CorrectionWarehouse,
  ErasureReceipt,
} from '../../warehouse/maintenance/correction-warehouse.js';
import { nothingKnown } from '../read/read-mastery.js';

export interface Erasures {
  readonly erasures: Pick<ErasureStore, 'begin' | 'find'>;
  readonly receipts: Pick<CorrectionWarehouse, 'find'>;
}

/**
 * Data of DELETE /api/v1/learners/{user_id}. The learner is unknown when it resolves; what is stored elsewhere goes
 * after that.
 * @throws ApiError USER_NOT_FOUND, UNAVAILABLE
 */
export async function eraseLearner({ erasures }: Erasures, tenant: string, userId: string): Promise<object> {
  const begun = await erasures.begin(tenant, userId);
  if ('id' in begun) return { erasure_id: begun.id, status_url: `/api/v1/erasures/${begun.id}` };
  if (begun.status === 'absent') throw nothingKnown();
  if (begun.status === 'full') throw unavailable('Too many learners are being erased; try again later');
  throw unavailable('The state store came back empty and has to be rebuilt first');
}

/** Data of GET /api/v1/erasures/{erasure_id}. @throws ApiError NOT_FOUND, UNAVAILABLE */
export async function readErasure(
  { erasures, receipts }: Erasures,
  tenant: string,
  id: string,
): Promise<object> {
  const open = await erasures.find(id);
  if (open !== null && open.rows.tenant === tenant) return describeErasure(open, null);
  const receipt = await receipts.find(tenant, id).catch((error: unknown) => {
    throw unavailable('ClickHouse, which keeps the receipts, is not available right now', error);
  });
  if (receipt === null) throw new ApiError('NOT_FOUND', 'There is no erasure of this id');
  return describeErasure(receipt, receipt);
}

function describeErasure(
  { id, requestedAt, removed, before }: Pick<OpenErasure, 'id' | 'requestedAt' | 'removed' | 'before'>,
  done: ErasureReceipt | null,
): object {
  return {
    erasure_id: id,
    status: done !== null ? 'done' : before === null ? 'pending' : 'running',
    requested_at: new Date(requestedAt).toISOString(),
    done_at: done === null ? null : new Date(done.doneAt).toISOString(),
    removed,
    places: Object.entries(before ?? {})
      .sort()
      .map(([place, rows]) => ({ place, before: rows, after: done?.after[place] ?? null })),
    proof: done?.proof ?? null,
  };
}
