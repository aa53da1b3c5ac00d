/** Counting answers: from what a platform sent to what it is told. */

import type { AttemptTracker, Submission, Tracked } from '../../compute/tracking.js';
import type { SubmissionForm, TrackOutcome } from '../../contracts/tasks.js';
import { ApiError, notCounted, unavailable } from '../../errors.js';
import { mapInSlices } from '../../slices.js';
import { watchRepeats } from './repeats.js';
import { invalidEvent } from './submissions.js';

/** An answer to an event that was counted, now or before. */
export interface Recorded {
  /** JSON of the learning event result. */
  readonly data: string;
  readonly replayed: boolean;
}

export type EventResult = Recorded | ApiError;

/** What a recorder takes: the bytes as they came. */
export interface Sent {
  readonly tenant: string;
  readonly body: Uint8Array;
  /** Stands for event_id where an event has none. */
  readonly idempotencyKey: string | null;
}

export interface AttemptRecorder {
  /** Why nothing of the tenant would be taken now; asked first, refusing costs the front end half as much. */
  full(tenant: string): ApiError | null;
  /** Counts one event. @param told called once, perhaps at once */
  recordOne(sent: Sent, told: (result: EventResult) => void): void;
  /**
   * Counts up to 1000 events, each standing alone, in their order.
   * @throws ApiError for a body that is no batch, and where nothing could be taken
   */
  recordBatch(form: SubmissionForm, sent: Sent): Promise<EventResult[]>;
}

export interface RecorderOptions {
  readonly tracker: AttemptTracker;
  readonly now: () => number;
  /** Counts what became of each event. */
  readonly tally: AnswerTally;
}

/** Events by outcome, since the process started. */
export type AnswerTally = Partial<Record<TrackOutcome, number>>;

export function createAttemptRecorder({ tracker, now, tally }: RecorderOptions): AttemptRecorder {
  watchRepeats(tracker.open);
  const judge = (tracked: Tracked): EventResult => {
    tally[tracked.outcome] = (tally[tracked.outcome] ?? 0) + 1;
    return resultOf(tracked);
  };
  return {
    full: tracker.full,
    recordOne: (sent, told) =>
      tracker.trackOne(submissionOf('event', sent, now()), (tracked) =>
        told(tracked instanceof Error ? errorOf(tracked) : judge(tracked)),
      ),
    recordBatch: async (form, sent) => {
      const tracked = await tracker.track(submissionOf(form, sent, now()), null).catch(refusedBatch);
      // A thousand that are refused take 14 ms.
      return mapInSlices(tracked, judge);
    },
  };
}

/** Written out: a spread makes an object of a shape of its own, which slows whoever reads it (docs/performance.md). */
const submissionOf = (
  form: SubmissionForm,
  { tenant, body, idempotencyKey }: Sent,
  receivedAt: number,
): Submission => ({ form, tenant, body, idempotencyKey, receivedAt });

/** Where not even one event could be taken and it is our doing, the batch is to be sent again. */
function refusedBatch(error: unknown): never {
  if (!(error instanceof ApiError) || error.code !== 'INTERNAL') throw error;
  throw unavailable(error.message, error);
}

const errorOf = (error: Error): ApiError => (error instanceof ApiError ? error : notCounted(error));

function resultOf({ outcome, data }: Tracked): EventResult {
  switch (outcome) {
    case 'counted':
      return { data, replayed: false };
    case 'replayed':
      return { data, replayed: true };
    case 'reused':
      return new ApiError(
        'IDEMPOTENCY_KEY_REUSED',
        'This event_id was used for a different event of this learner',
      );
    case 'beyond':
      return new ApiError('LIMIT_EXCEEDED', data);
    case 'invalid':
      return invalidEvent(data);
    case 'unavailable':
      return unavailable(data);
    case 'skipped':
    case 'elsewhere':
    case 'failed':
      return notCounted();
  }
}
