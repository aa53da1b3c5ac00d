/**
 * Optimistic commits of learners: single answers, batches, imports and retries. What is read is watched; what is written is
 * one transaction, which Redis refuses where somebody wrote any of it meanwhile (docs/adr/0033-one-commit-path.md).
 */
import { ApiError } from '../../errors.js';
import { distinct } from '../../lists.js';
import { whileRedisServes } from '../redis/client.js';
import { type CommandBytes, createCommandBytes } from '../redis/command-bytes.js';
import type { HotConnection } from '../redis/hot-connection.js';
import { waitKey } from '../redis/keys.js';
import { notSafe, waitMs } from '../redis/replication.js';
import { outcomeOf, type Reply, readReplies } from '../redis/replies.js';
import {
  areRepeated,
  askedOf,
  readLearner,
  readMarks,
  readPartitions,
  writeCommits,
  writeMarks,
  writePartitions,
  writeQuery,
  writeWatch,
} from './learner-commands.js';
import type { CommitStatus, LearnerCommit, LearnerQuery, LoadedBatch } from './learner-records.js';

export interface WatchOptions {
  /** Most rows that a partition's outbox may hold. */
  readonly outboxBound: number;
  /** Hash of the file being imported, or null. */
  readonly importId: string | null;
}

/** Nothing that the try has read is watched any more, and nothing of it was written. */
export class UnwatchedError extends Error {}

/** A partition as of the load of its learners. */
interface PartitionFacts {
  /** How many rows its outbox takes. */
  room: number;
  readonly restored: boolean;
}

interface Try {
  readonly hot: HotConnection;
  /** Socket over which the try watches. */
  readonly socket: object;
  readonly options: WatchOptions;
  readonly partitions: Map<number, PartitionFacts>;
  isFirstLoad: boolean;
}

/** By socket the try that began last: its reads end what others watched. */
const newest = new WeakMap<object, Try>();

export type WatchedLearners = ReturnType<typeof watchLearners>;

/**
 * Starts a try at a batch. One at a time over a connection, and no other transaction beside it: what is watched belongs to
 * the connection, and the next transaction ends it.
 */
export function watchLearners(hot: HotConnection, options: WatchOptions) {
  const socket = hot.current();
  const one: Try = { hot, socket, options, partitions: new Map(), isFirstLoad: true };
  newest.set(socket, one);
  return {
    /**
     * Reads learners, in the order of the queries, in one round trip, and watches them from now on.
     * @throws ApiError UNAVAILABLE
     * @throws UnwatchedError where another try has to start
     */
    load: (queries: readonly LearnerQuery[]) => load(one, queries),
    /**
     * Writes learners that were loaded before: all that are not refused one by one, or none.
     * @throws ApiError UNAVAILABLE: whether they are written is not known
     * @throws UnwatchedError where none is, and another try has to start
     */
    commit: (commits: readonly LearnerCommit[]) => commit(one, commits),
  };
}

/** A new connection watches nothing of what the old one did, and a newer try ended what this one watched. */
const isWatching = (one: Try): boolean => one.hot.current() === one.socket && newest.get(one.socket) === one;

/** Bytes that a learner takes, most of the time. */
const loadBytes = 384;
const commitBytes = 1536;

async function load(one: Try, queries: readonly LearnerQuery[]): Promise<LoadedBatch> {
  const { hot, options } = one;
  if (!isWatching(one)) throw new UnwatchedError('The connection is another one by now');
  const partitions = distinct(queries.map(({ partition }) => partition));
  const tenants = hot.reachesAll ? distinct(queries.map(({ tenant }) => tenant)) : null;
  const request = createCommandBytes(loadBytes * (queries.length + 1));
  // What an earlier try watched and did not write.
  if (one.isFirstLoad) request.whole('UNWATCH');
  one.isFirstLoad = false;
  writeWatch(request, queries, partitions);
  const silent = request.count();
  writePartitions(request, partitions);
  if (tenants !== null) writeMarks(request, tenants);
  const asked = askedOf(queries);
  for (const query of asked) writeQuery(request, query, options.importId);
  const replies = await exchange(hot, request, readReplies);
  replies.skip(silent);
  for (const { partition, restored, rows } of readPartitions(replies, partitions))
    one.partitions.set(partition, { restored, room: options.outboxBound - rows });
  const marks = tenants && readMarks(replies, tenants);
  const learners = asked.map((query) => readLearner(replies, query, options.importId));
  if (hot.waitReplicas() > 0 && areRepeated(queries, learners)) await confirmRead(hot, queries);
  return { learners, marks };
}

async function commit(one: Try, commits: readonly LearnerCommit[]): Promise<CommitStatus[]> {
  const statuses = commits.map((commit) => refusalOf(one, commit) ?? 'committed');
  const accepted = commits.filter((_, i) => statuses[i] === 'committed');
  if (accepted.length === 0 || (await write(one, accepted))) return statuses;
  return statuses.map((status) => (status === 'committed' ? 'conflict' : status));
}

function refusalOf({ partitions }: Try, { partition, rows }: LearnerCommit): CommitStatus | null {
  const facts = partitions.get(partition) as PartitionFacts;
  if (facts.room <= 0) return 'outbox-full';
  // Also for a learner who is there again: others may not be.
  if (!facts.restored) return 'not-restored';
  facts.room -= rows.length;
  return null;
}

/** @returns whether the transaction was done */
async function write(one: Try, commits: readonly LearnerCommit[]): Promise<boolean> {
  if (!isWatching(one)) return false;
  const { hot, options } = one;
  const request = createCommandBytes(commitBytes * commits.length);
  request.whole('MULTI');
  writeCommits(request, commits, options.importId);
  const written = request.count() - 1;
  request.whole('EXEC');
  const wanted = hot.waitReplicas();
  if (wanted > 0) writeWait(request, wanted);
  const { done, reached } = await exchange(hot, request, (replies) => outcomeOf(written, replies));
  if (done && wanted > 0) confirm(hot, reached, wanted);
  return done;
}

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

const writeWait = (request: CommandBytes, replicas: number): void =>
  request.whole('WAIT', `${replicas}`, `${waitMs}`);

/**
 * What others wrote may not be confirmed before replicas have it. Since Redis 7.2 WAIT answers for own writes alone, so
 * there is one.
 */
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

/**
 * WAIT answers for what was written over this connection. Where the master was replaced meanwhile, its replicas are not
 * those of the new one.
 */
function confirm(hot: HotConnection, reached: number, wanted: number): void {
  if (reached < wanted || !hot.isMaster()) throw notSafe();
}
