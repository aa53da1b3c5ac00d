/**
 * Messages between front end and workers. Answers travel as received bytes and outcomes as one text: objects would be cloned
 * field by field.
 */
import type { Locale } from '../domain/advice/texts.js';
import type { StepTimes } from '../spans.js';
import type { AttemptEvent } from './attempt-row.js';
import type { LearnerPlace } from './learner-name.js';

export interface TrackEvent extends AttemptEvent {
  /** As sent, to distinguish a repeated event from another. */
  readonly occurredAtText: string | null;
  /** Line of an imported file; null: a live answer. */
  readonly importLine: number | null;
}

/** `import`: the checked `TrackEvent[]` of an import. */
export type EventsForm = 'event' | 'batch' | 'lines' | 'import';

/** Bodies of several requests; each list has an entry per body. */
export interface TrackTask {
  readonly form: EventsForm;
  /** Each followed by a line feed. */
  readonly bodies: Uint8Array;
  readonly lengths: readonly number[];
  readonly tenants: readonly string[];
  /** Used if the body has no event id. */
  readonly idempotencyKeys: readonly (string | null)[];
  /** Unix milliseconds. */
  readonly receivedAt: readonly number[];
  /** Hash of the imported file; null: live answers. */
  readonly importId: string | null;
  /** One bit per counted slot: learners of a batch may be spread over several lanes. */
  readonly slots: number;
  readonly isTimed: boolean;
}

/** Slot of a learner: partition modulo this number. Lanes share the slots. */
export const slotCount = 16;
export const allSlots = 2 ** slotCount - 1;

export const outcomeLetters = {
  /** `data` is the JSON of a LearningEventResult. */
  counted: 'c',
  /** Repeated: `data` is the first result. */
  replayed: 'r',
  /** Counted by an earlier run of the import. */
  skipped: 's',
  /** The id belongs to another event of this learner. */
  reused: 'u',
  /** A new skill beyond a limit; `data` is its id. */
  beyond: 'b',
  /** `data` is JSON of `message` and `details`, a list of `Problem`. */
  invalid: 'i',
  /** The learner is in none of the task's slots. */
  elsewhere: 'e',
  /** Defect: the answer may be counted. `data` is the reason, for the log only. */
  failed: 'f',
  /** Probably not counted, retry later; `data` is the reason. */
  unavailable: 'n',
} as const;

export type TrackOutcome = keyof typeof outcomeLetters;

export type EventOutcome = { readonly outcome: TrackOutcome; readonly data: string };

export interface TrackReply {
  /** Events per body; `unreadable`: an invalid body, which has one outcome. */
  readonly counts: readonly number[];
  readonly outcomes: string;
  /** Joined with `dataSeparator`. */
  readonly data: string;
  /** Unix milliseconds in the thread, if timed. */
  readonly times?: { readonly start: number; readonly end: number; readonly steps: readonly StepTimes[] };
}

export const unreadable = -1;

/** JSON escapes it. */
export const dataSeparator = '\u001e';

export interface ForecastOptions {
  /** 1 to 365. */
  readonly days: number;
  /** Of the intervals, 0.5 to 0.99. */
  readonly level: number;
  readonly locale: Locale;
}

export interface ForecastOrder extends ForecastOptions {
  readonly tenant: string;
  readonly userIds: readonly string[];
  /** Unix milliseconds; absent: now. No later answer may be counted yet. */
  readonly at?: number;
  /** Return the learner's `GoalStanding` as JSON instead; null without a goal. */
  readonly standing?: true;
}

/** JSON of `ForecastOrder[]`, of several requests and tenants. */
export type ForecastTask = { readonly kind: 'predictions'; readonly orders: string };

/** By order and learner: JSON, null without answers, or the failure. */
export type ForecastReply = { readonly results: readonly (string | null | ForecastFailure)[] } | Refused;

/** `passing`: retry later; otherwise a defect, with the reason for the log only. */
export type ForecastFailure = { readonly reason: string; readonly passing: boolean };

export interface WhatIfTask extends LearnerPlace, Pick<ForecastOptions, 'level'> {
  readonly kind: 'what-if';
  /** 1 to 365; null: the standard horizon. */
  readonly days: number | null;
  readonly answersPerDay: number;
  /** Null: all. */
  readonly skillIds: readonly string[] | null;
  /** Null: the learner's goal. */
  readonly targetScore: number | null;
}

/** `data`: JSON; null without answers. */
export type WhatIfReply =
  | { readonly data: string | null }
  | { readonly unknownSkills: readonly string[] }
  | Refused;

export interface AskedItem {
  readonly itemId: string | null;
  readonly skillId: string;
  /** -3 to 3; null: unknown. */
  readonly questionDifficulty: number | null;
}

export interface NextItemsTask extends LearnerPlace {
  readonly kind: 'next-items';
  /** JSON of `AskedItem[]`. */
  readonly items: string;
  readonly limit: number;
  /** Success rate, .5 to .95. */
  readonly target: number;
}

export type NextItemsReply = { readonly data: string } | Refused;

type Refused = { readonly unavailable: string };

export interface RetractionTask extends LearnerPlace {
  readonly eventId: string;
  /** Of the learner's record, read before the rows. */
  readonly version: number;
  readonly attempts: number;
  /** Rows in Redis, as stored. Of rows with the same number the first counts, also before ClickHouse. */
  readonly waiting: readonly string[];
  /** Rows in ClickHouse, each followed by a line feed; times are Unix seconds. */
  readonly stored: string;
  /** State before the rows, if older rows were dropped for their age. */
  readonly snapshot: string | null;
}

/**
 * `absent`: no row has the event id. `incomplete`: a row is missing. `archived`: the rows are only sums now, or were committed
 * with the answer. `conflict`: another process wrote the learner. `full`: the outbox or the journal. `lost`: Redis is empty.
 */
export type RetractionResult =
  | { readonly status: 'done'; readonly skillId: string }
  | { readonly status: 'absent' | 'incomplete' | 'archived' | 'conflict' | 'full' | 'lost' };

export type RetractionReply = RetractionResult | Refused;

/** Skills that a learner answers and a tenant has: an answer that starts another skill is rejected. */
export type SkillLimits = { readonly perLearner: number; readonly perTenant: number };

export interface WorkerSettings {
  readonly redisUrl: string;
  /** Replicas that must have an answer before it is confirmed. */
  readonly waitReplicas: number;
  readonly partitions: number;
  /** Rows in one partition's outbox; above, answers are rejected. */
  readonly outboxBound: number;
  /** Served forecasts that wait in one partition; more are dropped. */
  readonly forecastsBound: number;
  readonly skillLimits: SkillLimits;
  /** Cache time of item figures in milliseconds; default: 30 s. */
  readonly itemsFreshMs?: number | undefined;
}
