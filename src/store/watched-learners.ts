/**
 * Learners of a single Redis, read and written by plain commands. What is read is watched; what is written is one
 * transaction, which Redis refuses where somebody wrote any of it meanwhile. Redis spends a third of the time on this
 * that it spends on the scripts of learner-store.ts (docs/adr/0019-plain-commands.md), which decide for each learner
 * alone: they follow where a transaction is refused.
 */
import type { Redis } from 'ioredis';
import { countAccepted } from './accepted.js';
import { type Replies, readReplies, sendBundle, transactionOf } from './bundle.js';
import { commandTimeoutMs, whileRedisServes } from './client.js';
import { type CommandBytes, createCommandBytes } from './command-bytes.js';
import { type BucketCounts, bucketOf, createBucketCounts } from './id-buckets.js';
import {
  acceptedKey,
  idBucketKey,
  idCountKey,
  idQueueKey,
  itemTracesKey,
  learnerKey,
  markerKey,
  outboxKey,
  partitionPrefix,
} from './keys.js';
import { encodeItem, encodeLearner, encodeSkill } from './learner-codec.js';
import {
  type CommitStatus,
  generationsBegun,
  isRepeated,
  itemsOf,
  type LearnerCommit,
  type LearnerQuery,
  type LoadedLearner,
  learnerField,
  loadedLearner,
  type Placed,
  skillField,
} from './learner-records.js';
import { readReplicated, replicated } from './replication.js';

export interface WatchedLearners {
  /**
   * Reads learners in one round trip and watches them from now on; event ids are looked up.
   * @returns null where it has to be done by scripts
   */
  load(queries: readonly LearnerQuery[]): Promise<LoadedLearner[] | null>;
  /** Writes learners that were loaded before: all that are not refused one by one, or none. */
  commit(commits: readonly LearnerCommit[]): Promise<CommitStatus[]>;
}

/** What is known of a partition, as of the moment at which its learners were loaded. */
interface PartitionFacts {
  /** How many rows its outbox takes. */
  room: number;
  readonly restored: boolean;
}

/** Room for what a learner takes, most of the time. */
const loadBytes = 384;
const commitBytes = 1536;

/** What belongs to a connection and not to the client: behind a new one there may be another Redis, or an empty one. */
interface Connection {
  readonly buckets: BucketCounts;
  /** The try that began last: what others watched is gone once it reads. */
  newest: object | null;
}

const connections = new WeakMap<Redis['stream'], Connection>();

function connectionOf(client: Redis): Connection {
  let connection = connections.get(client.stream);
  if (connection === undefined) {
    connection = { buckets: createBucketCounts(client), newest: null };
    connections.set(client.stream, connection);
  }
  return connection;
}

/**
 * Begins a try. One at a time over a connection, and no other transaction beside it: what is watched belongs to the
 * connection, and the next transaction ends it.
 */
export function watchLearners(client: Redis, outboxBound: number): WatchedLearners {
  const { stream } = client;
  const connection = connectionOf(client);
  const { buckets } = connection;
  const facts = new Map<number, PartitionFacts>();
  let isFirst = true;
  // A new connection watches nothing of what the old one did, and a newer try lets go what an abandoned one did.
  const isWatching = (): boolean => client.stream === stream && connection.newest === facts;
  connection.newest = facts;

  async function load(queries: readonly LearnerQuery[]): Promise<LoadedLearner[] | null> {
    const partitions = [...new Set(queries.map(({ partition }) => partition))];
    await buckets.know(partitions);
    if (!isWatching()) return null;
    buckets.grow(partitions);
    const request = createCommandBytes(loadBytes * (queries.length + 1));
    const silent = isFirst ? 2 : 1;
    // What a try before this one watched and did not write.
    if (isFirst) request.command(1, 'UNWATCH');
    isFirst = false;
    writeWatch(request, queries, partitions);
    writeFacts(request, partitions);
    for (const query of queries) writeQuery(request, query, buckets);
    const replies = await whileRedisServes(sendBundle(client, request, commandTimeoutMs).then(readReplies));
    replies.skip(silent);
    if (!takeFacts(replies, partitions)) return null;
    return queries.map((query) => readLearner(replies, query));
  }

  /** @returns whether the buckets of ids are as many as was thought */
  function takeFacts(replies: Replies, partitions: readonly number[]): boolean {
    const stored = replies.list();
    let asExpected = true;
    partitions.forEach((partition, i) => {
      const expected = buckets.of(partition);
      buckets.note(partition, stored[2 * i + 1] as Buffer | null);
      asExpected &&= buckets.of(partition) === expected;
      facts.set(partition, { room: outboxBound - replies.number(), restored: stored[2 * i] !== null });
    });
    return asExpected;
  }

  function refusalOf({ partition, rows }: LearnerCommit): CommitStatus | null {
    const known = facts.get(partition) as PartitionFacts;
    if (known.room <= 0) return 'outbox-full';
    // Also for a learner who is there again: event ids may not be.
    if (!known.restored) return 'not-restored';
    known.room -= rows.length;
    return null;
  }

  async function commit(commits: readonly LearnerCommit[]): Promise<CommitStatus[]> {
    const statuses = commits.map((one) => refusalOf(one) ?? 'committed');
    const accepted = commits.filter((_, i) => statuses[i] === 'committed');
    if (accepted.length === 0 || (await write(accepted))) return statuses;
    return statuses.map((status) => (status === 'committed' ? 'conflict' : status));
  }

  /** @returns whether it was done */
  async function write(commits: readonly LearnerCommit[]): Promise<boolean> {
    if (!isWatching()) return false;
    const request = createCommandBytes(commitBytes * commits.length);
    request.command(1, 'MULTI');
    for (const one of commits) writeCommit(request, one, buckets);
    writeAccepted(request, commits);
    const queues = idsByPartition(commits);
    for (const [partition, ids] of queues) {
      request.command(ids.length + 2, 'RPUSH');
      request.text(idQueueKey(partition));
      for (const id of ids) request.bytes(id);
    }
    request.command(1, 'EXEC');
    const results = await whileRedisServes(sendBundle(client, request, commandTimeoutMs).then(transactionOf));
    if (results === null) return false;
    const lengths = results.slice(results.length - queues.size);
    [...queues.keys()].forEach((partition, i) => {
      buckets.noteIds(partition, Number(lengths[i]));
    });
    return true;
  }

  return {
    load: (queries) =>
      readReplicated(
        client,
        prefixOf(queries),
        () => load(queries),
        (loaded) => loaded?.some(isRepeated) ?? false,
      ),
    commit: (commits) =>
      replicated(
        client,
        prefixOf(commits),
        () => commit(commits),
        (statuses) => statuses.includes('committed'),
      ),
  };
}

const prefixOf = ([first]: readonly Placed[]): string => partitionPrefix((first as Placed).partition);

/** The learners; and what their new ids and their first answers depend on. Items are written with their learner. */
function writeWatch(
  request: CommandBytes,
  queries: readonly LearnerQuery[],
  partitions: readonly number[],
): void {
  request.command(1 + queries.length + 2 * partitions.length, 'WATCH');
  for (const { partition, tenant, userId } of queries) request.text(learnerKey(partition, tenant, userId));
  writePartitionKeys(request, partitions);
}

function writePartitionKeys(request: CommandBytes, partitions: readonly number[]): void {
  for (const partition of partitions) {
    request.text(markerKey(partition));
    request.text(idCountKey(partition));
  }
}

function writeFacts(request: CommandBytes, partitions: readonly number[]): void {
  request.command(1 + 2 * partitions.length, 'MGET');
  writePartitionKeys(request, partitions);
  for (const partition of partitions) {
    request.command(2, 'XLEN');
    request.text(outboxKey(partition));
  }
}

function writeQuery(request: CommandBytes, query: LearnerQuery, buckets: BucketCounts): void {
  const { partition, tenant, userId, skillIds, eventIds, itemIds } = query;
  request.command(3 + skillIds.length, 'HMGET');
  request.text(learnerKey(partition, tenant, userId));
  request.text(learnerField);
  for (const skillId of skillIds) request.text(skillField(skillId));
  for (const id of eventIds) {
    request.command(3, 'HGET');
    request.text(idBucketKey(partition, bucketOf(id, buckets.of(partition))));
    request.bytes(id);
  }
  if (itemIds.length === 0) return;
  for (const parity of [0, 1]) {
    request.command(2 + itemIds.length, 'HMGET');
    request.text(itemTracesKey(partition, parity, tenant, userId));
    for (const id of itemIds) request.bytes(id);
  }
}

function readLearner(replies: Replies, query: LearnerQuery): LoadedLearner {
  const records = replies.list();
  const firstAnswers = query.eventIds.map(replies.bytes);
  const withItems = query.itemIds.length > 0;
  const even = withItems ? replies.list() : [];
  const odd = withItems ? replies.list() : [];
  return loadedLearner(query, { records, firstAnswers, even, odd, importLine: 0 });
}

function writeCommit(request: CommandBytes, commit: LearnerCommit, buckets: BucketCounts): void {
  const { partition, tenant, userId, learner, skills } = commit;
  request.command(4 + 2 * skills.length, 'HSET');
  request.text(learnerKey(partition, tenant, userId));
  request.text(learnerField);
  request.bytes(encodeLearner(learner));
  for (const [skillId, skill] of skills) {
    request.text(skillField(skillId));
    request.bytes(encodeSkill(skill));
  }
  for (const row of commit.rows) {
    request.command(5, 'XADD');
    request.text(outboxKey(partition));
    request.text('*');
    request.text('r');
    request.text(row);
  }
  for (const [id, answer] of commit.firstAnswers) {
    request.command(4, 'HSET');
    request.text(idBucketKey(partition, bucketOf(id, buckets.of(partition))));
    request.bytes(id);
    request.bytes(answer);
  }
  writeItems(request, commit);
}

function writeItems(request: CommandBytes, commit: LearnerCommit): void {
  const { partition, tenant, userId } = commit;
  for (const parity of generationsBegun(commit)) {
    request.command(2, 'DEL');
    request.text(itemTracesKey(partition, parity, tenant, userId));
  }
  for (const parity of [0, 1]) {
    const items = itemsOf(commit, parity);
    if (items.length === 0) continue;
    request.command(2 + 2 * items.length, 'HSET');
    request.text(itemTracesKey(partition, parity, tenant, userId));
    for (const [id, item] of items) {
      request.bytes(id);
      request.bytes(encodeItem(item.trace));
    }
  }
}

/** One command for all answers of a tenant and day in a partition. */
function writeAccepted(request: CommandBytes, commits: readonly LearnerCommit[]): void {
  for (const [partition, fields] of countAccepted(commits)) {
    for (const [field, count] of fields) {
      request.command(4, 'HINCRBY');
      request.text(acceptedKey(partition));
      request.text(field);
      request.text(`${count}`);
    }
  }
}

/** The ids that are taken, in the order of their answers. */
function idsByPartition(commits: readonly LearnerCommit[]): Map<number, Buffer[]> {
  const ids = new Map<number, Buffer[]>();
  for (const { partition, firstAnswers } of commits) {
    if (firstAnswers.length === 0) continue;
    const taken = ids.get(partition) ?? [];
    for (const [id] of firstAnswers) taken.push(id);
    ids.set(partition, taken);
  }
  return ids;
}
