import type { Lanes } from '../../compute/lanes.js';
import { type EventsRequest, parseInvalidEvent } from '../../compute/track-task.js';
import type { EventOutcome, EventsFormat, TrackOutcome } from '../../contracts/worker-tasks.js';
import { ApiError, countingError, unavailable } from '../../errors.js';
import { mapInSlices } from '../../slices.js';

export interface Recorded {
  readonly data: string;
  readonly replayed: boolean;
}

export type EventResult = Recorded | ApiError;

/** Since the process started. `unmapped`: xAPI statements without a skill. */
export type AnswerTally = Partial<Record<TrackOutcome | 'unmapped', number>>;

type Request = Omit<EventsRequest, 'form' | 'receivedAt'>;

export type AttemptRecorder = ReturnType<typeof createAttemptRecorder>;

export function createAttemptRecorder(
  lanes: Pick<Lanes, 'checkFull' | 'track' | 'trackOne'>,
  tally: AnswerTally,
  now: () => number,
) {
  const resultOf = ({ outcome, data }: EventOutcome): EventResult => {
    tally[outcome] = (tally[outcome] ?? 0) + 1;
    return results[outcome](data);
  };
  return {
    full: lanes.checkFull,
    /** @param onResult called once, possibly synchronously */
    recordOne: (request: Request, settle: (result: EventResult) => void): void =>
      lanes.trackOne(sentEvents('event', request, now()), (tracked) =>
        settle(tracked instanceof Error ? errorOf(tracked) : resultOf(tracked)),
      ),
    /** @returns results in order of events @throws ApiError if no event was accepted */
    recordBatch: async (form: EventsFormat, request: Request): Promise<EventResult[]> => {
      const tracked = await lanes.track(sentEvents(form, request, now()), null).catch(refusedBatch);
      // In slices: a thousand rejections take 14 ms.
      return mapInSlices(tracked, resultOf);
    },
  };
}

/** No spread: another object shape would slow down its readers (docs/performance.md). */
const sentEvents = (
  form: EventsFormat,
  { tenant, body, idempotencyKey, span }: Request,
  receivedAt: number,
): EventsRequest => ({ form, tenant, body, idempotencyKey, receivedAt, span });

/** After a defect that failed all events, the client should retry the batch. */
function refusedBatch(error: unknown): never {
  if (!(error instanceof ApiError) || error.code !== 'INTERNAL') throw error;
  throw unavailable(error.message, error);
}

const errorOf = (error: Error): ApiError => (error instanceof ApiError ? error : countingError(error));

const results: Readonly<Record<TrackOutcome, (data: string) => EventResult>> = {
  counted: (data) => ({ data, replayed: false }),
  replayed: (data) => ({ data, replayed: true }),
  reused: () =>
    new ApiError('IDEMPOTENCY_KEY_REUSED', 'This event_id was used for a different event of this learner'),
  beyond: (data) => new ApiError('LIMIT_EXCEEDED', data),
  invalid: parseInvalidEvent,
  unavailable: (data) => unavailable(data),
  skipped: () => countingError(),
  elsewhere: () => countingError(),
  failed: () => countingError(),
};
