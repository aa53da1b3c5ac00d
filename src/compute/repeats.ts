import { ApiError } from '../errors.js';
import type { Entry } from './lanes.js';
import { idsIn, type SentEvents } from './track-task.js';

/** How long an event waits for an earlier one with the same id. */
const waitMs = 5000;
/** Bodies of open events are parsed only while at least one event has been open for this long. */
const slowMs = 1000;
const lookMs = 250;

export type OpenEvent = Pick<Entry, 'sent' | 'since' | 'settle'>;

/**
 * Rejects a single event with CONFLICT if an earlier one with its id stays open for seconds, in a stuck
 * batch. The rejected event is still counted or replayed. @param open unsettled events, in order per learner
 */
export function watchRepeats(open: () => Iterable<OpenEvent>, now = () => performance.now()): void {
  const names = new WeakMap<SentEvents, string | null>();
  const repeats = new WeakSet<SentEvents>();
  const look = (): void => {
    const time = now();
    const events = [...open()];
    if (!events.some(({ since }) => time - since >= slowMs)) return;
    const seen = new Set<string>();
    for (const event of events) {
      const { sent, since } = event;
      const known = names.get(sent);
      const name = known === undefined ? nameOf(sent) : known;
      names.set(sent, name);
      if (name !== null && seen.has(name)) repeats.add(sent);
      if (name !== null) seen.add(name);
      if (!repeats.has(sent) || since > time - waitMs) continue;
      event.settle(stillRunning());
      event.settle = () => undefined;
    }
  };
  setInterval(look, lookMs).unref();
}

/** Tenant, learner and event id; null without an id. Ids contain no NUL, so the key is unique. */
function nameOf(sent: SentEvents): string | null {
  const { userId, eventId } = idsIn(sent);
  return eventId === null ? null : `${sent.tenant}\0${userId}\0${eventId}`;
}

const stillRunning = (): ApiError =>
  new ApiError('CONFLICT', 'The first request with this event_id is still running; try again', {
    headers: { 'Retry-After': '1' },
  });
