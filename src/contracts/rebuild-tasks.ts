/** What crosses the boundary to the threads that replay learners. */

/** Learners as ClickHouse has them. */
interface LearnersTask {
  /** Of an `AttemptPage` (services/rebuild/ports.ts). */
  readonly rows: Uint8Array;
  /** How many the deployment has. */
  readonly partitions: number;
}

export interface RestoreTask extends LearnersTask {
  readonly kind: 'restore';
  /** Event ids of answers that arrived at this Unix second or later are remembered. */
  readonly idsFrom: number;
}

/** A baseline that no row and no table tells, as it was taken. */
export interface TakenBaseline {
  readonly tenant: string;
  readonly userId: string;
  readonly partition: number;
  readonly total: number;
}

export interface RestoreReply {
  readonly learners: number;
  readonly answers: number;
  /** Names of some learners whose rows are not without gaps and doubles. */
  readonly broken: readonly string[];
  readonly brokenCount: number;
  /** Learners whose abilities are those of a snapshot of earlier formulas. */
  readonly keptAbilities: number;
  /** Those that were taken now. */
  readonly baselines: readonly TakenBaseline[];
}

export interface CompareTask extends LearnersTask {
  readonly kind: 'compare';
}

export interface CompareReply {
  readonly learners: number;
  readonly answers: number;
  readonly differing: readonly { readonly learner: string; readonly what: string }[];
  /** Learners of whom Redis has more answers than there were rows. */
  readonly lacking: readonly { readonly tenant: string; readonly userId: string }[];
}

export type RebuildReply<Reply> = Reply | { readonly unavailable: string };
