/** What crosses the boundary between a fit and its threads; columns are shared, not copied. */
import type { AnswerLog } from '../domain/base/answer-log.js';
import type { FittedItems, ItemFigures } from '../domain/fit/prediction/served.js';

export interface ReadTask {
  readonly kind: 'read';
  readonly clickhouseUrl: string;
  readonly tenant: string;
  /** Above it a sample of the learners is read. */
  readonly maxAnswers: number;
}

export interface AnswersReply {
  readonly log: AnswerLog;
  /** By skill index. */
  readonly skillIds: readonly string[];
  /** 8 bytes per item index, place 0 being no item: items are published by their hash. */
  readonly itemHashes: Uint8Array;
  /** From the hash of each learner's id, 0 to 2^32 - 1. */
  readonly learnerHash: Uint32Array;
  /** One learner in so many was read. */
  readonly sampledOneIn: number;
}

/** Asks for what the version's fit found for items. */
export interface ItemsTask {
  readonly kind: 'items';
  readonly redisUrl: string;
  readonly tenant: string;
  readonly version: number;
  /** As in `AnswersReply`. */
  readonly itemHashes: Uint8Array;
}

export type ItemsReply = ItemFigures | { readonly unavailable: string };

export interface PublishTask {
  readonly kind: 'publish';
  readonly redisUrl: string;
  readonly tenant: string;
  readonly version: number;
  /** Version in force that the new one was compared with. */
  readonly basedOn: number;
  /** JSON of contracts/model.ts. */
  readonly model: string;
  readonly report: string;
  /** null: those of the version in force go on. */
  readonly items: FittedItems | null;
  /** As in `AnswersReply`. */
  readonly itemHashes: Uint8Array;
  /** Unix milliseconds. */
  readonly publishedAt: number;
}

/** Whether the version is in force; or why it could not be tried. */
export type PublishReply = { readonly published: boolean } | { readonly unavailable: string };
