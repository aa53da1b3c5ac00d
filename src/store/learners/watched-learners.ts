/** Watches learners while they are computed, and writes all in one transaction (ADR 33). */
import { ApiError } from '../../errors.js';
import { distinct } from '../../lists.js';
import { mapRedisErrors } from '../redis/client.js';
import { type CommandEncoder, createCommandEncoder } from '../redis/command-encoder.js';
import type { HotConnection } from '../redis/hot-connection.js';
import {
  catalogueRevisionsKey,
  learnerKey,
  markerKey,
  outboxRowCountKey,
  replicationProbeKey,
  subscriptionsKey,
} from '../redis/keys.js';
import { createReplicationError, replicaTimeoutMs } from '../redis/replication.js';
import { createReplySequence, parseTransaction, type Reply } from '../redis/replies.js';
import { hasAny, idFieldsOf } from './event-ids.js';
import {
  type LearnerCommit,
  type LearnerQuery,
  type LoadedLearner,
  readLearner,
  writeCommits,
  writeQuery,
} from './learner-commands.js';

export type CommitStatus = 'committed' | 'conflict' | 'outbox-full' | 'not-restored';

export interface WatchOptions {
  readonly outboxBound: number;
  readonly importId: string | null;
}

export interface LoadedBatch {
  readonly learners: readonly LoadedLearner[];
  /** By tenant; null if not loaded. */
  readonly marks: ReadonlyMap<string, string> | null;
  readonly wanted: ReadonlyMap<string, string> | null;
}

/** The watch ended before anything was written. */
export class UnwatchedError extends Error {}

/** By socket. A newer session ends the watches of earlier ones. */
const newest = new WeakMap<object, WatchedLearners>();

const loadBytes = 384;
const commitBytes = 1536;

type PartitionFacts = { room: number; readonly isRestored: boolean };

/** One attempt to commit a batch. A connection has one session at a time. */
export class WatchedLearners {
  private readonly socket: object;
  private readonly partitions = new Map<number, PartitionFacts>();
  private isFirstLoad = true;

  constructor(
    private readonly hot: HotConnection,
    private readonly options: WatchOptions,
  ) {
    this.socket = hot.currentSocket();
    newest.set(this.socket, this);
  }

  /** On a Cluster, another node has catalogue marks and subscribed types. */
  get readsTenants(): boolean {
    return this.hot.servesAllPartitions;
  }

  /** Watches learners and loads them, in one round trip. @throws ApiError UNAVAILABLE, WatchLostError: retry */
  async load(queries: readonly LearnerQuery[]): Promise<LoadedBatch> {
    if (!this.isWatching()) throw new UnwatchedError('The connection is another one by now');
    const { importId } = this.options;
    const partitions = distinct(queries.map(({ partition }) => partition));
    const tenants = this.readsTenants ? distinct(queries.map(({ tenant }) => tenant)) : null;
    const idFields = queries.map(({ eventIds }) => idFieldsOf(eventIds));
    const request = createCommandEncoder(loadBytes * (queries.length + 1));
    this.writeWatch(request, queries, partitions);
    const silent = request.commandCount();
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
    const replies = await exchange(this.hot, request, createReplySequence);
    replies.skip(silent);
    this.noteFacts(partitions, replies.list());
    const marks = tenants && textsBy(tenants, replies.list());
    const wanted = tenants && textsBy(tenants, replies.list());
    const learners = queries.map((query, i) =>
      readLearner(replies, query, idFields[i] as readonly string[], importId),
    );
    if (this.hot.requiredReplicas() > 0 && areRepeated(queries, learners))
      await confirmRead(this.hot, queries);
    return { learners, marks, wanted };
  }

  /** @throws ApiError UNAVAILABLE: the learners may be written @throws WatchLostError: not written, retry */
  async commit(commits: readonly LearnerCommit[]): Promise<CommitStatus[]> {
    const statuses = commits.map((commit) => this.refusalOf(commit) ?? 'committed');
    const accepted = commits.filter((_, i) => statuses[i] === 'committed');
    if (accepted.length === 0 || (await this.write(accepted))) return statuses;
    return statuses.map((status) => (status === 'committed' ? 'conflict' : status));
  }

  /** A reconnect or a newer session ends the watches. */
  private isWatching(): boolean {
    return this.hot.currentSocket() === this.socket && newest.get(this.socket) === this;
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

  private noteFacts(partitions: readonly number[], found: readonly (Buffer | null)[]): void {
    partitions.forEach((partition, i) => {
      const rows = Number(found[partitions.length + i]?.toString() ?? 0);
      this.partitions.set(partition, {
        room: this.options.outboxBound - rows,
        isRestored: found[i] !== null,
      });
    });
  }

  private refusalOf({ partition, rows }: LearnerCommit): CommitStatus | null {
    const facts = this.partitions.get(partition) as PartitionFacts;
    if (facts.room <= 0) return 'outbox-full';
    // Even if this learner exists: others may be missing.
    if (!facts.isRestored) return 'not-restored';
    facts.room -= rows.length;
    return null;
  }

  private async write(commits: readonly LearnerCommit[]): Promise<boolean> {
    if (!this.isWatching()) return false;
    const request = createCommandEncoder(commitBytes * commits.length);
    request.writeCommand('MULTI');
    writeCommits(request, commits, this.options.importId);
    const written = request.commandCount() - 1;
    request.writeCommand('EXEC');
    const wanted = this.hot.requiredReplicas();
    if (wanted > 0) writeWait(request, wanted);
    const { isCommitted, replicas } = await exchange(this.hot, request, (replies) =>
      parseTransaction(written, replies),
    );
    if (isCommitted && wanted > 0) confirm(this.hot, replicas, wanted);
    return isCommitted;
  }
}

const textsBy = (names: readonly string[], found: readonly (Buffer | null)[]): Map<string, string> =>
  new Map(names.map((name, i) => [name, found[i]?.toString() ?? '']));

/** @throws WatchLostError if Redis executed nothing and another server has the learners */
async function exchange<Result>(
  hot: HotConnection,
  request: CommandEncoder,
  read: (replies: readonly Reply[]) => Result,
): Promise<Result> {
  try {
    return await mapRedisErrors(hot.send(request).then(read));
  } catch (error) {
    if (error instanceof ApiError && (await hot.closeIfMoved(error.cause)))
      throw new UnwatchedError('These learners are elsewhere by now');
    throw error;
  }
}

/** A repeated event id confirms an earlier write, which replicas may not have. */
const areRepeated = (queries: readonly LearnerQuery[], loaded: readonly LoadedLearner[]): boolean =>
  loaded.some(({ ids }, i) => hasAny(ids, queries[i]?.eventIds ?? []));

const writeWait = (request: CommandEncoder, replicas: number): void =>
  request.writeCommand('WAIT', `${replicas}`, `${replicaTimeoutMs}`);

/** Since Redis 7.2, WAIT covers only writes of its connection: this one writes too. */
async function confirmRead(hot: HotConnection, [first]: readonly LearnerQuery[]): Promise<void> {
  const request = createCommandEncoder(loadBytes);
  request.writeCommand('SET', replicationProbeKey((first as LearnerQuery).partition), '');
  const wanted = hot.requiredReplicas();
  writeWait(request, wanted);
  const reached = await exchange(hot, request, ([set, wait]) => {
    if (set instanceof Error) throw set;
    return typeof wait === 'number' ? wait : 0;
  });
  confirm(hot, reached, wanted);
}

/** After a failover, WAIT did not count replicas of the new master. */
function confirm(hot: HotConnection, reached: number, wanted: number): void {
  if (reached < wanted || !hot.isMaster()) throw createReplicationError();
}
