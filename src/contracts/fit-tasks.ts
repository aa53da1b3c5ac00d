/** Messages between a fit and its threads. Columns are shared memory. */
import type { AnswerLog } from '../domain/base/answer-log.js';
import type { FittedItems, ItemFigures } from '../domain/fit/prediction/replay.js';

export type FitTask =
  | {
      readonly kind: 'read';
      readonly clickhouseUrl: string;
      readonly tenant: string;
      /** More answers: a sample of learners is read. */
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
  /** 8 bytes per item index; index 0: no item. */
  readonly itemHashes: Uint8Array;
  /** 0 to 2^32 - 1, from the learner's id: the same in every fit. */
  readonly learnerHash: Uint32Array;
  /** N: one of N learners was read. */
  readonly sampledOneIn: number;
}

export interface Publication {
  readonly tenant: string;
  readonly version: number;
  /** Active version that the fit was compared with. */
  readonly basedOn: number;
  /** From `encodeModel`; `report` is JSON of a `FitReport`. */
  readonly model: string;
  readonly report: string;
  /** Null: keep the active version's. */
  readonly items: (FittedItems & { readonly hashes: Uint8Array }) | null;
  /** Unix milliseconds. */
  readonly publishedAt: number;
}

/** `unavailable` is the reason. */
export type ItemsReply = ItemFigures | { readonly unavailable: string };
export type PublishReply = { readonly published: boolean } | { readonly unavailable: string };
