/** What a rebuild moves from ClickHouse to Redis, and what crosses the boundary to the threads that replay learners. */
import type { SkillEntry } from '../domain/catalogue/catalogue.js';
import type { GoalChange, SkillChange, TakenBackAnswer } from './journal.js';
import type { LearnerPlace } from './learner-name.js';

/** `updatedAt`: Unix milliseconds. */
export type GoalRecord = GoalChange & { readonly updatedAt: number };
export type CatalogueRecord = SkillChange & SkillEntry;

/** The event id of a retracted answer: a late repeat must not count it again. */
export type RetractedId = Pick<TakenBackAnswer, 'tenant' | 'userId' | 'eventId' | 'firstAnswer'>;

export interface AnsweredSkill {
  readonly skillId: string;
  /** Some of those who answered it, as many as make it known (`learnersOfKnownSkill`). */
  readonly userIds: readonly string[];
}

export interface ItemRecord {
  readonly itemId: string;
  readonly answers: number;
  readonly right: number;
  readonly expected: number;
}

export interface DayOfAnswers {
  readonly partition: number;
  readonly tenant: string;
  /** UTC day of arrival, number since 1970. */
  readonly day: number;
  readonly answers: number;
}

/**
 * Rows of whole learners, in the order of tenant and user, as the threads read them: the columns of contracts/attempt-row.ts,
 * a tab, and an empty field or the snapshot that the learner's next rows follow on; a line feed behind each.
 */
export type LearnerRows = Uint8Array;

interface Task {
  readonly rows: LearnerRows;
  readonly partitions: number;
}

export interface RestoreTask extends Task {
  readonly kind: 'restore';
  /** Event ids of answers that arrived at this Unix second or later are remembered. */
  readonly idsFrom: number;
}

export interface CompareTask extends Task {
  readonly kind: 'compare';
  /** Rows that wait in Redis, in no order; one may be among `rows` as well. */
  readonly waiting: readonly string[];
  /** Learners who are in Redis: one without any row differs. */
  readonly known: readonly LearnerPlace[];
}

interface Reply {
  readonly learners: number;
  readonly answers: number;
}

export interface RestoreReply extends Reply {
  /** Names of some learners whose rows have gaps or doubles. */
  readonly broken: readonly string[];
  readonly brokenCount: number;
}

export interface CompareReply extends Reply {
  readonly differing: readonly { readonly learner: string; readonly what: string }[];
  /** Learners of whom Redis has more answers than there were rows. */
  readonly behind: readonly LearnerPlace[];
}

export type RebuildReply<Of extends Reply> = Of | { readonly unavailable: string };
