/** What a rebuild moves from ClickHouse to Redis, and what crosses the boundary to the threads that replay learners. */
import type { LearnerPlace } from './learner-name.js';

export interface GoalRecord extends LearnerPlace {
  /** Null: the goal was deleted. */
  readonly targetScore: number | null;
  readonly targetDate: string | null;
  /** Unix milliseconds. */
  readonly updatedAt: number;
}

export interface AnsweredSkill {
  readonly skillId: string;
  /** Some of those who answered it, as many as make it known (`learnersOfKnownSkill`). */
  readonly userIds: readonly string[];
}

export interface CatalogueRecord {
  readonly tenant: string;
  readonly skillId: string;
  readonly revision: number;
  /** Unix milliseconds. */
  readonly updatedAt: number;
  readonly name: string | null;
  readonly section: 'math' | 'rw' | null;
  readonly weight: number;
  readonly parameters: { pInit: number; pLearn: number; pGuess: number; pSlip: number } | null;
}

/** Answers on an item, from rows alone. */
export interface ItemRecord {
  readonly itemId: string;
  readonly answers: number;
  readonly right: number;
  readonly expected: number;
}

/** Stored answers of a tenant in a partition. */
export interface DayOfAnswers {
  readonly partition: number;
  readonly tenant: string;
  /** UTC day of arrival, number since 1970. */
  readonly day: number;
  readonly answers: number;
}

/** The event id of a retracted answer: a late repeat must not count it again. */
export interface RetractedId extends LearnerPlace {
  readonly eventId: string;
  /** The record that is kept under the id, in base64. */
  readonly firstAnswer: string;
}

/**
 * Rows of whole learners, in the order of tenant and user, as the threads read them: the columns of contracts/attempt-row.ts,
 * a tab, and an empty field or the snapshot that the learner's next rows follow on; a line feed behind each.
 */
export type LearnerRows = Uint8Array;

export interface RestoreTask {
  readonly kind: 'restore';
  readonly rows: LearnerRows;
  /** How many the deployment has. */
  readonly partitions: number;
  /** Event ids of answers that arrived at this Unix second or later are remembered. */
  readonly idsFrom: number;
}

export interface RestoreReply {
  readonly learners: number;
  readonly answers: number;
  /** Names of some learners whose rows have gaps or doubles. */
  readonly broken: readonly string[];
  readonly brokenCount: number;
}

export interface CompareTask {
  readonly kind: 'compare';
  readonly rows: LearnerRows;
  readonly partitions: number;
  /** Rows that wait in Redis, in no order; one may be among `rows` as well. */
  readonly waiting: readonly string[];
  /** Learners who are in Redis: one without any row differs. */
  readonly known: readonly LearnerPlace[];
}

export interface CompareReply {
  readonly learners: number;
  readonly answers: number;
  readonly differing: readonly { readonly learner: string; readonly what: string }[];
  /** Learners of whom Redis has more answers than there were rows. */
  readonly behind: readonly LearnerPlace[];
}

export type RebuildReply<Reply> = Reply | { readonly unavailable: string };
