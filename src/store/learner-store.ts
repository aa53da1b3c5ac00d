import type { RememberedItem } from '../domain/item-window.js';
import type { ItemTrace } from '../domain/prediction/traces.js';
import type { LearnerState, SkillState } from '../domain/types.js';
import { isCluster, type RedisClient, resultsOf, whileRedisServes } from './client.js';
import { goalField } from './goal-codec.js';
import { knownSkillsKey, learnerKey, learnerName, partitionPrefix } from './keys.js';
import {
  decodeItem,
  decodeLearner,
  decodeSkill,
  encodeItem,
  encodeLearner,
  encodeSkill,
} from './learner-codec.js';
import { createPacker, createReader, type Packer } from './packer.js';

/** What a batch wants to know of one learner. */
export interface LearnerQuery {
  readonly partition: number;
  readonly tenant: string;
  readonly userId: string;
  readonly skillIds: readonly string[];
  /** Hashes of the event ids to look up. */
  readonly eventIds: readonly Buffer[];
  /** Hashes of the items to look up. */
  readonly itemIds: readonly Buffer[];
}

/** The answer to a query, in its order; null is absent. */
export interface LoadedLearner {
  readonly learner: LearnerState | null;
  readonly skills: readonly (SkillState | null)[];
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
  readonly learner: LearnerState;
  readonly skills: ReadonlyMap<string, SkillState>;
  /** Encoded attempt rows for the outbox, in order. */
  readonly rows: readonly string[];
  readonly firstAnswers: readonly { readonly id: Buffer; readonly answer: Buffer }[];
  /** Generation of items that was current before; 0 for a new learner. */
  readonly itemGeneration: number;
  readonly items: readonly { readonly id: Buffer; readonly item: RememberedItem<ItemTrace> }[];
  readonly importLine: number;
}

export type CommitStatus = 'committed' | 'conflict' | 'outbox-full' | 'not-restored';
const statuses: Record<string, CommitStatus> = {
  0: 'committed',
  1: 'conflict',
  2: 'outbox-full',
  3: 'not-restored',
};

/** Field of the learner's own record in the learner hash, beside the goal's; skills stand behind a letter of their own. */
const learnerField = 'L';
const skillField = (skillId: string): string => `s${skillId}`;

/**
 * Reads many learners in one round trip (one per partition on a Cluster).
 * @param importId hash of the file being imported, or null
 */
export function loadLearners(
  client: RedisClient,
  queries: readonly LearnerQuery[],
  importId: string | null,
): Promise<LoadedLearner[]> {
  return perCall(client, queries, async (group) => {
    const prefixes = prefixesOf(group);
    const request = createPacker();
    request.text(importId ?? '');
    request.u16(group.length);
    for (const query of group) packQuery(request, query, prefixes.indexOf(partitionPrefix(query.partition)));
    const reply = await whileRedisServes(
      client.loadLearnersBuffer(prefixes.length, ...prefixes, request.done()),
    );
    return unpackLoaded(reply, group, importId !== null);
  });
}

function packQuery(request: Packer, query: LearnerQuery, prefixIndex: number): void {
  request.u16(prefixIndex + 1);
  request.text(learnerName(query.tenant, query.userId));
  request.u16(query.skillIds.length);
  for (const skillId of query.skillIds) request.text(skillField(skillId));
  request.u16(query.eventIds.length);
  for (const id of query.eventIds) request.bytes(id);
  request.u16(query.itemIds.length);
  for (const id of query.itemIds) request.bytes(id);
}

function unpackLoaded(reply: Buffer, queries: readonly LearnerQuery[], withImport: boolean): LoadedLearner[] {
  const next = createReader(reply);
  return queries.map((query) => {
    const record = next();
    const skills = query.skillIds.map(() => {
      const skill = next();
      return skill && decodeSkill(skill);
    });
    const firstAnswers = query.eventIds.map(() => next());
    const learner = record && decodeLearner(record);
    const generation = learner?.items.generation ?? 0;
    const items = query.itemIds.map(() => newerItem(next(), next(), generation));
    const mark = withImport ? next() : null;
    return {
      learner,
      skills,
      firstAnswers,
      items,
      importLine: mark === null ? 0 : Number(mark.toString()),
    };
  });
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

/**
 * Commits many learners in one atomic step (one per partition on a Cluster): states, event ids and outbox rows of
 * a learner together, and only where nobody wrote the learner since it was read.
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
    request.text(importId ?? '');
    request.u32(outboxBound);
    request.u16(group.length);
    for (const commit of group)
      packCommit(request, commit, prefixes.indexOf(partitionPrefix(commit.partition)));
    const reply = await whileRedisServes(client.commitAttempts(prefixes.length, ...prefixes, request.done()));
    return [...reply].map((digit) => statuses[digit] as CommitStatus);
  });
}

function packCommit(request: Packer, commit: LearnerCommit, prefixIndex: number): void {
  request.u16(prefixIndex + 1);
  request.text(learnerName(commit.tenant, commit.userId));
  request.u32(commit.expectedVersion);
  request.u16(commit.skills.size + 1);
  request.text(learnerField);
  request.text(encodeLearner(commit.learner));
  for (const [skillId, skill] of commit.skills) {
    request.text(skillField(skillId));
    request.text(encodeSkill(skill));
  }
  request.u16(commit.rows.length);
  for (const row of commit.rows) request.text(row);
  request.u16(commit.firstAnswers.length);
  for (const { id, answer } of commit.firstAnswers) {
    request.bytes(id);
    request.text(answer);
  }
  packItems(request, commit);
  request.text(commit.importLine === 0 ? '' : `${commit.importLine}`);
}

/** Generations that began meanwhile take the places of those that are forgotten. */
function packItems(request: Packer, { itemGeneration, learner, items }: LearnerCommit): void {
  const { generation } = learner.items;
  const begun = Math.min(generation - itemGeneration, 2);
  request.u16(begun);
  for (let i = 0; i < begun; i++) request.u16((generation - i) % 2);
  const kept = items.filter(({ item }) => item.generation >= generation - 1);
  request.u16(kept.length);
  for (const { id, item } of kept) {
    request.u16(item.generation % 2);
    request.bytes(id);
    request.text(encodeItem(item.trace));
  }
}

type Placed = Pick<LearnerQuery, 'partition' | 'tenant' | 'userId'>;

const prefixesOf = (group: readonly Placed[]): string[] => [
  ...new Set(group.map(({ partition }) => partitionPrefix(partition))),
];

/** One call for everything on a single node; on a Cluster a script may touch one slot, so one per partition. */
async function perCall<Item extends Placed, Result>(
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

/** All that is kept of one learner who has answered. */
export interface WholeLearner {
  readonly learner: LearnerState;
  readonly skills: ReadonlyMap<string, SkillState>;
  /** The goal as it is stored (`decodeGoal`), so that who needs none does not depend on being able to read it. */
  readonly goalRecord: string | null;
}

/** Reads one learner with every skill; null if there is none. */
export async function readLearner(
  client: RedisClient,
  { partition, tenant, userId }: Placed,
): Promise<WholeLearner | null> {
  return wholeLearner(await whileRedisServes(client.hgetallBuffer(learnerKey(partition, tenant, userId))));
}

/** Reads many learners in one round trip (one per partition on a Cluster), in the order of their places. */
export const readLearners = (
  client: RedisClient,
  places: readonly Placed[],
): Promise<(WholeLearner | null)[]> =>
  perCall(client, places, async (group) => {
    const commands = client.pipeline();
    for (const { partition, tenant, userId } of group) {
      commands.hgetallBuffer(learnerKey(partition, tenant, userId));
    }
    const found = await whileRedisServes(resultsOf(commands));
    return found.map((fields) => wholeLearner(fields as Record<string, Buffer>));
  });

/** A goal alone makes no learner. */
function wholeLearner(fields: Readonly<Record<string, Buffer>>): WholeLearner | null {
  const { [learnerField]: record, [goalField]: goal, ...others } = fields;
  if (record === undefined) return null;
  const skills = new Map(
    Object.entries(others).map(([field, value]) => [field.slice(1), decodeSkill(value)] as const),
  );
  return { learner: decodeLearner(record), skills, goalRecord: goal?.toString() ?? null };
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
