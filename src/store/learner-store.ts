import type { RememberedItem } from '../domain/item-window.js';
import type { ItemTrace } from '../domain/prediction/traces.js';
import type { LearnerState, SkillState } from '../domain/types.js';
import { isCluster, type RedisClient, whileRedisServes } from './client.js';
import { knownSkillsKey, learnerName, partitionPrefix } from './keys.js';
import {
  decodeItem,
  decodeLearner,
  decodeSkill,
  encodeItem,
  encodeLearner,
  encodeSkill,
} from './learner-codec.js';
import { createPackReader, type PackReader } from './pack-reader.js';
import { createPacker, type Packer } from './packer.js';
import { readReplicated, replicated } from './replication.js';

/** What a batch wants to know of one learner. */
export interface LearnerQuery {
  readonly partition: number;
  readonly tenant: string;
  readonly userId: string;
  readonly skillIds: readonly string[];
  /** Hashes of event ids; looked up where that is asked for. */
  readonly eventIds: readonly Buffer[];
  /** Hashes of the items to look up. */
  readonly itemIds: readonly Buffer[];
}

/** The answer to a query, in its order; null is absent. */
export interface LoadedLearner {
  readonly learner: LearnerState | null;
  readonly skills: readonly (SkillState | null)[];
  /** Empty where ids were not looked up. */
  readonly firstAnswers: readonly (Buffer | null)[];
  /** What is remembered of each item, perhaps from a generation that is forgotten by now. */
  readonly items: readonly (RememberedItem<ItemTrace> | null)[];
  /** Last line of the running import that was counted for this learner; 0 for none. */
  readonly importLine: number;
}

/** What a batch writes for one learner: all of it or nothing. */
export interface LearnerCommit {
  readonly partition: number;
  readonly tenant: string;
  readonly userId: string;
  /** Version of the state that the change was computed from; 0 for a new learner. */
  readonly expectedVersion: number;
  /** Its version is not looked at: what is written is of the next one. */
  readonly learner: LearnerState;
  /** Those that changed, by skill id. */
  readonly skills: readonly (readonly [string, SkillState])[];
  /** Encoded attempt rows for the outbox, in order. */
  readonly rows: readonly string[];
  /** By the hash of the event id. */
  readonly firstAnswers: readonly (readonly [id: Buffer, answer: Buffer])[];
  /** Generation of items that was current before; 0 for a new learner. */
  readonly itemGeneration: number;
  /** By the hash of the item. */
  readonly items: readonly (readonly [id: Buffer, item: RememberedItem<ItemTrace>])[];
  readonly importLine: number;
}

export type CommitStatus = 'committed' | 'conflict' | 'outbox-full' | 'not-restored' | 'repeated';
const statuses: Record<string, CommitStatus> = {
  0: 'committed',
  1: 'conflict',
  2: 'outbox-full',
  3: 'not-restored',
  4: 'repeated',
};

/** Field of the learner's own record in the learner hash, beside the goal's; skills stand behind a letter of their own. */
export const learnerField = 'L';
export const skillField = (skillId: string): string => `s${skillId}`;

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

/** A repeated answer is confirmed by what was written before, perhaps by somebody who was told that it is not safe. */
export const isRepeated = ({ firstAnswers }: LoadedLearner): boolean =>
  firstAnswers.some((answer) => answer !== null);

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

/** What Redis has of a learner, in the query's order. */
interface FoundRecords {
  /** The learner's own and those of the skills. */
  readonly records: readonly (Buffer | null)[];
  readonly firstAnswers: readonly (Buffer | null)[];
  /** Of the items, of the even and of the odd generation; empty where there are no items. */
  readonly even: readonly (Buffer | null)[];
  readonly odd: readonly (Buffer | null)[];
  readonly importLine: number;
}

/** @throws Error for records that this version of the service cannot read */
export function loadedLearner(query: LearnerQuery, found: FoundRecords): LoadedLearner {
  const { records, firstAnswers, even, odd, importLine } = found;
  const learner = records[0] ? decodeLearner(records[0]) : null;
  const generation = learner?.items.generation ?? 0;
  return {
    learner,
    skills: query.skillIds.map((_, i) => decodedSkill(records[i + 1])),
    firstAnswers,
    items: query.itemIds.map((_, i) => newerItem(even[i] ?? null, odd[i] ?? null, generation)),
    importLine,
  };
}

const listOf = (reader: PackReader): (Buffer | null)[] =>
  Array.from({ length: reader.list() }, reader.maybeBytes);
const decodedSkill = (record: Buffer | null | undefined): SkillState | null =>
  record ? decodeSkill(record) : null;

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
  request.list(10);
  packPlace(request, commit, prefixes);
  request.uint(commit.expectedVersion);
  request.list(2 * commit.skills.length + 2);
  request.text(learnerField);
  request.bytes(encodeLearner(commit.learner, commit.expectedVersion + 1));
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

/** Generations that began meanwhile take the places of those that are forgotten. @returns their parities */
export function generationsBegun({ itemGeneration, learner }: LearnerCommit): number[] {
  const { generation } = learner.items;
  return Array.from({ length: Math.min(generation - itemGeneration, 2) }, (_, i) => (generation - i) % 2);
}

/** The commit's items that are still remembered, of the generations of one parity. */
export const itemsOf = ({ items, learner }: LearnerCommit, parity: number): LearnerCommit['items'] =>
  items.filter(
    ([, { generation }]) => generation >= learner.items.generation - 1 && generation % 2 === parity,
  );

export type Placed = Pick<LearnerQuery, 'partition' | 'tenant' | 'userId'>;

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

/** Notes that the tenant's learners answer these skills. */
export async function addKnownSkills(
  client: RedisClient,
  tenant: string,
  skillIds: readonly string[],
): Promise<void> {
  await whileRedisServes(client.sadd(knownSkillsKey(tenant), ...skillIds));
}

export const countKnownSkills = (client: RedisClient, tenant: string): Promise<number> =>
  whileRedisServes(client.scard(knownSkillsKey(tenant)));

/** The skills that the tenant's learners answer, in no order. */
export const listKnownSkills = (client: RedisClient, tenant: string): Promise<string[]> =>
  whileRedisServes(client.smembers(knownSkillsKey(tenant)));

export const isKnownSkill = async (client: RedisClient, tenant: string, skillId: string): Promise<boolean> =>
  (await whileRedisServes(client.sismember(knownSkillsKey(tenant), skillId))) === 1;

/** Which of the skills the tenant knows, in their order. */
export async function areKnownSkills(
  client: RedisClient,
  tenant: string,
  skillIds: readonly string[],
): Promise<boolean[]> {
  const found = await whileRedisServes(client.smismember(knownSkillsKey(tenant), ...skillIds));
  return found.map((member) => member === 1);
}
