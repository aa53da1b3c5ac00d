import { ApiError } from '../errors.js';
import type { Entry } from './lanes.js';
import { idsIn, type SentEvents } from './track-task.js';

/** How long an event waits for an earlier one with the same id. */
const waitMs = 5000;
/** Bodies are parsed only while an event is open for this long. */
const slowMs = 1000;
const lookMs = 250;

export type OpenEvent = Pick<Entry, 'sent' | 'since' | 'settle'>;

/**
 * Rejects a single event with CONFLICT if an earlier one with its id is stuck in a batch. The event may still
 * be counted.
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

/** Ids contain no NUL. */
function nameOf(sent: SentEvents): string | null {
  const { userId, eventId } = idsIn(sent);
  return eventId === null ? null : `${sent.tenant}\0${userId}\0${eventId}`;
}

const stillRunning = (): ApiError =>
  new ApiError('CONFLICT', 'The first request with this event_id is still running; try again', {
    headers: { 'Retry-After': '1' },
  });
