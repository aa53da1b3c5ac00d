/** All that is stored about one learner, told as records; what each port leaves out, another one tells. */
import type { LearnerState } from '../../domain/base/types.js';
import type { StoredAttempts, WaitingAttempts } from './attempt-ports.js';

/** One line of an export: its `type`, and fields whose names are told in snake_case. */
export interface ToldRecord {
  readonly type: string;
  readonly [field: string]: unknown;
}

export interface ToldLearner {
  readonly learner: LearnerState;
  readonly records: readonly ToldRecord[];
}

/** What Redis holds of a learner beside answers. @throws ApiError UNAVAILABLE */
export interface LearnerRecords {
  /**
   * The learner's states, skills, items and goal, as of one moment each; null for who has no counted answer and never
   * had a goal.
   */
  state(tenant: string, userId: string): Promise<ToldLearner | null>;
  /** What is remembered of event ids; nothing of those that are forgotten. */
  remembered(tenant: string, userId: string, eventIds: readonly string[]): Promise<readonly ToldRecord[]>;
  /** Changes of the goal and served forecasts that ClickHouse does not have yet. */
  waiting(tenant: string, userId: string): AsyncIterable<readonly ToldRecord[]>;
}

/** The learner's rows in ClickHouse beside answers. @throws what ClickHouse says */
export interface LearnerTables {
  rows(tenant: string, userId: string): AsyncIterable<readonly ToldRecord[]>;
}

export interface ExportPorts {
  readonly records: LearnerRecords;
  readonly waiting: WaitingAttempts;
  readonly stored: StoredAttempts;
  readonly tables: LearnerTables;
  /** Unix milliseconds. */
  readonly now: () => number;
}
