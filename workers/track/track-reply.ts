/** What became of the events of a task, gathered while it is worked on. */
import {
  dataSeparator,
  type EventOutcome,
  type InvalidEvent,
  outcomeLetters,
  type TrackOutcome,
  type TrackReply,
} from '../../src/contracts/tasks.js';
import type { ApiError } from '../../src/errors.js';
import type { LearnerPlan, LearnerWork } from './plan.js';

export type ReplyBuilder = ReturnType<typeof createReply>;

export function createReply() {
  const letters: string[] = [];
  const texts: string[] = [];
  const set = (place: number, outcome: TrackOutcome, data: string): void => {
    letters[place] = outcomeLetters[outcome];
    texts[place] = data;
  };
  const setAll = ({ events }: LearnerWork, outcome: TrackOutcome, data: string): void => {
    for (const { place } of events) set(place, outcome, data);
  };
  return {
    /** Makes room for one more outcome. @returns its place */
    open: (): number => letters.push(outcomeLetters.failed) - 1,
    set,
    invalid: (place: number, { message, details = [] }: ApiError): void => {
      const data: InvalidEvent = { message, details };
      set(place, 'invalid', JSON.stringify(data));
    },
    settle: (work: LearnerWork, plan: LearnerPlan): void => {
      work.events.forEach(({ place }, i) => {
        const { outcome, data } = plan.outcomes[i] as EventOutcome;
        set(place, outcome, data);
      });
    },
    refuse: (work: LearnerWork, reason: string): void => setAll(work, 'unavailable', reason),
    fail: (work: LearnerWork, error: unknown): void =>
      setAll(work, 'failed', error instanceof Error ? (error.stack ?? error.message) : String(error)),
    reply: (counts: readonly number[]): TrackReply => ({
      counts,
      outcomes: letters.join(''),
      data: texts.join(dataSeparator),
    }),
  };
}
