/**
 * Learners of a batch, read and written by plain commands: single answers, batches, imports and what is tried again. What
 * is read is watched; what is written is one transaction, which Redis refuses where somebody wrote any of it meanwhile
 * (docs/adr/0033-one-commit-path.md).
 */

import { entriesOf } from '../../contracts/outbox-ids.js';
import { ApiError } from '../../errors.js';
import { byPartition } from '../../lists.js';
import { whileRedisServes } from '../redis/client.js';
import { type CommandBytes, createCommandBytes } from '../redis/command-bytes.js';
import type { HotConnection } from '../redis/hot-connection.js';
import {
  acceptedField,
  acceptedKey,
  catalogueRevisionsKey,
  eventIdsKey,
  importMarksKey,
  itemTracesKey,
  learnerKey,
  markerKey,
  outboxKey,
  outboxRowsKey,
  waitKey,
} from '../redis/keys.js';
import { notSafe, waitMs } from '../redis/replication.js';
import { outcomeOf, type Replies, type Reply, readReplies } from '../redis/replies.js';
import { decodeLearner, decodeSkill, encodeItem, encodeLearner, encodeSkill } from './learner-codec.js';
import { idFieldsOf, storedIds } from './learner-ids.js';
import {
  areRepeated,
  type CommitStatus,
  generationsBegun,
  itemsOf,
  type LearnerCommit,
  type LearnerQuery,
  type LoadedBatch,
  type LoadedLearner,
  learnerField,
  newerItem,
  skillField,
} from './learner-records.js';

/** One try at a batch. */
export interface WatchedLearners {
  /**
   * Reads learners, in the order of the queries, in one round trip, and watches them from now on.
   * @throws ApiError UNAVAILABLE
   * @throws UnwatchedError where another try has to begin
   */
  load(queries: readonly LearnerQuery[]): Promise<LoadedBatch>;
  /**
   * Writes learners that were loaded before: all that are not refused one by one, or none.
   * @throws ApiError UNAVAILABLE: whether they are written is not known
   * @throws UnwatchedError where none is, and another try has to begin
   */
  commit(commits: readonly LearnerCommit[]): Promise<CommitStatus[]>;
}

export interface WatchOptions {
  /** Most rows that a partition's outbox may hold. */
  readonly outboxBound: number;
  /** Hash of the file being imported, or null. */
  readonly importId: string | null;
}

/** Nothing that the try has read is watched any more, and nothing of it was written. */
export class UnwatchedError extends Error {}

/** What is known of a partition, as of the moment at which its learners were loaded. */
interface PartitionFacts {
  /** How many rows its outbox takes. */
  room: number;
  readonly restored: boolean;
}

/** Room for what a learner takes, most of the time. */
const loadBytes = 384;
const commitBytes = 1536;

/** By connection the try that began last: what others watched is gone once it reads. */
const newest = new WeakMap<object, object>();

/**
 * Begins a try. One at a time over a connection, and no other transaction beside it: what is watched belongs to the
 * connection, and the next transaction ends it.
 */
export function watchLearners(hot: HotConnection, { outboxBound, importId }: WatchOptions): WatchedLearners {
  const connection = hot.current();
  const facts = new Map<number, PartitionFacts>();
  let isFirst = true;
  // A new connection watches nothing of what the old one did, and a newer try lets go what an abandoned one did.
  const isWatching = (): boolean => hot.current() === connection && newest.get(connection) === facts;
  newest.set(connection, facts);

  async function load(queries: readonly LearnerQuery[]): Promise<LoadedBatch> {
    if (!isWatching()) throw new UnwatchedError('The connection is another one by now');
    const partitions = [...new Set(queries.map(({ partition }) => partition))];
    const tenants = hot.reachesAll ? [...new Set(queries.map(({ tenant }) => tenant))] : [];
    const request = createCommandBytes(loadBytes * (queries.length + 1));
    const silent = isFirst ? 2 : 1;
    // What a try before this one watched and did not write.
    if (isFirst) request.command(1, 'UNWATCH');
    isFirst = false;
    writeWatch(request, queries, partitions);
    writeFacts(request, partitions, tenants);
    const asked = queries.map((query): Asked => ({ query, idFields: idFieldsOf(query.eventIds) }));
    for (const one of asked) writeQuery(request, one, importId);
    const replies = await exchange(request, readReplies);
    replies.skip(silent);
    takeFacts(replies, partitions);
    const marks = takeMarks(replies, tenants);
    const learners = asked.map((one) => readLearner(replies, one, importId !== null));
    if (hot.waitReplicas() > 0 && areRepeated(queries, learners)) await confirmRead(queries);
    return { learners, marks };
  }

  /** @throws UnwatchedError where nothing was done, because another Redis is to be asked */
  async function exchange<Result>(
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

  function takeMarks(replies: Replies, tenants: readonly string[]): LoadedBatch['marks'] {
    if (!hot.reachesAll) return null;
    const marks = replies.list();
    return new Map(tenants.map((tenant, i) => [tenant, marks[i]?.toString() ?? '']));
  }

  /** What others wrote may not be told before replicas have it: since Redis 7.2 WAIT answers for own writes alone. */
  async function confirmRead([first]: readonly LearnerQuery[]): Promise<void> {
    const request = createCommandBytes(loadBytes);
    request.command(3, 'SET');
    request.text(waitKey((first as LearnerQuery).partition));
    request.text('');
    const wanted = hot.waitReplicas();
    writeWait(request, wanted);
    const reached = await exchange(request, ([set, wait]) => {
      if (set instanceof Error) throw set;
      return typeof wait === 'number' ? wait : 0;
    });
    confirm(reached, wanted);
  }

  /**
   * WAIT answers for what was written over this connection. A master that was replaced meanwhile has replicas to answer
   * for it, but they are none of the one that goes on.
   */
  function confirm(reached: number, wanted: number): void {
    if (reached < wanted || !hot.isMaster()) throw notSafe();
  }

  function takeFacts(replies: Replies, partitions: readonly number[]): void {
    const found = replies.list();
    partitions.forEach((partition, i) => {
      const rows = Number(found[partitions.length + i]?.toString() ?? 0);
      facts.set(partition, { room: outboxBound - rows, restored: found[i] !== null });
    });
  }

  function refusalOf({ partition, rows }: LearnerCommit): CommitStatus | null {
    const known = facts.get(partition) as PartitionFacts;
    if (known.room <= 0) return 'outbox-full';
    // Also for a learner who is there again: others may not be.
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
    for (const one of commits) {
      writeCommit(request, one);
      if (importId !== null) writeMark(request, one, importId);
    }
    for (const [partition, own] of byPartition(commits)) {
      writeRows(request, partition, own);
      writeAccepted(request, partition, own);
    }
    const written = request.count() - 1;
    request.command(1, 'EXEC');
    const wanted = hot.waitReplicas();
    if (wanted > 0) writeWait(request, wanted);
    const { done, reached } = await exchange(request, (replies) => outcomeOf(written, replies));
    if (done && wanted > 0) confirm(reached, wanted);
    return done;
  }

  return { load, commit };
}

function writeWait(request: CommandBytes, replicas: number): void {
  request.command(3, 'WAIT');
  request.text(`${replicas}`);
  request.text(`${waitMs}`);
}

/** The learners; and the markers, which tell that they are all there. Ids and items are written with their learner. */
function writeWatch(
  request: CommandBytes,
  queries: readonly LearnerQuery[],
  partitions: readonly number[],
): void {
  request.command(1 + queries.length + partitions.length, 'WATCH');
  for (const { partition, tenant, userId } of queries) request.text(learnerKey(partition, tenant, userId));
  for (const partition of partitions) request.text(markerKey(partition));
}

function writeFacts(request: CommandBytes, partitions: readonly number[], tenants: readonly string[]): void {
  request.command(1 + 2 * partitions.length, 'MGET');
  for (const partition of partitions) request.text(markerKey(partition));
  for (const partition of partitions) request.text(outboxRowsKey(partition));
  if (tenants.length === 0) return;
  request.command(2 + tenants.length, 'HMGET');
  request.text(catalogueRevisionsKey);
  for (const tenant of tenants) request.text(tenant);
}

/** A query with the fields that tell of its event ids. */
interface Asked {
  readonly query: LearnerQuery;
  readonly idFields: readonly string[];
}

function writeQuery(request: CommandBytes, { query, idFields }: Asked, importId: string | null): void {
  const { partition, tenant, userId, skillIds, itemIds } = query;
  request.command(3 + skillIds.length, 'HMGET');
  request.text(learnerKey(partition, tenant, userId));
  request.text(learnerField);
  for (const skillId of skillIds) request.text(skillField(skillId));
  if (importId !== null) {
    request.command(3, 'HMGET');
    request.text(importMarksKey(partition, importId));
    request.text(learnerKey(partition, tenant, userId));
  }
  if (idFields.length > 0) {
    request.command(2 + idFields.length, 'HMGET');
    request.text(eventIdsKey(partition, tenant, userId));
    for (const field of idFields) request.text(field);
  }
  if (itemIds.length === 0) return;
  for (const parity of [0, 1]) {
    request.command(2 + itemIds.length, 'HMGET');
    request.text(itemTracesKey(partition, parity, tenant, userId));
    for (const id of itemIds) request.bytes(id);
  }
}

/** @throws Error for records that this version of the service cannot read */
function readLearner(replies: Replies, { query, idFields }: Asked, withImport: boolean): LoadedLearner {
  const [own, ...skills] = replies.list();
  const mark = withImport ? replies.list()[0] : null;
  const ids = storedIds(idFields, idFields.length > 0 ? replies.list() : []);
  const [even, odd] = query.itemIds.length > 0 ? [replies.list(), replies.list()] : [[], []];
  const learner = own ? decodeLearner(own) : null;
  const generation = learner?.items.generation ?? 0;
  return {
    learner,
    skills: skills.map((skill) => skill && decodeSkill(skill)),
    ids,
    items: query.itemIds.map((_, i) => newerItem(even[i] ?? null, odd[i] ?? null, generation)),
    importLine: Number(mark ?? 0),
  };
}

function writeCommit(request: CommandBytes, commit: LearnerCommit): void {
  const { partition, tenant, userId, learner, skills, ids } = commit;
  request.command(4 + 2 * skills.length, 'HSET');
  request.text(learnerKey(partition, tenant, userId));
  request.text(learnerField);
  request.bytes(encodeLearner(learner));
  for (const [skillId, skill] of skills) {
    request.text(skillField(skillId));
    request.bytes(encodeSkill(skill));
  }
  if (ids.length > 0) {
    request.command(2 + 2 * ids.length, 'HSET');
    request.text(eventIdsKey(partition, tenant, userId));
    for (const [field, value] of ids) {
      request.text(field);
      request.bytes(value);
    }
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

/** One entry for all rows of a partition: beside what it says, an entry costs Redis a microsecond. */
function writeRows(request: CommandBytes, partition: number, commits: readonly LearnerCommit[]): void {
  const rows = commits.flatMap((commit) => commit.rows);
  for (const text of entriesOf(rows)) {
    request.command(5, 'XADD');
    request.text(outboxKey(partition));
    request.text('*');
    request.text('r');
    request.text(text);
  }
  request.command(3, 'INCRBY');
  request.text(outboxRowsKey(partition));
  request.text(`${rows.length}`);
}

/**
 * The last line of the import that is counted for the learner. Nobody watches it, for the learner's key speaks for it too:
 * while the import runs, its mark is written here alone, in the step that writes the learner's record. So a mark that was
 * read is as it was if the learner is.
 */
function writeMark(
  request: CommandBytes,
  { partition, tenant, userId, importLine }: LearnerCommit,
  importId: string,
): void {
  request.command(4, 'HSET');
  request.text(importMarksKey(partition, importId));
  request.text(learnerKey(partition, tenant, userId));
  request.text(`${importLine}`);
}

/** One command for all answers of a tenant and day in a partition. */
function writeAccepted(request: CommandBytes, partition: number, commits: readonly LearnerCommit[]): void {
  const counts = new Map<string, number>();
  for (const { tenant, arrivalDays } of commits)
    for (const day of arrivalDays) {
      const field = acceptedField(tenant, day);
      counts.set(field, (counts.get(field) ?? 0) + 1);
    }
  for (const [field, count] of counts) {
    request.command(4, 'HINCRBY');
    request.text(acceptedKey(partition));
    request.text(field);
    request.text(`${count}`);
  }
}
