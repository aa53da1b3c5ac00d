/** What crosses the boundary to the threads that replay learners. */

export interface RestoreTask {
  readonly kind: 'restore';
  /** Attempt rows of whole learners, one after the other, a line feed behind each. */
  readonly rows: Uint8Array;
  readonly partitions: number;
  /** First answers that arrived at this Unix second or later are remembered by their ids. */
  readonly idsFrom: number;
  /** Buckets of event ids by partition. */
  readonly buckets: Readonly<Record<number, number>>;
}

export interface RestoreReply {
  readonly learners: number;
  readonly answers: number;
  /** Names of some learners whose rows are not without gaps and doubles. */
  readonly broken: readonly string[];
  readonly brokenCount: number;
}

export type RebuildReply<Reply> = Reply | { readonly unavailable: string };
