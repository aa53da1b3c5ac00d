/**
 * Task of the workers that count answers. Answers are sent as received bytes and outcomes as one text: objects
 * would be cloned field by field.
 */
import type { StepTiming } from '../../spans.js';
import type { AttemptEvent } from './attempt-row.js';

export interface TrackEvent extends AttemptEvent {
  /** The event has `skill_ids`, so the result lists the skills. */
  readonly listsSkills: boolean;
  /** Null: not sent. One spelling for each instant: distinguishes a repeated event from another. */
  readonly occurredAtText: string | null;
  /** Null: not imported. */
  readonly importLine: number | null;
}

/** `import`: validated `TrackEvent[]`. */
export type EventsFormat = 'event' | 'batch' | 'lines' | 'import';

/** Each list has an entry per body. */
export interface TrackTask {
  readonly form: EventsFormat;
  /** Each ends with a line feed. */
  readonly bodies: Uint8Array;
  readonly lengths: readonly number[];
  readonly tenants: readonly string[];
  /** For bodies without an event id. */
  readonly idempotencyKeys: readonly (string | null)[];
  /** Unix milliseconds. */
  readonly receivedAt: readonly number[];
  /** Null: not an import. */
  readonly importId: string | null;
  /** Bit mask: other lanes count the other learners of the batch. */
  readonly slots: number;
  readonly isTimed: boolean;
}

/** A learner's slot is its partition modulo this number. Each lane has some of the slots. */
export const slotCount = 16;
export const allSlots = 2 ** slotCount - 1;

export const outcomeLetters = {
  /** `data`: JSON of a LearningEventResult. */
  counted: 'c',
  /** Repeated; `data`: the first result. */
  replayed: 'r',
  /** Counted by an earlier run of the import. */
  skipped: 's',
  /** The event id belongs to another event of the learner. */
  reused: 'u',
  /** A new skill beyond a limit; `data`: message for the caller. */
  beyond: 'b',
  /** `data`: JSON of `message` and `details`. */
  invalid: 'i',
  /** The learner is in none of `slots`. */
  elsewhere: 'e',
  /** Defect: the answer may be counted. `data`: the reason, for the log only. */
  failed: 'f',
  /** Probably not counted, retry later; `data`: the reason. */
  unavailable: 'n',
} as const;

export type TrackOutcome = keyof typeof outcomeLetters;

export type EventOutcome = { readonly outcome: TrackOutcome; readonly data: string };

export interface TrackReply {
  /** Events per body; `unreadableCount` for an unreadable body, which has one outcome. */
  readonly counts: readonly number[];
  readonly outcomes: string;
  /** Joined with `dataSeparator`. */
  readonly data: string;
  /** Unix milliseconds. */
  readonly times?: { readonly start: number; readonly end: number; readonly steps: readonly StepTiming[] };
}

export const unreadableCount = -1;

/** JSON escapes it. */
export const dataSeparator = '\u001e';
