/**
 * What crosses the boundary between the front end and the workers. Answers travel as the bytes in which they came, and their
 * outcomes as one text: lists of objects would be cloned field by field.
 */
import type { Locale } from '../domain/advice/texts.js';
import type { StepTimes } from '../spans.js';
import type { AttemptEvent } from './attempt-row.js';
import type { LearnerPlace } from './learner-name.js';

export interface TrackEvent extends AttemptEvent {
  /** The time as it was sent, for telling a repeated event from a different one. */
  readonly occurredAtText: string | null;
  /** Line in the file that is being imported; null for a live answer. */
  readonly importLine: number | null;
}

/** How a body is to be read: one event, a JSON batch, a line of JSON for each event, or an import's checked `TrackEvent[]`. */
export type EventsForm = 'event' | 'batch' | 'lines' | 'import';

/** Bodies of several requests, of one form; the lists have an entry for each. */
export interface TrackTask {
  readonly form: EventsForm;
  /** One after the other, a line feed behind each. */
  readonly bodies: Uint8Array;
  /** In bytes, without the line feed. */
  readonly lengths: readonly number[];
  readonly tenants: readonly string[];
  /** Stand for event ids where the body has none. */
  readonly idempotencyKeys: readonly (string | null)[];
  /** Unix milliseconds. */
  readonly receivedAt: readonly number[];
  /** The import that the events belong to, by the hash of its file; null for live answers. */
  readonly importId: string | null;
  /** Of a batch, whose learners may go through several lanes: the slots whose events are counted, a bit for each. */
  readonly slots: number;
  readonly isTimed: boolean;
}

/** Learners go through the lanes by slots: partition modulo so many. */
export const slotCount = 16;
export const allSlots = 2 ** slotCount - 1;

/** What becomes of an event, with the letter that stands for it in a reply. */
export const outcomeLetters = {
  /** `data` is the JSON of a LearningEventResult. */
  counted: 'c',
  /** Counted before; `data` is the first result again. */
  replayed: 'r',
  /** This line of the import was counted by an earlier run. */
  skipped: 's',
  /** The id was used for a different event of this learner. */
  reused: 'u',
  /** It would begin a skill beyond a limit; `data` says which. */
  beyond: 'b',
  /** Not an event, or no body at all; `data` is the JSON of `message` and `details`, a list of `Problem`. */
  invalid: 'i',
  /** Of a learner in none of the task's slots. */
  elsewhere: 'e',
  /** A defect: whether it was counted is not known; `data` says why, for the log alone. */
  failed: 'f',
  /** Not counted as far as is known, try again later; `data` says why. */
  unavailable: 'n',
} as const;

export type TrackOutcome = keyof typeof outcomeLetters;

export type EventOutcome = { readonly outcome: TrackOutcome; readonly data: string };

/** What became of the events of a task, in its order. */
export interface TrackReply {
  /** Events of each body; `unreadable` for one that is none at all, which has one outcome all the same. */
  readonly counts: readonly number[];
  /** A letter for each outcome (`outcomeLetters`). */
  readonly outcomes: string;
  /** The outcomes' data, with `dataSeparator` between them. */
  readonly data: string;
  /** Unix milliseconds when the task was in its thread; where it is timed. */
  readonly times?: { readonly start: number; readonly end: number; readonly steps: readonly StepTimes[] };
}

export const unreadable = -1;

/** Stands in no data: JSON has it escaped. */
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
  /** Unix milliseconds as of which it is made; absent: now. Answers of later than that must not be counted yet. */
  readonly at?: number;
  /** Instead of the forecast, the learner's `GoalStanding` as JSON; null without a goal. */
  readonly standing?: true;
}

/** JSON of `ForecastOrder[]`, of several requests and perhaps of several tenants. */
export type ForecastTask = { readonly kind: 'predictions'; readonly orders: string };

/** Of the learners, order by order: JSON of the prediction result, null without answers, or why it failed. */
export type ForecastReply = { readonly results: readonly (string | null | ForecastFailure)[] } | Refused;

/** Why one learner's forecast could not be made; where it is not passing, a defect: the reason is for the log alone. */
export type ForecastFailure = { readonly reason: string; readonly passing: boolean };

export interface WhatIfTask extends LearnerPlace, Pick<ForecastOptions, 'level'> {
  readonly kind: 'what-if';
  /** 1 to 365; null: the standard ones. */
  readonly days: number | null;
  readonly answersPerDay: number;
  /** The only skills that are practised; null: all. */
  readonly skillIds: readonly string[] | null;
  /** Null: the learner's goal. */
  readonly targetScore: number | null;
}

/** JSON of the result, null for a learner without answers; or skills that the tenant does not know. */
export type WhatIfReply =
  | { readonly data: string | null }
  | { readonly unknownSkills: readonly string[] }
  | Refused;

/** A question that a caller asks about. */
export interface AskedItem {
  readonly itemId: string | null;
  readonly skillId: string;
  /** -3 to 3; null: not supplied. */
  readonly questionDifficulty: number | null;
}

export interface NextItemsTask extends LearnerPlace {
  readonly kind: 'next-items';
  /** JSON of `AskedItem[]`. */
  readonly items: string;
  /** Most items that the result may name. */
  readonly limit: number;
  /** Success rate aimed at, .5 to .95. */
  readonly target: number;
}

/** JSON of the result. */
export type NextItemsReply = { readonly data: string } | Refused;

type Refused = { readonly unavailable: string };

/** A history that is to be replayed without one answer. */
export interface RetractionTask extends LearnerPlace {
  readonly eventId: string;
  /** Of the learner's record as it was read before the rows. */
  readonly version: number;
  readonly attempts: number;
  /** Rows that wait in Redis, as they stand there; of several with one number the first counts, and before stored ones. */
  readonly waiting: readonly string[];
  /** Rows in ClickHouse, a line feed behind each, times as Unix seconds. */
  readonly stored: string;
  /** State that the rows follow on where older ones were dropped for their age. */
  readonly snapshot: string | null;
}

/**
 * `absent`: no row has the event id. `incomplete`: a row is missing. `archived`: rows to be written again are sums by now, or
 * were committed with the answer. `conflict`: another process wrote the learner. `full`: the outbox or the journal.
 * `lost`: Redis came back empty.
 */
export type RetractionResult =
  | { readonly status: 'done'; readonly skillId: string }
  | { readonly status: 'absent' | 'incomplete' | 'archived' | 'conflict' | 'full' | 'lost' };

export type RetractionReply = RetractionResult | Refused;

/** Skills that one learner has answered, and that a tenant knows: beyond, an answer that would begin another is refused. */
export type SkillLimits = { readonly perLearner: number; readonly perTenant: number };

export interface WorkerSettings {
  readonly redisUrl: string;
  /** Replicas that must have an answer before it is confirmed. */
  readonly waitReplicas: number;
  readonly partitions: number;
  /** Most rows that one partition's outbox may hold before answers are refused. */
  readonly outboxBound: number;
  /** Most served forecasts that one partition may hold for ClickHouse; further ones are not noted. */
  readonly forecastsBound: number;
  readonly skillLimits: SkillLimits;
  /** For how many milliseconds a thread takes an item's figures for true; absent: 30 s. */
  readonly itemsFreshMs?: number | undefined;
}
