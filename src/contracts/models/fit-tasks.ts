/** The columns of `AnswerLog` are shared memory. */
import type { AnswerLog } from '../../domain/base/answer-log.js';
import type { FittedItems, ItemFigures } from '../../domain/fit/prediction/replay-log.js';

export type FitTask =
  | {
      readonly kind: 'read';
      readonly clickhouseUrl: string;
      readonly tenant: string;
      /** If there are more answers, a sample of learners is read. */
      readonly maxAnswers: number;
    }
  | {
      readonly kind: 'items';
      readonly redisUrl: string;
      readonly tenant: string;
      readonly version: number;
      readonly itemHashes: Uint8Array;
    }
  | (Publication & { readonly kind: 'publish'; readonly redisUrl: string });

export interface AnswersReply {
  readonly log: AnswerLog;
  readonly skillIds: readonly string[];
  /** 8 bytes per item index; index 0: no item. */
  readonly itemHashes: Uint8Array;
  /** From the learner's id: the same in every fit. */
  readonly learnerHash: Uint32Array;
  /** N: one in N learners was read. */
  readonly sampledOneIn: number;
}

export interface Publication {
  readonly tenant: string;
  readonly version: number;
  readonly basedOn: number;
  readonly model: string;
  readonly report: string;
  /** Null: keep the active version's. */
  readonly items: (FittedItems & { readonly hashes: Uint8Array }) | null;
  /** Unix milliseconds. */
  readonly publishedAt: number;
}

export type ItemsReply = ItemFigures | { readonly unavailable: string };
export type PublishReply = { readonly published: boolean } | { readonly unavailable: string };
