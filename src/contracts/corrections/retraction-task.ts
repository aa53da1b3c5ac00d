import type { NonEmpty } from '../../domain/base/common.js';
import type { UnavailableReply } from '../forecasts/forecast-tasks.js';
import type { LearnerId } from '../learners/learner-name.js';

export interface RetractionTask extends LearnerId {
  readonly eventId: string;
  /** Version of the learner record, read before the rows. */
  readonly version: number;
  readonly attempts: number;
  /** Rows of the outbox. For duplicate numbers the first row counts, also before `storedRows`. */
  readonly outboxRows: readonly string[];
  /** Each ends with a line feed; times are Unix seconds. */
  readonly storedRows: string;
  /** State before the rows, if older ones were dropped. */
  readonly snapshot: string | null;
}

/**
 * `absent`: no such event id. `incomplete`: a row is missing. `archived`: the answer is in the snapshot or
 * the only one after it, or a row to rewrite is in an archived month. `conflict`: a concurrent write. `full`:
 * outbox or journal. `lost`: Redis is empty.
 */
export type RetractionResult =
  | { readonly status: 'done'; readonly skillIds: NonEmpty<string> }
  | { readonly status: 'absent' | 'incomplete' | 'archived' | 'conflict' | 'full' | 'lost' };

export type RetractionReply = RetractionResult | UnavailableReply;
