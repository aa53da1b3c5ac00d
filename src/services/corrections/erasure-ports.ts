/** What erasing a learner needs of Redis and ClickHouse, beside carrying out its correction. */
import type { OutboxId } from '../../contracts/outbox-ids.js';
import type { JournalEntry } from '../../store/outbox/journal.js';
import type { CorrectedRows } from './correction-ports.js';

/** An erasure that is not done. */
export interface OpenErasure {
  readonly id: string;
  readonly tenant: string;
  readonly userId: string;
  readonly partition: number;
  /** Unix milliseconds on Redis' clock. */
  readonly requestedAt: number;
  /** Outbox id of its correction. */
  readonly correction: string;
  readonly goalAt: number;
  /** What the first step took out of Redis. */
  readonly removed: { readonly records: number; readonly items: number };
  /** What its places held, by their names; null until the correction was carried out. */
  readonly before: Readonly<Record<string, number>> | null;
}

/** What is kept of an erasure that is done: everything but whose it was. */
export interface ErasureReceipt {
  readonly id: string;
  readonly tenant: string;
  readonly requestedAt: number;
  readonly doneAt: number;
  readonly removed: OpenErasure['removed'];
  readonly before: Readonly<Record<string, number>>;
  readonly after: Readonly<Record<string, number>>;
  readonly proof: ErasureProof;
}

export interface ErasureProof {
  /** One row a place: what is left there. */
  readonly query: string;
  /** Without the learner, whom only the caller knows. */
  readonly parameters: Readonly<Record<string, string | number>>;
}

/** `open`: the learner has nothing new since an erasure that is not done, and this is its id. */
export type BegunErasure =
  | { readonly status: 'begun' | 'open'; readonly id: string }
  | { readonly status: 'absent' | 'full' | 'emptied' };

/** Erasures in Redis. @throws ApiError UNAVAILABLE */
export interface ErasureStore {
  /** Erases the learner's states and orders the rest, in one step. */
  begin(tenant: string, userId: string): Promise<BegunErasure>;
  find(id: string): Promise<OpenErasure | null>;
  /** All that are not done. */
  open(): Promise<OpenErasure[]>;
  /** Whether it is somebody's turn to take masked rows off the disk: once a day. */
  takeDailyTurn(): Promise<boolean>;
  /** Whether it is somebody's turn to look for late rows: once an hour. */
  takeHourlyTurn(): Promise<boolean>;
  /** Forgets an erasure that is done, and whose it was. */
  close(erasure: OpenErasure): Promise<void>;
}

/** What else of a learner is on its way through Redis. */
export interface ErasureLeftovers {
  /** Removes goals, forecasts and refused rows of the ended histories that wait for ClickHouse. */
  removeWaiting(rows: readonly CorrectedRows[]): Promise<void>;
  /** Forgets which of their tenants' rare skills the learners answered. */
  forgetSkills(rows: readonly CorrectedRows[]): Promise<void>;
  /** Removes the marks of imports. @returns how many of each one's have to stay, because their imports run */
  removeMarks(rows: readonly CorrectedRows[]): Promise<number[]>;
}

/** Who was erased in the last days, without saying whom. */
export interface EndedLearner {
  readonly partition: number;
  /** contracts/learner-name.ts */
  readonly hash: string;
  readonly tenant: string;
  /** Unix milliseconds on Redis' clock. */
  readonly at: number;
  readonly goalAt: number;
  /** Rows of ended histories have a lower id: those of entries before the last erasure's correction. */
  readonly below: OutboxId;
  /** How often it was looked for what came late. */
  readonly looks: number;
  /** As it is stored. */
  readonly text: string;
}

/** @throws ApiError UNAVAILABLE */
export interface EndedHistories {
  all(): Promise<EndedLearner[]>;
  /** Notes a look, and forgets the learner unless told to keep. One who was erased again meanwhile stays as they are. */
  looked(ended: EndedLearner, keep: boolean): Promise<void>;
  /** Entries that tell of histories that are over. */
  lateAmong(entries: readonly JournalEntry[]): Promise<JournalEntry[]>;
}

/** The places of erasures in ClickHouse. Each learner may be given once. */
export interface ErasureWarehouse {
  /** Deletes what came from elsewhere than the outbox. */
  removeLate(rows: readonly CorrectedRows[]): Promise<void>;
  /** Which of the erased learners have rows, of whichever history, in the tables that `removeLate` deletes from. */
  findAgain(ended: readonly EndedLearner[]): Promise<{ hash: string; userId: string }[]>;
  /** Asks what the proving query asks. @returns what is left of each one's history, by place */
  prove(rows: readonly CorrectedRows[]): Promise<Record<string, number>[]>;
  /** Begins to take what was deleted off the disk. */
  purge(): Promise<void>;
  proofOf(rows: CorrectedRows): ErasureProof;
  keep(receipts: readonly ErasureReceipt[]): Promise<void>;
  /** Null for an erasure that is not done, or not there. */
  find(tenant: string, id: string): Promise<ErasureReceipt | null>;
}
