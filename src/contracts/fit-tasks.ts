/** Messages between a fit and its threads. Columns are shared memory. */
import type { AnswerLog } from '../domain/base/answer-log.js';
import type { FittedItems, ItemFigures } from '../domain/fit/prediction/replay.js';

export type FitTask =
  | {
      readonly kind: 'read';
      readonly clickhouseUrl: string;
      readonly tenant: string;
      /** Above this number, a sample of learners is read. */
      readonly maxAnswers: number;
    }
  | {
      readonly kind: 'items';
      readonly redisUrl: string;
      readonly tenant: string;
      readonly version: number;
      /** As in `AnswersReply`. */
      readonly itemHashes: Uint8Array;
    }
  | (Publication & { readonly kind: 'publish'; readonly redisUrl: string });

export interface AnswersReply {
  readonly log: AnswerLog;
  /** By skill index. */
  readonly skillIds: readonly string[];
  /** 8 bytes per item index; index 0: no item. Items are published by their hash. */
  readonly itemHashes: Uint8Array;
  /** 0 to 2^32 - 1, from the learner's id: the same in every fit. */
  readonly learnerHash: Uint32Array;
  /** N: one of N learners was read. */
  readonly sampledOneIn: number;
}

export interface Publication {
  readonly tenant: string;
  readonly version: number;
  /** Active version at the comparison. */
  readonly basedOn: number;
  /** JSON of `encodeModel`, and of a `FitReport`. */
  readonly model: string;
  readonly report: string;
  /** With hashes as in `AnswersReply`; null: keep the active version's. */
  readonly items: (FittedItems & { readonly hashes: Uint8Array }) | null;
  /** Unix milliseconds. */
  readonly publishedAt: number;
}

/** `unavailable`: why Redis cannot be used. */
export type ItemsReply = ItemFigures | { readonly unavailable: string };
export type PublishReply = { readonly published: boolean } | { readonly unavailable: string };
