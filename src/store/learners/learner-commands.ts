/** Commands that load and commit learners, and the meaning of their replies. All of it is on the path of every answer. */
import { entriesOf } from '../../contracts/outbox-ids.js';
import { byPartition } from '../../lists.js';
import type { CommandBytes } from '../redis/command-bytes.js';
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
} from '../redis/keys.js';
import type { Replies } from '../redis/replies.js';
import { hasAny, idFieldsOf, storedIds } from './event-ids.js';
import {
  decodeItem,
  decodeLearner,
  decodeSkill,
  encodeItem,
  encodeLearner,
  encodeSkill,
} from './learner-codec.js';
import {
  type LearnerCommit,
  type LearnerQuery,
  type LoadedLearner,
  learnerField,
  skillField,
} from './learner-records.js';

/** A query with the fields that may hold its event ids. */
export interface Asked {
  readonly query: LearnerQuery;
  readonly idFields: readonly string[];
}

export const askedOf = (queries: readonly LearnerQuery[]): Asked[] =>
  queries.map((query) => ({ query, idFields: idFieldsOf(query.eventIds) }));

/** The learners; and the markers, which say that they are all there. Ids and items are written with their learner. */
export function writeWatch(
  request: CommandBytes,
  queries: readonly LearnerQuery[],
  partitions: readonly number[],
): void {
  request.command(1 + queries.length + partitions.length, 'WATCH');
  for (const { partition, tenant, userId } of queries) request.text(learnerKey(partition, tenant, userId));
  for (const partition of partitions) request.text(markerKey(partition));
}

export function writePartitions(request: CommandBytes, partitions: readonly number[]): void {
  request.command(1 + 2 * partitions.length, 'MGET');
  for (const partition of partitions) request.text(markerKey(partition));
  for (const partition of partitions) request.text(outboxRowsKey(partition));
}

/** Whether each partition is restored and how many rows its outbox has, in the order of `writePartitions`. */
export function readPartitions(replies: Replies, partitions: readonly number[]) {
  const found = replies.list();
  return partitions.map((partition, i) => ({
    partition,
    restored: found[i] !== null,
    rows: Number(found[partitions.length + i]?.toString() ?? 0),
  }));
}

export const writeMarks = (request: CommandBytes, tenants: readonly string[]): void =>
  request.whole('HMGET', catalogueRevisionsKey, ...tenants);

export function readMarks(replies: Replies, tenants: readonly string[]): ReadonlyMap<string, string> {
  const marks = replies.list();
  return new Map(tenants.map((tenant, i) => [tenant, marks[i]?.toString() ?? '']));
}

export function writeQuery(request: CommandBytes, { query, idFields }: Asked, importId: string | null): void {
  const { partition, tenant, userId, skillIds, itemIds } = query;
  const key = learnerKey(partition, tenant, userId);
  request.command(3 + skillIds.length, 'HMGET');
  request.text(key);
  request.text(learnerField);
  for (const skillId of skillIds) request.text(skillField(skillId));
  if (importId !== null) request.whole('HMGET', importMarksKey(partition, importId), key);
  if (idFields.length > 0) request.whole('HMGET', eventIdsKey(partition, tenant, userId), ...idFields);
  if (itemIds.length === 0) return;
  for (const parity of [0, 1]) {
    request.command(2 + itemIds.length, 'HMGET');
    request.text(itemTracesKey(partition, parity, tenant, userId));
    for (const id of itemIds) request.bytes(id);
  }
}

/** @throws Error for records that this version of the service cannot read */
export function readLearner(
  replies: Replies,
  { query, idFields }: Asked,
  importId: string | null,
): LoadedLearner {
  const [own, ...skills] = replies.list();
  const mark = importId === null ? null : replies.list()[0];
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

/**
 * An item may stand in both generations; the current one has the newer figures. The two hashes take turns: the one
 * of the current generation's parity holds it, the other one the generation before.
 */
function newerItem(
  even: Buffer | null,
  odd: Buffer | null,
  generation: number,
): LoadedLearner['items'][number] {
  const [current, before] = generation % 2 === 0 ? [even, odd] : [odd, even];
  if (current !== null) return { generation, trace: decodeItem(current) };
  return before && { generation: generation - 1, trace: decodeItem(before) };
}

/** Whether an event id was taken before: its result confirms a write, perhaps one that was not safe on replicas. */
export const areRepeated = (queries: readonly LearnerQuery[], loaded: readonly LoadedLearner[]): boolean =>
  loaded.some(({ ids }, i) => hasAny(ids, queries[i]?.eventIds ?? []));

/** Everything between MULTI and EXEC. */
export function writeCommits(
  request: CommandBytes,
  commits: readonly LearnerCommit[],
  importId: string | null,
): void {
  for (const commit of commits) writeCommit(request, commit, importId);
  for (const [partition, own] of byPartition(commits)) {
    const rows = own.flatMap((commit) => commit.rows);
    // One entry for all rows of a partition: beside its content, an entry costs Redis a microsecond.
    for (const text of entriesOf(rows)) request.whole('XADD', outboxKey(partition), '*', 'r', text);
    request.whole('INCRBY', outboxRowsKey(partition), `${rows.length}`);
    for (const [field, count] of acceptedCounts(own))
      request.whole('HINCRBY', acceptedKey(partition), field, `${count}`);
  }
}

/** Answers by tenant and day of arrival. */
function acceptedCounts(commits: readonly LearnerCommit[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { tenant, arrivalDays } of commits)
    for (const day of arrivalDays) {
      const field = acceptedField(tenant, day);
      counts.set(field, (counts.get(field) ?? 0) + 1);
    }
  return counts;
}

function writeCommit(request: CommandBytes, commit: LearnerCommit, importId: string | null): void {
  const { partition, tenant, userId, learner, skills, ids, importLine } = commit;
  const key = learnerKey(partition, tenant, userId);
  request.command(4 + 2 * skills.length, 'HSET');
  request.text(key);
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
  // Not watched: while the import runs, the mark is written here alone, with the learner's record, which is watched.
  if (importId !== null) request.whole('HSET', importMarksKey(partition, importId), key, `${importLine}`);
}

function writeItems(request: CommandBytes, commit: LearnerCommit): void {
  const { partition, tenant, userId } = commit;
  for (const parity of generationsBegun(commit))
    request.whole('DEL', itemTracesKey(partition, parity, tenant, userId));
  for (const parity of [0, 1]) {
    const items = rememberedItems(commit, parity);
    if (items.length === 0) continue;
    request.command(2 + 2 * items.length, 'HSET');
    request.text(itemTracesKey(partition, parity, tenant, userId));
    for (const [id, item] of items) {
      request.bytes(id);
      request.bytes(encodeItem(item.trace));
    }
  }
}

/** Generations that began meanwhile replace those that are forgotten. @returns their parities */
function generationsBegun({ itemGeneration, learner }: LearnerCommit): number[] {
  const { generation } = learner.items;
  return Array.from({ length: Math.min(generation - itemGeneration, 2) }, (_, i) => (generation - i) % 2);
}

/** The commit's items that are still remembered, of the generations of one parity. */
const rememberedItems = ({ items, learner }: LearnerCommit, parity: number): LearnerCommit['items'] =>
  items.filter(
    ([, { generation }]) => generation >= learner.items.generation - 1 && generation % 2 === parity,
  );
