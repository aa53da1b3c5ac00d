import type { Lanes } from '../../compute/lanes.js';
import { type EventsRequest, parseInvalidEvent } from '../../compute/track-task.js';
import type { Call } from '../../contracts/access/call.js';
import type { EventOutcome, EventsFormat, TrackOutcome } from '../../contracts/answers/track-task.js';
import { ApiError, countingError, unavailable } from '../../errors.js';
import { mapInSlices } from '../../slices.js';

export interface RecordedAnswer {
  readonly data: string;
  readonly replayed: boolean;
}

export type EventResult = RecordedAnswer | ApiError;

/** Since the process started. `unmapped`: xAPI statements without a skill. */
export type AnswerTally = Partial<Record<TrackOutcome | 'unmapped', number>>;

type EventRequest = Omit<EventsRequest, 'form' | 'receivedAt'> & Pick<Call, 'grant'>;

export type AttemptRecorder = ReturnType<typeof createAttemptRecorder>;

export function createAttemptRecorder(
  lanes: Pick<Lanes, 'findOverload' | 'track' | 'trackEvent'>,
  tally: AnswerTally,
  countAnswers: (keyHash: string, answers: number) => void,
  now: () => number,
) {
  const tallyResult = ({ outcome, data }: EventOutcome): EventResult => {
    tally[outcome] = (tally[outcome] ?? 0) + 1;
    return resultByOutcome[outcome](data);
  };
  return {
    findOverload: lanes.findOverload,
    /** @param onResult called once, possibly synchronously */
    recordOne: (request: EventRequest, onResult: (result: EventResult) => void): void =>
      lanes.trackEvent(buildSentEvents('event', request, now()), (tracked) => {
        if (tracked instanceof Error) return onResult(toApiError(tracked));
        if (tracked.outcome === 'counted') countAnswers(request.grant.keyHash, 1);
        onResult(tallyResult(tracked));
      }),
    /** @returns results in order of events @throws ApiError if no event was accepted */
    recordBatch: async (form: EventsFormat, request: EventRequest): Promise<EventResult[]> => {
      const tracked = await lanes.track(buildSentEvents(form, request, now()), null).catch(rethrowBatchError);
      countAnswers(request.grant.keyHash, tracked.filter(({ outcome }) => outcome === 'counted').length);
      // In slices: a thousand rejections take 14 ms.
      return mapInSlices(tracked, tallyResult);
    },
  };
}

/** No spread: another object shape would slow down its readers (docs/understand/performance.md). */
const buildSentEvents = (
  form: EventsFormat,
  { tenant, body, idempotencyKey, span }: EventRequest,
  receivedAt: number,
): EventsRequest => ({ form, tenant, body, idempotencyKey, receivedAt, span });

/** After a defect that failed all events, the client should retry the batch. */
function rethrowBatchError(error: unknown): never {
  if (!(error instanceof ApiError) || error.code !== 'INTERNAL') throw error;
  throw unavailable(error.message, error);
}

const toApiError = (error: Error): ApiError => (error instanceof ApiError ? error : countingError(error));

const resultByOutcome: Readonly<Record<TrackOutcome, (data: string) => EventResult>> = {
  counted: (data) => ({ data, replayed: false }),
  replayed: (data) => ({ data, replayed: true }),
  reused: () =>
    new ApiError(
      'IDEMPOTENCY_KEY_REUSED',
      'This event_id was used for a different event of this learner; use another event_id.',
    ),
  beyond: (data) => new ApiError('LIMIT_EXCEEDED', data),
  invalid: parseInvalidEvent,
  unavailable: (data) => unavailable(data),
  skipped: () => countingError(),
  elsewhere: () => countingError(),
  failed: () => countingError(),
};
