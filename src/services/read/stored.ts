import { unavailable } from '../../errors.js';

/** For reads of what ClickHouse has stored, which answers come to a moment after they were counted. */
export interface StoredPorts {
  /** Age of the oldest answer that is not stored yet; null where that is not known. */
  readonly sourceLagSeconds: () => Promise<number | null>;
}

/** @throws ApiError UNAVAILABLE where the read fails */
export const orUnavailable = <Value>(found: Promise<Value>): Promise<Value> =>
  found.catch((error: unknown) => {
    throw unavailable('What is stored cannot be read right now; try again later', error);
  });
