/** Counting answers: from what a platform sent to what it is told. */
import { checked } from '../contracts/checked.js';
import { eventBatchCheck, learningEventCheck, maxBatchEvents } from '../contracts/events.js';
import { problemsOf } from '../contracts/problems.js';
import type { TrackEvent } from '../contracts/tasks.js';
import { occurredAtProblem, parseTime } from '../contracts/time.js';
import { ApiError, invalid, type Problem, unavailable } from '../errors.js';
import type { AttemptTracker, Tracked, TrackMode } from './ports.js';

/** An answer to an event that was counted, now or before. */
export interface Recorded {
  /** JSON of the learning event result. */
  readonly data: string;
  readonly replayed: boolean;
}

export type EventResult = Recorded | ApiError;

export interface AttemptRecorder {
  /**
   * Counts one event.
   * @param idempotencyKey stands for event_id where the body has none
   * @throws ApiError for an event that was not counted
   */
  recordOne(tenant: string, body: unknown, idempotencyKey: string | null): Promise<Recorded>;
  /**
   * Counts up to 1000 events, each standing alone, in their order.
   * @param events each an event or, where not even that could be read, the error
   * @throws ApiError if there are none or too many
   */
  recordBatch(
    tenant: string,
    events: readonly unknown[],
    idempotencyKey: string | null,
  ): Promise<EventResult[]>;
}

export interface RecorderOptions {
  readonly tracker: AttemptTracker;
  /** Whether event ids are remembered long enough to take new ones. */
  readonly acceptNewIds: () => boolean;
  readonly now: () => number;
}

/** How long an event waits for another one with its id that is still being counted. */
const duplicateWaitMs = 5000;

const liveMode: TrackMode = { acceptNewIds: true, importId: null };
const fullMode: TrackMode = { acceptNewIds: false, importId: null };

export function createAttemptRecorder({ tracker, acceptNewIds, now }: RecorderOptions): AttemptRecorder {
  const inFlight = new Set<string>();

  /** Counts events; a repeated id whose first event still runs after some seconds is told so. */
  const track = (events: readonly TrackEvent[], told: (place: number, result: EventResult) => void): void => {
    const settles = events.map((event, place) =>
      watchDuplicates(inFlight, event, (result) => told(place, result)),
    );
    tracker.track(events, acceptNewIds() ? liveMode : fullMode, (place, tracked) => {
      settles[place]?.(resultOf(tracked));
    });
  };

  return {
    recordOne: (tenant, body, idempotencyKey) => {
      const event = toTrackEvent(tenant, body, idempotencyKey, now(), '');
      return new Promise((resolve, reject) => {
        track([event], (_, result) => (result instanceof ApiError ? reject(result) : resolve(result)));
      });
    },
    recordBatch: (tenant, events, idempotencyKey) => {
      if (events.length === 0) throw invalid('The batch has no events');
      if (events.length > maxBatchEvents) throw invalid(`A batch holds at most ${maxBatchEvents} events`);
      const time = now();
      const results = events.map((event, i) => readEvent(tenant, event, i, idempotencyKey, time));
      return trackReadable(results, track);
    },
  };
}

/** Counts what is an event and leaves what is an error in its place. */
function trackReadable(
  read: readonly (TrackEvent | ApiError)[],
  track: (events: readonly TrackEvent[], told: (place: number, result: EventResult) => void) => void,
): Promise<EventResult[]> {
  const places = read.flatMap((entry, place) => (entry instanceof ApiError ? [] : [{ place, event: entry }]));
  const results = read.map((entry) => (entry instanceof ApiError ? entry : undefined)) as EventResult[];
  if (places.length === 0) return Promise.resolve(results);
  return new Promise((resolve) => {
    let open = places.length;
    const events = places.map(({ event }) => event);
    track(events, (i, result) => {
      results[(places[i] as { place: number }).place] = result;
      open -= 1;
      if (open === 0) resolve(results);
    });
  });
}

/**
 * Notes an event with an id as running, and gives the function that settles it, once. If another event with that
 * id already runs here, this one is settled as a conflict when it has waited too long: it is still counted or
 * replayed, only nobody is there to hear it.
 */
function watchDuplicates(
  inFlight: Set<string>,
  event: TrackEvent,
  told: (result: EventResult) => void,
): (result: EventResult) => void {
  if (event.eventId === null) return told;
  const key = `${event.tenant}\0${event.userId}\0${event.eventId}`;
  if (!inFlight.has(key)) {
    inFlight.add(key);
    return (result) => {
      inFlight.delete(key);
      told(result);
    };
  }
  let waiting = true;
  const once = (result: EventResult): void => {
    if (waiting) told(result);
    waiting = false;
    clearTimeout(timer);
  };
  const timer = setTimeout(once, duplicateWaitMs, stillRunning());
  return once;
}

const stillRunning = (): ApiError =>
  new ApiError('CONFLICT', 'The first request with this event_id is still running; try again', {
    headers: { 'Retry-After': '1' },
  });

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
    case 'unavailable':
      return unavailable(data);
    case 'skipped':
    case 'failed':
      return new ApiError('INTERNAL', 'The answer could not be counted; try again with the same event_id');
  }
}

function readEvent(
  tenant: string,
  event: unknown,
  index: number,
  idempotencyKey: string | null,
  now: number,
): TrackEvent | ApiError {
  if (event instanceof ApiError) return event;
  try {
    const key = idempotencyKey === null ? null : `${idempotencyKey}/${index}`;
    return toTrackEvent(tenant, event, key, now, `events/${index}/`);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/** @throws ApiError INVALID_REQUEST with a problem per field */
function toTrackEvent(
  tenant: string,
  body: unknown,
  idempotencyKey: string | null,
  now: number,
  path: string,
): TrackEvent {
  if (!learningEventCheck.Check(body)) throw invalidEvent(problemsOf(learningEventCheck.Errors(body), path));
  const occurredAtText = body.occurred_at ?? null;
  const occurredAt = occurredAtText === null ? now : parseTime(occurredAtText);
  const problem = occurredAtProblem(occurredAt, now);
  if (occurredAt === null || problem !== null) {
    throw invalidEvent([{ path: `${path}occurred_at`, message: problem ?? '' }]);
  }
  return {
    tenant,
    userId: body.user_id,
    skillId: body.skill_id,
    isCorrect: body.is_correct,
    timeSpentSeconds: body.time_spent_seconds ?? null,
    confidenceScore: body.confidence_score ?? null,
    questionDifficulty: body.question_difficulty ?? null,
    itemId: body.item_id ?? null,
    eventId: body.event_id ?? idempotencyKey,
    occurredAt,
    occurredAtText,
    receivedAt: now,
    importLine: null,
  };
}

function invalidEvent(problems: readonly Problem[]): ApiError {
  const first = problems[0];
  const where = first && first.path !== '' ? `${first.path} ${first.message}` : first?.message;
  return invalid(`Invalid learning event: ${where ?? 'not an event'}`, problems);
}

/** The events of a JSON batch. @throws ApiError INVALID_REQUEST */
export const eventsOf = (body: unknown): readonly unknown[] => checked(eventBatchCheck, body, 'batch').events;
