/** Learners of a batch, read and written by scripts. */
import { learnerName } from '../contracts/learner-name.js';
import { countAccepted } from './accepted.js';
import { isCluster, type RedisClient, whileRedisServes } from './client.js';
import { partitionPrefix } from './keys.js';
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
import { createPackReader, type PackReader } from './pack-reader.js';
import { createPacker, type Packer } from './packer.js';
import { readReplicated, replicated } from './replication.js';

const statuses: Record<string, CommitStatus> = {
  0: 'committed',
  1: 'conflict',
  2: 'outbox-full',
  3: 'not-restored',
  4: 'repeated',
};

/**
 * Reads many learners in one round trip (one per partition on a Cluster).
 *
 * @param importId hash of the file being imported, or null
 * @param withIds whether event ids are looked up. Nearly all are new, and a commit refuses those that are not, so a
 * first try does without
 */
export function loadLearners(
  client: RedisClient,
  queries: readonly LearnerQuery[],
  importId: string | null,
  withIds: boolean,
): Promise<LoadedLearner[]> {
  return perCall(client, queries, async (group) => {
    const prefixes = prefixesOf(group);
    const request = createPacker();
    request.list(2);
    request.text(importId ?? '');
    request.list(group.length);
    for (const query of group) packQuery(request, query, prefixes, withIds);
    const load = async (): Promise<LoadedLearner[]> => {
      const reply = client.loadLearnersBuffer(prefixes.length, ...prefixes, request.done());
      return unpackLoaded(await whileRedisServes(reply), group, importId !== null, withIds);
    };
    return readReplicated(client, prefixes[0] as string, load, (loaded) => loaded.some(isRepeated));
  });
}

function packQuery(
  request: Packer,
  query: LearnerQuery,
  prefixes: readonly string[],
  withIds: boolean,
): void {
  request.list(5);
  packPlace(request, query, prefixes);
  request.list(query.skillIds.length + 1);
  request.text(learnerField);
  for (const skillId of query.skillIds) request.text(skillField(skillId));
  const ids = withIds ? query.eventIds : [];
  request.list(ids.length);
  for (const id of ids) request.bytes(id);
  request.list(query.itemIds.length);
  for (const id of query.itemIds) request.bytes(id);
}

function packPlace(
  request: Packer,
  { partition, tenant, userId }: Placed,
  prefixes: readonly string[],
): void {
  request.uint(prefixes.indexOf(partitionPrefix(partition)) + 1);
  request.text(learnerName(tenant, userId));
}

function unpackLoaded(
  reply: Buffer,
  queries: readonly LearnerQuery[],
  withImport: boolean,
  withIds: boolean,
): LoadedLearner[] {
  const reader = createPackReader(reply);
  reader.list();
  return queries.map((query) => {
    const records = listOf(reader);
    const firstAnswers = withIds && query.eventIds.length > 0 ? listOf(reader) : [];
    const even = query.itemIds.length === 0 ? [] : listOf(reader);
    const odd = query.itemIds.length === 0 ? [] : listOf(reader);
    const mark = withImport ? reader.maybeBytes() : null;
    const importLine = mark === null ? 0 : Number(mark.toString());
    return loadedLearner(query, { records, firstAnswers, even, odd, importLine });
  });
}

const listOf = (reader: PackReader): (Buffer | null)[] =>
  Array.from({ length: reader.list() }, reader.maybeBytes);
/**
 * Commits many learners in one atomic step (one per partition on a Cluster): states, event ids and outbox rows of
 * a learner together, and only where nobody wrote the learner since it was read, nor took one of the ids.
 */
export function commitLearners(
  client: RedisClient,
  commits: readonly LearnerCommit[],
  importId: string | null,
  outboxBound: number,
): Promise<CommitStatus[]> {
  return perCall(client, commits, async (group) => {
    const prefixes = prefixesOf(group);
    const request = createPacker();
    request.list(3);
    request.text(importId ?? '');
    request.uint(outboxBound);
    request.list(group.length);
    for (const commit of group) packCommit(request, commit, prefixes);
    const commit = () => client.commitAttempts(prefixes.length, ...prefixes, request.done());
    const reply = await replicated(client, prefixes[0] as string, () => whileRedisServes(commit()));
    return [...reply].map((digit) => statuses[digit] as CommitStatus);
  });
}

function packCommit(request: Packer, commit: LearnerCommit, prefixes: readonly string[]): void {
  request.list(11);
  packPlace(request, commit, prefixes);
  request.uint(commit.expectedVersion);
  request.list(2 * commit.skills.length + 2);
  request.text(learnerField);
  request.bytes(encodeLearner(commit.learner));
  for (const [skillId, skill] of commit.skills) {
    request.text(skillField(skillId));
    request.bytes(encodeSkill(skill));
  }
  request.list(commit.rows.length);
  for (const row of commit.rows) request.text(row);
  request.list(2 * commit.firstAnswers.length);
  for (const [id, answer] of commit.firstAnswers) {
    request.bytes(id);
    request.bytes(answer);
  }
  packItems(request, commit);
  request.text(commit.importLine === 0 ? '' : `${commit.importLine}`);
  packAccepted(request, commit);
}

function packAccepted(request: Packer, commit: LearnerCommit): void {
  const fields = [...(countAccepted([commit]).get(commit.partition) ?? [])];
  request.list(2 * fields.length);
  for (const [field, count] of fields) {
    request.text(field);
    request.uint(count);
  }
}

function packItems(request: Packer, commit: LearnerCommit): void {
  const begun = generationsBegun(commit);
  request.list(begun.length);
  for (const parity of begun) request.uint(parity);
  for (const parity of [0, 1]) {
    const items = itemsOf(commit, parity);
    request.list(2 * items.length);
    for (const [id, item] of items) {
      request.bytes(id);
      request.bytes(encodeItem(item.trace));
    }
  }
}

const prefixesOf = (group: readonly Placed[]): string[] => [
  ...new Set(group.map(({ partition }) => partitionPrefix(partition))),
];

/** One call for everything on a single node; on a Cluster a script may touch one slot, so one per partition. */
export async function perCall<Item extends Placed, Result>(
  client: RedisClient,
  items: readonly Item[],
  call: (group: readonly Item[]) => Promise<Result[]>,
): Promise<Result[]> {
  if (!isCluster(client)) return call(items);
  const results = new Array<Result>(items.length);
  const groups = new Map<number, number[]>();
  items.forEach(({ partition }, index) => {
    groups.set(partition, [...(groups.get(partition) ?? []), index]);
  });
  await Promise.all(
    [...groups.values()].map(async (indexes) => {
      const answers = await call(indexes.map((index) => items[index] as Item));
      answers.forEach((answer, i) => {
        results[indexes[i] as number] = answer;
      });
    }),
  );
  return results;
}
