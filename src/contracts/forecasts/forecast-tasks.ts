/** Tasks of the forecast workers. */
import type { Locale } from '../../domain/advice/advice-texts.js';
import type { NonEmpty } from '../../domain/base/common.js';
import type { LearnerId } from '../learners/learner-name.js';

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
  /** Return JSON of the `GoalStanding`, or null without a goal. */
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
  readonly skillIds: NonEmpty<string>;
  /** The item has `skill_ids`, so the response lists the skills. */
  readonly listsSkills: boolean;
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

export type UnavailableReply = { readonly unavailable: string };
