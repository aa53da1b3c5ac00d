import type { IfMatch, Tagged } from '../../contracts/preconditions.js';
import { readMapping } from '../../contracts/xapi/mapping.js';
import { unavailable } from '../../errors.js';
import type { MappingStore } from '../../store/catalogue/xapi-mappings.js';
import type { FactsHistory } from '../../warehouse/reads/facts-history.js';
import { preconditionFailed } from '../read/goals.js';

export interface MappingPorts {
  readonly mappings: MappingStore;
  readonly history: Pick<FactsHistory, 'recordMapping'>;
  readonly now: () => number;
}

/**
 * Data of PUT /api/v1/xapi-mapping: it is replaced as a whole, and holds from the next statement on.
 * @throws ApiError INVALID_REQUEST, PRECONDITION_FAILED; UNAVAILABLE, also where it holds but is not in ClickHouse yet
 */
export async function putMapping(
  { mappings, history, now }: MappingPorts,
  tenant: string,
  body: unknown,
  ifMatch: IfMatch,
): Promise<Tagged<object>> {
  const written = await mappings.put(tenant, readMapping(body), ifMatch, now());
  if (written === null) throw preconditionFailed();
  // For rebuilds.
  await history.recordMapping(tenant, written.text, written.updatedAt).catch((error: unknown) => {
    throw unavailable('The mapping cannot be stored right now; set it again later', error);
  });
  return written;
}
