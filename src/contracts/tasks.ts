/**
 * What crosses the boundary between the front end and the workers. Events travel as one JSON text: a string is
 * copied in one go, where a list of objects would be cloned field by field.
 */

import type { Locale } from '../domain/advice-texts.js';

/** A checked answer on its way to be counted. Times are Unix milliseconds. */
export interface TrackEvent {
  readonly tenant: string;
  readonly userId: string;
  readonly skillId: string;
  readonly isCorrect: boolean;
  readonly timeSpentSeconds: number | null;
  readonly confidenceScore: number | null;
  readonly questionDifficulty: number | null;
  readonly itemId: string | null;
  readonly eventId: string | null;
  readonly occurredAt: number;
  /** The time as it was sent, for telling a repeated event from a different one. */
  readonly occurredAtText: string | null;
  readonly receivedAt: number;
  /** Line in the file that is being imported; null for a live answer. */
  readonly importLine: number | null;
}

export interface TrackTask {
  /** JSON of `TrackEvent[]`, in order of arrival. */
  readonly events: string;
  /** False while ids are remembered for too short a time to promise anything: new ids are refused then. */
  readonly acceptNewIds: boolean;
  /** The import that the events belong to, by the hash of its file; null for live answers. */
  readonly importId: string | null;
}

/** What became of one event. */
export type TrackOutcome =
  /** Counted now; `data` is the JSON of a LearningEventResult. */
  | 'counted'
  /** Counted before; `data` is the first answer again. */
  | 'replayed'
  /** This line of the import was counted by an earlier run. */
  | 'skipped'
  /** The id was used for a different event of this learner. */
  | 'reused'
  /** A defect: whether it was counted is not known; `data` says why, for the log alone. */
  | 'failed'
  /** Not counted as far as is known, try again later; `data` says why. */
  | 'unavailable';

/** One outcome per event of the task, in its order. */
export interface TrackReply {
  readonly outcomes: TrackOutcome[];
  readonly data: string[];
}

/** What a forecast is asked for, whoever it is of. */
export interface ForecastOptions {
  /** 1 to 365. */
  readonly days: number;
  /** Of the intervals, 0.5 to 0.99. */
  readonly level: number;
  readonly locale: Locale;
}

/** Forecasts of several learners of one tenant. */
export interface ForecastTask extends ForecastOptions {
  readonly kind: 'predictions';
  readonly tenant: string;
  readonly userIds: readonly string[];
}

/** JSON of the prediction results, in the order of the task; null for a learner without answers. */
export type ForecastReply = { readonly data: readonly (string | null)[] } | Refused;

/** One learner's forecast under a plan of practice. */
export interface WhatIfTask {
  readonly kind: 'what-if';
  readonly tenant: string;
  readonly userId: string;
  /** 1 to 365; null: not said, the standard ones. */
  readonly days: number | null;
  /** Of the intervals, 0.5 to 0.99. */
  readonly level: number;
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

interface Refused {
  readonly unavailable: string;
}

/** What a worker is started with. */
export interface WorkerSettings {
  readonly redisUrl: string;
  readonly partitions: number;
  /** Most rows that one partition's outbox may hold before answers are refused. */
  readonly outboxBound: number;
  /** Most served forecasts that one partition may hold for ClickHouse; further ones are not noted. */
  readonly forecastsBound: number;
}
