import { ApiError } from '../errors.js';
import type { LaneEntry } from './lanes.js';
import { type EventsRequest, parseIds } from './track-task.js';

/** How long an event waits for an earlier one with the same id. */
const rejectAfterMs = 5000;
/** Bodies are parsed only while an event is open for this long. */
const slowAfterMs = 1000;
const checkIntervalMs = 250;

export type OpenEvent = Pick<LaneEntry, 'request' | 'queuedAt' | 'complete'>;

/**
 * Rejects a single event with CONFLICT if it waits 5 s for an earlier one with the same id. The rejected event
 * stays in its lane, which counts or replays it later.
 */
export function startRepeatRejection(
  listOpenEvents: () => Iterable<OpenEvent>,
  now = () => performance.now(),
): void {
  const eventKeys = new WeakMap<EventsRequest, string | null>();
  const repeats = new WeakSet<EventsRequest>();
  const checkRepeats = (): void => {
    const time = now();
    const events = [...listOpenEvents()];
    if (!events.some(({ queuedAt }) => time - queuedAt >= slowAfterMs)) return;
    const seen = new Set<string>();
    for (const event of events) {
      const { request, queuedAt } = event;
      const cachedKey = eventKeys.get(request);
      const eventKey = cachedKey === undefined ? buildEventKey(request) : cachedKey;
      eventKeys.set(request, eventKey);
      if (eventKey !== null && seen.has(eventKey)) repeats.add(request);
      if (eventKey !== null) seen.add(eventKey);
      if (!repeats.has(request) || queuedAt > time - rejectAfterMs) continue;
      event.complete(createRepeatError());
      event.complete = () => undefined;
    }
  };
  setInterval(checkRepeats, checkIntervalMs).unref();
}

/** Ids contain no NUL. */
function buildEventKey(request: EventsRequest): string | null {
  const { userId, eventId } = parseIds(request);
  return eventId === null ? null : `${request.tenant}\0${userId}\0${eventId}`;
}

const createRepeatError = (): ApiError =>
  new ApiError('CONFLICT', 'The first request with this event_id is still running; retry later.', {
    headers: { 'Retry-After': '1' },
  });
