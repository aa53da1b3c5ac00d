import type { Call } from '../../contracts/access/call.js';
import { parseLargeJson } from '../../contracts/schema/json.js';
import type { TaggedValue } from '../../contracts/schema/preconditions.js';
import { maxMappingValues, parseMapping } from '../../contracts/xapi/mapping.js';
import { preconditionFailed, unavailable } from '../../errors.js';
import type { MappingStore } from '../../store/catalogue/xapi-mappings.js';
import type { FactsHistory } from '../../warehouse/reads/facts-history.js';

export interface MappingPorts {
  readonly mappings: MappingStore;
  readonly history: Pick<FactsHistory, 'recordMapping'>;
  readonly now: () => number;
}

export const readMapping = ({ mappings }: MappingPorts, { tenant }: Call): Promise<TaggedValue<object>> =>
  mappings.read(tenant);

/** After UNAVAILABLE, the new mapping may be active but not in ClickHouse. */
export async function putMapping({ mappings, history, now }: MappingPorts, { tenant, body, ifMatch }: Call) {
  const sent = await parseLargeJson(body, maxMappingValues);
  const written = await mappings.save(tenant, parseMapping(sent), ifMatch, now());
  if (written === null) throw preconditionFailed();
  // Rebuilds read the mapping from ClickHouse.
  await history.recordMapping(tenant, written.text, written.updatedAt).catch((error: unknown) => {
    throw unavailable('The mapping cannot be stored now; retry later.', error);
  });
  return written;
}
