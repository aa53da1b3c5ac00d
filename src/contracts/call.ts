import type { Grant } from './access.js';
import type { IfMatch } from './preconditions.js';

/** What a service reads of a request whose head passed all checks. */
export interface Call<Query = unknown> {
  /** What the caller's key allows: nothing if the route needs no key. */
  readonly grant: Grant;
  /** The caller's. */
  readonly tenant: string;
  readonly query: Query;
  readonly body: Buffer;
  /** Null unless a PUT or DELETE depends on a tag. */
  readonly ifMatch: IfMatch;
  /** @throws ClientGone if the caller has disconnected */
  readonly stillWanted: () => void;
}
