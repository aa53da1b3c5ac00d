/** Watches learners while they are computed, and writes all in one transaction (ADR 33). */
import { ApiError } from '../../errors.js';
import { distinct } from '../../lists.js';
import { mapRedisErrors } from '../redis/connection/client.js';
import type { HotConnection } from '../redis/connection/hot-connection.js';
import { createReplicationError, replicaTimeoutMs } from '../redis/connection/replication.js';
import {
  catalogueRevisionsKey,
  learnerKey,
  markerKey,
  outboxRowCountKey,
  replicationProbeKey,
  subscriptionsKey,
} from '../redis/keys.js';
import { type CommandEncoder, createCommandEncoder } from '../redis/wire/command-encoder.js';
import { createReplySequence, parseTransaction, type Reply } from '../redis/wire/replies.js';
import { hasAnyId, listIdFields } from './event-ids.js';
import {
  type LearnerCommit,
  type LearnerQuery,
  type LoadedLearner,
  parseLoadedLearner,
  writeCommits,
  writeQuery,
} from './learner-commands.js';

export type CommitStatus = 'committed' | 'conflict' | 'outbox-full' | 'not-restored';

export interface SessionOptions {
  readonly maxOutboxRows: number;
  readonly importId: string | null;
}

export interface LoadedBatch {
  readonly learners: readonly LoadedLearner[];
  /** By tenant; null if not loaded. */
  readonly catalogueMarks: ReadonlyMap<string, string> | null;
  readonly subscribedTypes: ReadonlyMap<string, string> | null;
}

/** The watch ended before anything was written. */
export class WatchLostError extends Error {}

/** By socket. A newer session ends the watches of earlier ones. */
const newestSessions = new WeakMap<object, CommitSession>();

/** Typical bytes per learner. */
const loadBytes = 384;
const commitBytes = 1536;

type PartitionState = { outboxRoom: number; readonly isRestored: boolean };

/** One attempt to commit a batch. A connection has one session at a time. */
export class CommitSession {
  private readonly socket: object;
  private readonly partitions = new Map<number, PartitionState>();
  private isFirstLoad = true;

  constructor(
    private readonly connection: HotConnection,
    private readonly options: SessionOptions,
  ) {
    this.socket = connection.currentSocket();
    newestSessions.set(this.socket, this);
  }

  /** On a Cluster, another node has catalogue marks and subscribed types. */
  get loadsTenants(): boolean {
    return this.connection.servesAllPartitions;
  }

  /** Watches learners and loads them, in one round trip. @throws ApiError UNAVAILABLE, WatchLostError: retry */
  async load(queries: readonly LearnerQuery[]): Promise<LoadedBatch> {
    if (!this.isWatching()) throw new WatchLostError('the connection was replaced');
    const { importId } = this.options;
    const partitions = distinct(queries.map(({ partition }) => partition));
    const tenants = this.loadsTenants ? distinct(queries.map(({ tenant }) => tenant)) : null;
    const idFields = queries.map(({ eventIdHashes }) => listIdFields(eventIdHashes));
    const request = createCommandEncoder(loadBytes * (queries.length + 1));
    this.writeWatch(request, queries, partitions);
    const watchReplies = request.commandCount();
    request.writeCommand(
      'MGET',
      ...partitions.map((one) => markerKey(one)),
      ...partitions.map(outboxRowCountKey),
    );
    if (tenants !== null)
      for (const key of [catalogueRevisionsKey, subscriptionsKey])
        request.writeCommand('HMGET', key, ...tenants);
    queries.forEach((query, i) => {
      writeQuery(request, query, idFields[i] as readonly string[], importId);
    });
    const replies = await exchange(this.connection, request, createReplySequence);
    replies.skip(watchReplies);
    this.setPartitionStates(partitions, replies.list());
    const catalogueMarks = tenants && toTextMap(tenants, replies.list());
    const subscribedTypes = tenants && toTextMap(tenants, replies.list());
    const learners = queries.map((query, i) =>
      parseLoadedLearner(replies, query, idFields[i] as readonly string[], importId),
    );
    if (this.connection.requiredReplicas() > 0 && hasRepeatedIds(queries, learners))
      await confirmRead(this.connection, queries);
    return { learners, catalogueMarks, subscribedTypes };
  }

  /** @throws ApiError UNAVAILABLE: the learners may be written @throws WatchLostError: not written, retry */
  async commit(commits: readonly LearnerCommit[]): Promise<CommitStatus[]> {
    const statuses = commits.map((commit) => this.findRejection(commit) ?? 'committed');
    const accepted = commits.filter((_, i) => statuses[i] === 'committed');
    if (accepted.length === 0 || (await this.write(accepted))) return statuses;
    return statuses.map((status) => (status === 'committed' ? 'conflict' : status));
  }

  /** A reconnect or a newer session ends the watches. */
  private isWatching(): boolean {
    return this.connection.currentSocket() === this.socket && newestSessions.get(this.socket) === this;
  }

  /** A learner's key covers its ids and items. A marker proves that its partition is complete. */
  private writeWatch(
    request: CommandEncoder,
    queries: readonly LearnerQuery[],
    partitions: readonly number[],
  ): void {
    // Ends watches of an earlier session.
    if (this.isFirstLoad) request.writeCommand('UNWATCH');
    this.isFirstLoad = false;
    request.command(1 + queries.length + partitions.length, 'WATCH');
    for (const { partition, tenant, userId } of queries) request.text(learnerKey(partition, tenant, userId));
    for (const partition of partitions) request.text(markerKey(partition));
  }

  private setPartitionStates(partitions: readonly number[], replies: readonly (Buffer | null)[]): void {
    partitions.forEach((partition, i) => {
      const rows = Number(replies[partitions.length + i]?.toString() ?? 0);
      this.partitions.set(partition, {
        outboxRoom: this.options.maxOutboxRows - rows,
        isRestored: replies[i] !== null,
      });
    });
  }

  /** Also reserves room in the outbox for an accepted commit. */
  private findRejection({ partition, rows }: LearnerCommit): CommitStatus | null {
    const facts = this.partitions.get(partition) as PartitionState;
    if (facts.outboxRoom <= 0) return 'outbox-full';
    // Even if this learner exists: others may be missing.
    if (!facts.isRestored) return 'not-restored';
    facts.outboxRoom -= rows.length;
    return null;
  }

  private async write(commits: readonly LearnerCommit[]): Promise<boolean> {
    if (!this.isWatching()) return false;
    const request = createCommandEncoder(commitBytes * commits.length);
    request.writeCommand('MULTI');
    writeCommits(request, commits, this.options.importId);
    const written = request.commandCount() - 1;
    request.writeCommand('EXEC');
    const required = this.connection.requiredReplicas();
    if (required > 0) writeWait(request, required);
    const { isCommitted, replicas } = await exchange(this.connection, request, (replies) =>
      parseTransaction(written, replies),
    );
    if (isCommitted && required > 0) checkReplicated(this.connection, replicas, required);
    return isCommitted;
  }
}

const toTextMap = (names: readonly string[], found: readonly (Buffer | null)[]): Map<string, string> =>
  new Map(names.map((name, i) => [name, found[i]?.toString() ?? '']));

/** @throws WatchLostError if Redis executed nothing and another server has the learners */
async function exchange<Result>(
  connection: HotConnection,
  request: CommandEncoder,
  read: (replies: readonly Reply[]) => Result,
): Promise<Result> {
  try {
    return await mapRedisErrors(connection.send(request).then(read));
  } catch (error) {
    if (error instanceof ApiError && (await connection.closeIfMoved(error.cause)))
      throw new WatchLostError('the learners moved to another node');
    throw error;
  }
}

/** A repeated event id confirms an earlier write, which replicas may not have. */
const hasRepeatedIds = (queries: readonly LearnerQuery[], loaded: readonly LoadedLearner[]): boolean =>
  loaded.some(({ ids }, i) => hasAnyId(ids, queries[i]?.eventIdHashes ?? []));

const writeWait = (request: CommandEncoder, replicas: number): void =>
  request.writeCommand('WAIT', `${replicas}`, `${replicaTimeoutMs}`);

/** Since Redis 7.2, WAIT covers only writes of its connection: this one writes too. */
async function confirmRead(connection: HotConnection, [first]: readonly LearnerQuery[]): Promise<void> {
  const request = createCommandEncoder(loadBytes);
  request.writeCommand('SET', replicationProbeKey((first as LearnerQuery).partition), '');
  const replicas = connection.requiredReplicas();
  writeWait(request, replicas);
  const reached = await exchange(connection, request, ([set, wait]) => {
    if (set instanceof Error) throw set;
    return typeof wait === 'number' ? wait : 0;
  });
  checkReplicated(connection, reached, replicas);
}

/** After a failover, WAIT did not count replicas of the new master. */
function checkReplicated(connection: HotConnection, reached: number, replicas: number): void {
  if (reached < replicas || !connection.isMaster()) throw createReplicationError();
}
