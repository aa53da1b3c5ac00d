import type { NonEmpty } from '../../domain/base/common.js';
import type { UnavailableReply } from '../forecasts/forecast-tasks.js';
import type { LearnerId } from '../learners/learner-name.js';

export interface LearnerHistory {
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

export interface RetractionTask extends LearnerId, LearnerHistory {
  readonly kind: 'retraction';
  readonly eventId: string;
}

/** Moves the answers of learners of one partition to their days in another time zone. */
export interface TimeZoneTask {
  readonly kind: 'time zone';
  readonly tenant: string;
  readonly partition: number;
  readonly timeZone: string;
  readonly learners: readonly (LearnerHistory & Pick<LearnerId, 'userId'>)[];
}

/**
 * `incomplete`: a row is missing. `archived`: a row to rewrite is in an archived month. `conflict`: a concurrent
 * write. `full`: outbox or journal. `lost`: Redis is empty.
 */
export type RewriteStatus = 'done' | 'incomplete' | 'archived' | 'conflict' | 'full' | 'lost';

/** `absent`: no such event id. `archived`: also if the answer is in the snapshot, or the only one after it. */
export type RetractionResult =
  | { readonly status: 'done'; readonly skillIds: NonEmpty<string> }
  | { readonly status: 'absent' | Exclude<RewriteStatus, 'done'> };

export type RetractionReply = RetractionResult | UnavailableReply;

/** In the order of the task's learners. */
export type TimeZoneReply = { readonly statuses: readonly RewriteStatus[] } | UnavailableReply;
