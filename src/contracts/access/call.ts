import type { IfMatch } from '../schema/preconditions.js';
import type { Grant } from './access.js';

export interface Call<Query = unknown> {
  /** Has no scopes if the route needs no key. */
  readonly grant: Grant;
  readonly tenant: string;
  readonly query: Query;
  readonly body: Buffer;
  readonly ifMatch: IfMatch;
  /** @throws ClientDisconnectedError */
  readonly throwIfDisconnected: () => void;
}
