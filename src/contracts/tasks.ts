/**
 * Messages between front end and workers. Answers travel as the received bytes and outcomes as one text: lists of objects would
 * be cloned field by field.
 */
import type { Locale } from '../domain/advice/texts.js';
import type { StepTimes } from '../spans.js';
import type { AttemptEvent } from './attempt-row.js';
import type { LearnerPlace } from './learner-name.js';

export interface TrackEvent extends AttemptEvent {
  /** As sent, to distinguish a repeated event from a different one. */
  readonly occurredAtText: string | null;
  /** Line of an imported file; null for a live answer. */
  readonly importLine: number | null;
}

/** Form of a body: one event, a JSON batch, JSON lines, or the checked `TrackEvent[]` of an import. */
export type EventsForm = 'event' | 'batch' | 'lines' | 'import';

/** Bodies of several requests of one form; each list has an entry per body. */
export interface TrackTask {
  readonly form: EventsForm;
  /** Concatenated, each followed by a line feed. */
  readonly bodies: Uint8Array;
  readonly lengths: readonly number[];
  readonly tenants: readonly string[];
  /** Used if the body has no event id. */
  readonly idempotencyKeys: readonly (string | null)[];
  /** Unix milliseconds. */
  readonly receivedAt: readonly number[];
  /** Import of the events, by the hash of its file; null for live answers. */
  readonly importId: string | null;
  /** Slots whose events are counted, one bit each: the learners of a batch may be spread over several lanes. */
  readonly slots: number;
  readonly isTimed: boolean;
}

/** Slot of a learner: partition modulo this number. Lanes share the slots. */
export const slotCount = 16;
export const allSlots = 2 ** slotCount - 1;

/** Outcome of an event, with its letter in a reply. */
export const outcomeLetters = {
  /** `data` is the JSON of a LearningEventResult. */
  counted: 'c',
  /** Repeated: `data` is the first result. */
  replayed: 'r',
  /** Counted by an earlier run of the import. */
  skipped: 's',
  /** The id belongs to a different event of this learner. */
  reused: 'u',
  /** A new skill beyond a limit, named by `data`. */
  beyond: 'b',
  /** Invalid event or body; `data` is JSON of `message` and `details`, a list of `Problem`. */
  invalid: 'i',
  /** The learner is in none of the task's slots. */
  elsewhere: 'e',
  /** Defect: the answer may be counted or not; `data` is the reason, for the log only. */
  failed: 'f',
  /** Probably not counted, retry later; `data` is the reason. */
  unavailable: 'n',
} as const;

export type TrackOutcome = keyof typeof outcomeLetters;

export type EventOutcome = { readonly outcome: TrackOutcome; readonly data: string };

/** Outcomes in the order of the task. */
export interface TrackReply {
  /** Number of events per body; `unreadable` for an invalid body, which has one outcome. */
  readonly counts: readonly number[];
  readonly outcomes: string;
  /** Joined with `dataSeparator`. */
  readonly data: string;
  /** Unix milliseconds in the thread, if timed. */
  readonly times?: { readonly start: number; readonly end: number; readonly steps: readonly StepTimes[] };
}

export const unreadable = -1;

/** Never in data: JSON escapes it. */
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
  /** As of these Unix milliseconds; absent: now. No later answer may be counted yet. */
  readonly at?: number;
  /** Returns the learner's `GoalStanding` as JSON instead; null without a goal. */
  readonly standing?: true;
}

/** JSON of `ForecastOrder[]`, of several requests and tenants. */
export type ForecastTask = { readonly kind: 'predictions'; readonly orders: string };

/** By order and learner: JSON of the prediction, null without answers, or the failure. */
export type ForecastReply = { readonly results: readonly (string | null | ForecastFailure)[] } | Refused;

/** `passing`: retry later; otherwise a defect, whose reason is for the log only. */
export type ForecastFailure = { readonly reason: string; readonly passing: boolean };

export interface WhatIfTask extends LearnerPlace, Pick<ForecastOptions, 'level'> {
  readonly kind: 'what-if';
  /** 1 to 365; null: the standard ones. */
  readonly days: number | null;
  readonly answersPerDay: number;
  /** Practised skills; null: all. */
  readonly skillIds: readonly string[] | null;
  /** Null: the learner's goal. */
  readonly targetScore: number | null;
}

/** JSON of the result, null without answers; or skills unknown to the tenant. */
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
  /** Target success rate, .5 to .95. */
  readonly target: number;
}

export type NextItemsReply = { readonly data: string } | Refused;

type Refused = { readonly unavailable: string };

/** Replays a history without one answer. */
export interface RetractionTask extends LearnerPlace {
  readonly eventId: string;
  /** Of the learner's record, read before the rows. */
  readonly version: number;
  readonly attempts: number;
  /** Rows in Redis, as stored. The first of several with one number counts, also before ClickHouse. */
  readonly waiting: readonly string[];
  /** Rows in ClickHouse, each followed by a line feed, times as Unix seconds. */
  readonly stored: string;
  /** State before the rows, if older rows were dropped for their age. */
  readonly snapshot: string | null;
}

/**
 * `absent`: no row has the event id. `incomplete`: a row is missing. `archived`: rows to be rewritten are sums by now, or were
 * committed with the answer. `conflict`: another process wrote the learner. `full`: the outbox or the journal. `lost`: Redis
 * is empty.
 */
export type RetractionResult =
  | { readonly status: 'done'; readonly skillId: string }
  | { readonly status: 'absent' | 'incomplete' | 'archived' | 'conflict' | 'full' | 'lost' };

export type RetractionReply = RetractionResult | Refused;

/** Limits of skills answered by a learner and known to a tenant: an answer that starts another skill is rejected. */
export type SkillLimits = { readonly perLearner: number; readonly perTenant: number };

export interface WorkerSettings {
  readonly redisUrl: string;
  /** Replicas that must have an answer before it is confirmed. */
  readonly waitReplicas: number;
  readonly partitions: number;
  /** Limit of rows in one partition's outbox; above, answers are rejected. */
  readonly outboxBound: number;
  /** Limit of served forecasts in one partition for ClickHouse; further ones are dropped. */
  readonly forecastsBound: number;
  readonly skillLimits: SkillLimits;
  /** Milliseconds for which a thread caches item figures; default: 30 s. */
  readonly itemsFreshMs?: number | undefined;
}
