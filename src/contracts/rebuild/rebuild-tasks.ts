import type { SkillEntry } from '../../domain/catalogue/catalogue.js';
import type { GoalChange, RetractedAnswer, SkillChange } from '../journal/journal.js';
import type { GroupSetting, Profile } from '../learners/groups.js';
import type { LearnerId } from '../learners/learner-name.js';

export type GoalRecord = GoalChange & { readonly updatedAt: number };
export type ProfileRecord = Profile & LearnerId & { readonly updatedAt: number };

export interface GroupRecord extends GroupSetting {
  readonly tenant: string;
  readonly groupId: string;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface MembershipRecord extends LearnerId {
  readonly groupId: string;
  readonly joinedAt: number;
}

export type CatalogueRecord = SkillChange & SkillEntry;

/** Rejects late repeats of a retracted answer. */
export type RetractedEvent = Pick<RetractedAnswer, 'tenant' | 'userId' | 'eventId' | 'firstAnswer'>;

export interface AnsweredSkill {
  readonly skillId: string;
  readonly userIds: readonly string[];
}

export interface ItemCountRecord {
  readonly itemId: string;
  readonly answers: number;
  readonly right: number;
  readonly expected: number;
}

export interface DailyAnswers {
  readonly partition: number;
  readonly tenant: string;
  /** UTC day of arrival since 1970. */
  readonly day: number;
  readonly answers: number;
}

/**
 * Whole learners, ordered by tenant, user and number. A line is an attempt row with an empty last column, or a
 * snapshot: null columns, and in the last one the state that the learner's next rows continue.
 */
export type LearnerRows = Uint8Array;

interface Task {
  readonly rows: LearnerRows;
  readonly partitions: number;
}

export interface RestoreTask extends Task {
  readonly kind: 'restore';
  /** Unix seconds. Event ids of later answers are restored. */
  readonly idsFromSecond: number;
}

export interface CompareTask extends Task {
  readonly kind: 'compare';
  /** Unordered; may repeat some of `rows`. */
  readonly pendingRows: readonly string[];
  /** Learners in Redis: one without rows is a difference. */
  readonly expectedLearners: readonly LearnerId[];
}

interface Reply {
  readonly learners: number;
  readonly answers: number;
}

export interface RestoreReply extends Reply {
  /** Examples of learners with gaps or duplicates in their rows. */
  readonly brokenLearners: readonly string[];
  readonly brokenCount: number;
}

export interface CompareReply extends Reply {
  readonly differences: readonly { readonly learner: string; readonly what: string }[];
  /** Learners with more answers in Redis than rows. */
  readonly learnersAhead: readonly LearnerId[];
}

export type RebuildReply<Of extends Reply> = Of | { readonly unavailable: string };
