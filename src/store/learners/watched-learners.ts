/** Optimistic commits of learners: reads are watched, and the writes are one transaction (ADR 33). */
import { ApiError } from '../../errors.js';
import { distinct } from '../../lists.js';
import { whileRedisServes } from '../redis/client.js';
import { type CommandBytes, createCommandBytes } from '../redis/command-bytes.js';
import type { HotConnection } from '../redis/hot-connection.js';
import {
  catalogueRevisionsKey,
  learnerKey,
  markerKey,
  outboxRowsKey,
  waitKey,
  wantedEventsKey,
} from '../redis/keys.js';
import { notSafe, waitMs } from '../redis/replication.js';
import { outcomeOf, type Reply, readReplies } from '../redis/replies.js';
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
  /** Rows of a partition. */
  readonly outboxBound: number;
  /** Hash of the file being imported, or null. */
  readonly importId: string | null;
}

/** What was read together; learners are in the order of the queries. */
export interface LoadedBatch {
  readonly learners: readonly LoadedLearner[];
  /** Marks of the tenants' catalogues; null where they are not read. */
  readonly marks: ReadonlyMap<string, string> | null;
  /** Types of events that the tenants' endpoints ask for, for `isWanted`; null where they are not read. */
  readonly wanted: ReadonlyMap<string, string> | null;
}

/** Nothing that the try has read is watched any more, and nothing of it was written. */
export class UnwatchedError extends Error {}

/** By socket the try that began last: its reads end what others watched. */
const newest = new WeakMap<object, WatchedLearners>();

/** Bytes that a learner takes, most of the time. */
const loadBytes = 384;
const commitBytes = 1536;

/** `room`: rows that the outbox still takes. */
type PartitionFacts = { room: number; readonly isRestored: boolean };

/** A try at a batch. One at a time per connection: the next transaction ends what is watched. */
export class WatchedLearners {
  private readonly socket: object;
  private readonly partitions = new Map<number, PartitionFacts>();
  private isFirstLoad = true;

  constructor(
    private readonly hot: HotConnection,
    private readonly options: WatchOptions,
  ) {
    this.socket = hot.current();
    newest.set(this.socket, this);
  }

  /** Whether marks of catalogues and wanted events are read with the learners; on a Cluster they are another node's. */
  get readsTenants(): boolean {
    return this.hot.reachesAll;
  }

  /** Reads and watches learners in one round trip. @throws ApiError UNAVAILABLE, UnwatchedError: retry */
  async load(queries: readonly LearnerQuery[]): Promise<LoadedBatch> {
    if (!this.isWatching()) throw new UnwatchedError('The connection is another one by now');
    const { importId } = this.options;
    const partitions = distinct(queries.map(({ partition }) => partition));
    const tenants = this.readsTenants ? distinct(queries.map(({ tenant }) => tenant)) : null;
    const idFields = queries.map(({ eventIds }) => idFieldsOf(eventIds));
    const request = createCommandBytes(loadBytes * (queries.length + 1));
    this.writeWatch(request, queries, partitions);
    const silent = request.count();
    request.whole('MGET', ...partitions.map((one) => markerKey(one)), ...partitions.map(outboxRowsKey));
    if (tenants !== null)
      for (const key of [catalogueRevisionsKey, wantedEventsKey]) request.whole('HMGET', key, ...tenants);
    queries.forEach((query, i) => {
      writeQuery(request, query, idFields[i] as readonly string[], importId);
    });
    const replies = await exchange(this.hot, request, readReplies);
    replies.skip(silent);
    this.noteFacts(partitions, replies.list());
    const marks = tenants && textsBy(tenants, replies.list());
    const wanted = tenants && textsBy(tenants, replies.list());
    const learners = queries.map((query, i) =>
      readLearner(replies, query, idFields[i] as readonly string[], importId),
    );
    if (this.hot.waitReplicas() > 0 && areRepeated(queries, learners)) await confirmRead(this.hot, queries);
    return { learners, marks, wanted };
  }

  /**
   * Writes the loaded learners that are not refused. @throws ApiError UNAVAILABLE: they may be written
   * @throws UnwatchedError: none is written, retry
   */
  async commit(commits: readonly LearnerCommit[]): Promise<CommitStatus[]> {
    const statuses = commits.map((commit) => this.refusalOf(commit) ?? 'committed');
    const accepted = commits.filter((_, i) => statuses[i] === 'committed');
    if (accepted.length === 0 || (await this.write(accepted))) return statuses;
    return statuses.map((status) => (status === 'committed' ? 'conflict' : status));
  }

  /** A new connection watches nothing of what the old one did, and a newer try ended what this one watched. */
  private isWatching(): boolean {
    return this.hot.current() === this.socket && newest.get(this.socket) === this;
  }

  /** Watches learners, with whom ids and items are written, and markers, which say that all learners are there. */
  private writeWatch(
    request: CommandBytes,
    queries: readonly LearnerQuery[],
    partitions: readonly number[],
  ): void {
    // What an earlier try watched and did not write.
    if (this.isFirstLoad) request.whole('UNWATCH');
    this.isFirstLoad = false;
    request.command(1 + queries.length + partitions.length, 'WATCH');
    for (const { partition, tenant, userId } of queries) request.text(learnerKey(partition, tenant, userId));
    for (const partition of partitions) request.text(markerKey(partition));
  }

  /** @param found markers, then rows in the outboxes */
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
    // Also for a learner who is there again: others may not be.
    if (!facts.isRestored) return 'not-restored';
    facts.room -= rows.length;
    return null;
  }

  private async write(commits: readonly LearnerCommit[]): Promise<boolean> {
    if (!this.isWatching()) return false;
    const request = createCommandBytes(commitBytes * commits.length);
    request.whole('MULTI');
    writeCommits(request, commits, this.options.importId);
    const written = request.count() - 1;
    request.whole('EXEC');
    const wanted = this.hot.waitReplicas();
    if (wanted > 0) writeWait(request, wanted);
    const { done, reached } = await exchange(this.hot, request, (replies) => outcomeOf(written, replies));
    if (done && wanted > 0) confirm(this.hot, reached, wanted);
    return done;
  }
}

const textsBy = (names: readonly string[], found: readonly (Buffer | null)[]): Map<string, string> =>
  new Map(names.map((name, i) => [name, found[i]?.toString() ?? '']));

/** @throws UnwatchedError where nothing was done, because another Redis is to be asked */
async function exchange<Result>(
  hot: HotConnection,
  request: CommandBytes,
  read: (replies: readonly Reply[]) => Result,
): Promise<Result> {
  try {
    return await whileRedisServes(hot.send(request).then(read));
  } catch (error) {
    if (error instanceof ApiError && (await hot.leave(error.cause)))
      throw new UnwatchedError('These learners are elsewhere by now');
    throw error;
  }
}

/** Whether an event id was taken before: its result confirms a write, perhaps one that was not safe on replicas. */
const areRepeated = (queries: readonly LearnerQuery[], loaded: readonly LoadedLearner[]): boolean =>
  loaded.some(({ ids }, i) => hasAny(ids, queries[i]?.eventIds ?? []));

const writeWait = (request: CommandBytes, replicas: number): void =>
  request.whole('WAIT', `${replicas}`, `${waitMs}`);

/** Waits until replicas have what others wrote. It writes as well: since Redis 7.2 WAIT speaks for own writes alone. */
async function confirmRead(hot: HotConnection, [first]: readonly LearnerQuery[]): Promise<void> {
  const request = createCommandBytes(loadBytes);
  request.whole('SET', waitKey((first as LearnerQuery).partition), '');
  const wanted = hot.waitReplicas();
  writeWait(request, wanted);
  const reached = await exchange(hot, request, ([set, wait]) => {
    if (set instanceof Error) throw set;
    return typeof wait === 'number' ? wait : 0;
  });
  confirm(hot, reached, wanted);
}

/** Where the master was replaced meanwhile, WAIT did not count replicas of the new one. */
function confirm(hot: HotConnection, reached: number, wanted: number): void {
  if (reached < wanted || !hot.isMaster()) throw notSafe();
}
