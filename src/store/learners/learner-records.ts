/** What a batch reads and writes of learners (watched-learners.ts). */
import { randomInt } from 'node:crypto';
import type { RememberedItem } from '../../domain/tracing/item-window.js';
import { type LearnerState, newLearner, type SkillState } from '../../domain/tracing/states.js';
import type { ItemTrace } from '../../domain/tracing/traces.js';
import type { IdFields, StoredIds } from './event-ids.js';

/** What a batch reads of one learner. */
export interface LearnerQuery {
  readonly partition: number;
  readonly tenant: string;
  readonly userId: string;
  readonly skillIds: readonly string[];
  /** Hashes of event ids. */
  readonly eventIds: readonly Buffer[];
  /** Hashes of the items to look up. */
  readonly itemIds: readonly Buffer[];
}

/** The result of a query, in its order; null is absent. */
export interface LoadedLearner {
  readonly learner: LearnerState | null;
  readonly skills: readonly (SkillState | null)[];
  readonly ids: StoredIds;
  /** What is remembered of each item, perhaps from a generation that is forgotten by now. */
  readonly items: readonly (RememberedItem<ItemTrace> | null)[];
  /** Last line of the running import that was counted for this learner; 0 for none. */
  readonly importLine: number;
}

/** What was read together. */
export interface LoadedBatch {
  /** In the order of the queries. */
  readonly learners: readonly LoadedLearner[];
  /** Marks of the tenants' catalogues; null where they were not read. */
  readonly marks: ReadonlyMap<string, string> | null;
}

/** What a batch writes for one learner: all of it or nothing. */
export interface LearnerCommit {
  readonly partition: number;
  readonly tenant: string;
  readonly userId: string;
  /** With the version that is written: one above the one that was read, or anywhere for a new history. */
  readonly learner: LearnerState;
  /** Those that changed, by skill id. */
  readonly skills: readonly (readonly [string, SkillState])[];
  /** Encoded attempt rows for the outbox, in order. */
  readonly rows: readonly string[];
  /** UTC day (number since 1970) on which each row's answer arrived. */
  readonly arrivalDays: readonly number[];
  readonly ids: IdFields;
  /** Generation of items that was current before; 0 for a new learner. */
  readonly itemGeneration: number;
  /** By the hash of the item. */
  readonly items: readonly (readonly [id: Buffer, item: RememberedItem<ItemTrace>])[];
  readonly importLine: number;
}

export type CommitStatus = 'committed' | 'conflict' | 'outbox-full' | 'not-restored';

export type Placed = Pick<LearnerQuery, 'partition' | 'tenant' | 'userId'>;

/**
 * A new learner. The versions begin anywhere: after an erasure, whoever still holds a state of the history before must
 * never meet its version again, and nothing of that history is left to count on from.
 */
export const beginHistory = (): LearnerState => ({ ...newLearner, version: randomInt(2 ** 31) });

/** Field of the learner's own record in the learner hash, beside the goal's; skills stand behind a letter of their own. */
export const learnerField = 'L';
export const skillField = (skillId: string): string => `s${skillId}`;
