import type { Grant } from './access.js';
import type { IfMatch } from './preconditions.js';

/** Request to a service; its headers are already checked. */
export interface Call<Query = unknown> {
  /** Has no scopes if the route needs no key. */
  readonly grant: Grant;
  readonly tenant: string;
  readonly query: Query;
  readonly body: Buffer;
  /** Null unless a PUT or DELETE has the header If-Match. */
  readonly ifMatch: IfMatch;
  /** @throws ClientDisconnectedError */
  readonly stillWanted: () => void;
}
