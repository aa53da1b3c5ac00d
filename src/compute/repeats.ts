import { ApiError } from '../errors.js';
import type { Entry } from './lanes.js';
import { idsIn, type SentEvents } from './track-task.js';

/** How long an event waits for another one with its id that is still being counted. */
const waitMs = 5000;
/** Bodies are parsed only where an event has been open for so long. */
const slowMs = 1000;
const lookMs = 250;

export type OpenEvent = Pick<Entry, 'sent' | 'since' | 'settle'>;

interface Look {
  /** Tenant, learner and event id; null without an id. */
  readonly name: string | null;
  /** An earlier event of this name was open at some look. */
  isRepeat: boolean;
}

/**
 * Refuses single events with CONFLICT that have waited for some seconds for an earlier one with their id. Events are counted
 * in order, so that happens only where a batch is stuck. A refused one is still counted or replayed, only nobody hears of it.
 *
 * @param open the events that are not settled, those of a learner in their order
 * @param now milliseconds on their clock
 */
export function watchRepeats(open: () => Iterable<OpenEvent>, now = () => performance.now()): void {
  const looks = new WeakMap<SentEvents, Look>();
  const look = (): void => {
    const time = now();
    const events = [...open()];
    if (!events.some(({ since }) => time - since >= slowMs)) return;
    markRepeats(looks, events);
    for (const event of events) {
      if (!looks.get(event.sent)?.isRepeat || event.since > time - waitMs) continue;
      event.settle(stillRunning());
      event.settle = () => undefined;
    }
  };
  setInterval(look, lookMs).unref();
}

function markRepeats(looks: WeakMap<SentEvents, Look>, events: readonly OpenEvent[]): void {
  const names = new Set<string>();
  for (const { sent } of events) {
    const look = looks.get(sent) ?? { name: nameOf(sent), isRepeat: false };
    looks.set(sent, look);
    if (look.name === null) continue;
    if (names.has(look.name)) look.isRepeat = true;
    names.add(look.name);
  }
}

/** Ids hold no NUL, so the parts cannot be confused. */
function nameOf(sent: SentEvents): string | null {
  const { userId, eventId } = idsIn(sent);
  return eventId === null ? null : `${sent.tenant}\0${userId}\0${eventId}`;
}

const stillRunning = (): ApiError =>
  new ApiError('CONFLICT', 'The first request with this event_id is still running; try again', {
    headers: { 'Retry-After': '1' },
  });
