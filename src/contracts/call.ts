import type { Grant } from './access.js';
import type { IfMatch } from './preconditions.js';

/** Request of a service, after all checks of its head. */
export interface Call<Query = unknown> {
  /** Allows nothing if the route needs no key. */
  readonly grant: Grant;
  readonly tenant: string;
  readonly query: Query;
  readonly body: Buffer;
  /** Null unless a PUT or DELETE has the header If-Match. */
  readonly ifMatch: IfMatch;
  /** @throws ClientGone if the caller has disconnected */
  readonly stillWanted: () => void;
}
