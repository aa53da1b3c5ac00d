/** What crosses the boundary to the thread that replays a learner without one answer. */

export interface TakeBackTask {
  readonly tenant: string;
  readonly userId: string;
  readonly eventId: string;
  /** The learner's record as it was read before the rows. */
  readonly version: number;
  readonly attempts: number;
  readonly baselineTotal: number | null;
  /** Rows that wait in Redis, as they stand there; of several with one number the first counts, and before stored ones. */
  readonly waiting: readonly string[];
  /** Rows in ClickHouse, a line feed behind each, times as Unix seconds. */
  readonly stored: string;
  /** State that the rows follow on where older ones were dropped for their age. */
  readonly snapshot: string | null;
}

/**
 * `absent`: none of the rows has the event id. `incomplete`: a row is missing. `archived`: the rows that are to be
 * written again cannot be, for what arrived with them, or was committed with the answer, is sums by now. `conflict`:
 * somebody else wrote the learner.
 */
export type TakeBackReply =
  | { readonly status: 'done'; readonly skillId: string }
  | { readonly status: 'absent' | 'incomplete' | 'archived' | 'conflict' | 'full' | 'emptied' }
  | { readonly unavailable: string };
