/** Messages between a fit and its threads; columns are shared memory. */
import type { AnswerLog } from '../domain/base/answer-log.js';
import type { FittedItems, ItemFigures } from '../domain/fit/prediction/replay.js';

/** Reads a tenant's answers or the item figures of a version, or publishes a model. */
export type FitTask =
  | {
      readonly kind: 'read';
      readonly clickhouseUrl: string;
      readonly tenant: string;
      /** Above it a sample of learners is read. */
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
  /** 8 bytes per item index, place 0 being no item: items are published by their hash. */
  readonly itemHashes: Uint8Array;
  /** From the hash of the learner's id, 0 to 2^32 - 1: the same in every fit. */
  readonly learnerHash: Uint32Array;
  /** One of so many learners was read. */
  readonly sampledOneIn: number;
}

export interface Publication {
  readonly tenant: string;
  readonly version: number;
  /** Active version that the new one was compared with. */
  readonly basedOn: number;
  /** JSON as `encodeModel` makes it, and of a `FitReport`. */
  readonly model: string;
  readonly report: string;
  /** With hashes as in `AnswersReply`; null: keep those of the active version. */
  readonly items: (FittedItems & { readonly hashes: Uint8Array }) | null;
  /** Unix milliseconds. */
  readonly publishedAt: number;
}

/** Or the reason why Redis could not be used. */
export type ItemsReply = ItemFigures | { readonly unavailable: string };
export type PublishReply = { readonly published: boolean } | { readonly unavailable: string };
