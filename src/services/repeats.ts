import { ApiError } from '../errors.js';
import type { Submission, Tracked } from './ports.js';
import { idsIn } from './submissions.js';

/** How long an event waits for another one with its id that is still being counted. */
const waitMs = 5000;
/** Whatever is open for so long is looked into. */
const slowMs = 1000;
const lookMs = 250;

interface Open {
  readonly submission: Submission;
  readonly since: number;
  /** Tells the caller, who no longer waits for the outcome. */
  readonly refuse: (error: ApiError) => void;
  /** Name of the event; null without an id, undefined before it is looked at. */
  name: string | null | undefined;
  /** An earlier one with its name was open when this one was looked at. */
  repeats: boolean;
}

export interface Repeats {
  /** The outcome, or CONFLICT where the first event with that id still runs after some seconds. */
  watch(submission: Submission, outcome: Promise<readonly Tracked[]>): Promise<readonly Tracked[]>;
}

/**
 * Watches single events that wait for an earlier one with their id. Events are counted in order, so that takes long
 * only when a batch is stuck: only then are the bodies of those who wait looked into. A refused one is still
 * counted or replayed, only nobody is there to hear it.
 *
 * @param now milliseconds on a clock that only goes forward
 */
export function createRepeats(now = () => performance.now()): Repeats {
  /** In order of arrival. */
  const open = new Set<Open>();
  const look = (): void => {
    const [oldest] = open;
    if (oldest === undefined || now() - oldest.since < slowMs) return;
    markRepeats(open);
    refuseRepeats(open, now() - waitMs);
  };
  setInterval(look, lookMs).unref();
  return {
    watch: (submission, outcome) =>
      new Promise((resolve, reject) => {
        const entry: Open = { submission, since: now(), refuse: reject, name: undefined, repeats: false };
        open.add(entry);
        outcome.then(
          (tracked) => {
            open.delete(entry);
            resolve(tracked);
          },
          (error: unknown) => {
            open.delete(entry);
            reject(error);
          },
        );
      }),
  };
}

function markRepeats(open: ReadonlySet<Open>): void {
  const names = new Set<string>();
  for (const entry of open) {
    if (entry.name === undefined) entry.name = nameOf(entry.submission);
    if (entry.name === null) continue;
    if (names.has(entry.name)) entry.repeats = true;
    names.add(entry.name);
  }
}

/** Ids hold no NUL, so the parts cannot be confused. */
function nameOf(submission: Submission): string | null {
  const { userId, eventId } = idsIn(submission);
  return eventId === null ? null : `${submission.tenant}\0${userId}\0${eventId}`;
}

/** @param latest those that are open since then or longer have waited enough */
function refuseRepeats(open: Set<Open>, latest: number): void {
  for (const entry of open) {
    if (!entry.repeats || entry.since > latest) continue;
    open.delete(entry);
    entry.refuse(stillRunning());
  }
}

const stillRunning = (): ApiError =>
  new ApiError('CONFLICT', 'The first request with this event_id is still running; try again', {
    headers: { 'Retry-After': '1' },
  });
