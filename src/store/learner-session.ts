/** One try at a batch: its learners are read, and what became of them is written. */
import { isCluster, type RedisClient } from './client.js';
import type { CommitStatus, LearnerCommit, LearnerQuery, LoadedLearner } from './learner-records.js';
import { commitLearners, loadLearners } from './learner-store.js';
import { watchLearners } from './watched-learners.js';

export interface LearnerSession {
  /** Reads learners, in the order of the queries. @throws ApiError UNAVAILABLE */
  load(queries: readonly LearnerQuery[]): Promise<LoadedLearner[]>;
  /** Writes learners that were loaded before, each as its status says. @throws ApiError UNAVAILABLE */
  commit(commits: readonly LearnerCommit[]): Promise<CommitStatus[]>;
}

export interface SessionOptions {
  /** Hash of the file being imported, or null. */
  readonly importId: string | null;
  /** Whether event ids must be looked up. */
  readonly withIds: boolean;
  readonly outboxBound: number;
  /** Whether nobody else is expected to write these learners, for then plain commands do. */
  readonly undisturbed: boolean;
}

export function openLearners(client: RedisClient, options: SessionOptions): LearnerSession {
  const { importId, withIds, outboxBound, undisturbed } = options;
  // A transaction stays on one node of a Cluster, and what it says of one learner says it of all.
  const plain = undisturbed && importId === null && !isCluster(client);
  let watched = plain ? watchLearners(client, outboxBound) : null;
  return {
    load: async (queries) => {
      const loaded = (await watched?.load(queries)) ?? null;
      if (loaded !== null) return loaded;
      watched = null;
      return loadLearners(client, queries, importId, withIds);
    },
    commit: (commits) =>
      watched === null ? commitLearners(client, commits, importId, outboxBound) : watched.commit(commits),
  };
}
