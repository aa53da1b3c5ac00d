/**
 * Messages to worker threads. Answers are sent as received bytes and outcomes as one text: objects would be
 * cloned field by field.
 */
import type { Locale } from '../../domain/advice/advice-texts.js';
import type { StepTiming } from '../../spans.js';
import type { LearnerId } from '../learners/learner-name.js';
import type { AttemptEvent } from './attempt-row.js';

export interface TrackEvent extends AttemptEvent {
  /** As sent: distinguishes a repeated event from another. */
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
  /** A new skill beyond a limit; `data`: its id. */
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
  /** Events per body; an `unreadableCount` body has one outcome. */
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

export interface ForecastOptions {
  /** 1 to 365. */
  readonly days: number;
  /** 0.5 to 0.99. */
  readonly level: number;
  readonly locale: Locale;
}

export interface ForecastOrder extends ForecastOptions {
  readonly tenant: string;
  readonly userIds: readonly string[];
  /** Unix milliseconds, after the last counted answer; absent: now. */
  readonly at?: number;
  /** Return JSON of the `GoalStatus`, or null without a goal. */
  readonly standing?: true;
}

/** JSON of `ForecastOrder[]`. */
export type ForecastTask = { readonly kind: 'predictions'; readonly orders: string };

/** Results by order and learner; null: no answers. */
export type ForecastReply =
  | { readonly results: readonly (string | null | ForecastFailure)[] }
  | UnavailableReply;

/** Not `isTransient`: a defect, with the reason for the log only. */
export type ForecastFailure = { readonly reason: string; readonly isTransient: boolean };

export interface WhatIfTask extends LearnerId, Pick<ForecastOptions, 'level'> {
  readonly kind: 'what-if';
  /** 1 to 365; null: the standard horizon. */
  readonly days: number | null;
  readonly answersPerDay: number;
  /** Null: all. */
  readonly skillIds: readonly string[] | null;
  /** Null: the learner's goal. */
  readonly targetScore: number | null;
}

/** `data`: null without answers. */
export type WhatIfReply =
  | { readonly data: string | null }
  | { readonly unknownSkills: readonly string[] }
  | UnavailableReply;

export interface ItemCandidate {
  readonly itemId: string | null;
  readonly skillId: string;
  /** -3 to 3; null: unknown. */
  readonly questionDifficulty: number | null;
}

export interface NextItemsTask extends LearnerId {
  readonly kind: 'next-items';
  /** JSON of `ItemCandidate[]`. */
  readonly items: string;
  readonly limit: number;
  /** .5 to .95. */
  readonly target: number;
}

export type NextItemsReply = { readonly data: string } | UnavailableReply;

type UnavailableReply = { readonly unavailable: string };

export interface RetractionTask extends LearnerId {
  readonly eventId: string;
  /** Version of the learner record, read before the rows. */
  readonly version: number;
  readonly attempts: number;
  /** Rows of the outbox. They have priority over `storedRows`. */
  readonly outboxRows: readonly string[];
  /** Each ends with a line feed; times are Unix seconds. */
  readonly storedRows: string;
  /** State before the rows, if older ones were dropped. */
  readonly snapshot: string | null;
}

/**
 * `absent`: no such event id. `incomplete`: a row is missing. `archived`: the answer is in the snapshot, or
 * the only one after it. `conflict`: a concurrent write. `full`: outbox or journal. `lost`: Redis is empty.
 */
export type RetractionResult =
  | { readonly status: 'done'; readonly skillId: string }
  | { readonly status: 'absent' | 'incomplete' | 'archived' | 'conflict' | 'full' | 'lost' };

export type RetractionReply = RetractionResult | UnavailableReply;

/** An answer on a further skill is rejected. */
export type SkillLimits = { readonly perLearner: number; readonly perTenant: number };

export interface WorkerSettings {
  readonly redisUrl: string;
  /** Replicas that store an answer before it is confirmed. */
  readonly waitReplicas: number;
  readonly partitions: number;
  /** Limit per partition. Above it, answers are rejected. */
  readonly maxOutboxRows: number;
  /** Limit per partition. Further forecasts are dropped. */
  readonly maxPendingForecasts: number;
  readonly skillLimits: SkillLimits;
  /** Default: 30 s. */
  readonly itemCacheMs?: number | undefined;
}
