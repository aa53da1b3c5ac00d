import type { AttemptTracker, OpenAnswer, Submission } from '../../compute/tracking.js';
import { ApiError } from '../../errors.js';
import { idsIn } from './submissions.js';

/** How long an event waits for another one with its id that is still being counted. */
const waitMs = 5000;
/** Only where one is open for so long they are looked into. */
const slowMs = 1000;
const lookMs = 250;

/** What is known of an open answer that was looked into. */
interface Mark {
  /** Name of the event; null without an id. */
  readonly name: string | null;
  /** An earlier one with its name was open when this one was looked at. */
  repeats: boolean;
}

/**
 * Watches single events that wait for an earlier one with their id, and tells them CONFLICT after some seconds. Events are
 * counted in order, so that takes long only when a batch is stuck: only then are the bodies of those who wait looked
 * into. A refused one is still counted or replayed, only nobody is there to hear it.
 *
 * @param now milliseconds on the clock of `open`
 */
export function watchRepeats(open: AttemptTracker['open'], now = () => performance.now()): void {
  const marks = new WeakMap<Submission, Mark>();
  const look = (): void => {
    const time = now();
    const answers = [...open()];
    if (!answers.some(({ since }) => time - since >= slowMs)) return;
    markRepeats(marks, answers);
    for (const { submission, since, refuse } of answers)
      if (marks.get(submission)?.repeats && since <= time - waitMs) refuse(stillRunning());
  };
  setInterval(look, lookMs).unref();
}

function markRepeats(marks: WeakMap<Submission, Mark>, answers: readonly OpenAnswer[]): void {
  const names = new Set<string>();
  for (const { submission } of answers) {
    const mark = marks.get(submission) ?? { name: nameOf(submission), repeats: false };
    marks.set(submission, mark);
    if (mark.name === null) continue;
    if (names.has(mark.name)) mark.repeats = true;
    names.add(mark.name);
  }
}

/** Ids hold no NUL, so the parts cannot be confused. */
function nameOf(submission: Submission): string | null {
  const { userId, eventId } = idsIn(submission);
  return eventId === null ? null : `${submission.tenant}\0${userId}\0${eventId}`;
}

const stillRunning = (): ApiError =>
  new ApiError('CONFLICT', 'The first request with this event_id is still running; try again', {
    headers: { 'Retry-After': '1' },
  });
