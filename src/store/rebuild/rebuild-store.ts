/** Redis as a rebuild sees and fills it. All writes may be repeated. */
import type { DeploymentFacts, StoredKey } from '../../contracts/access.js';
import type { LearnerPlace } from '../../contracts/learner-name.js';
import { entryIdOf, type OutboxId } from '../../contracts/outbox-ids.js';
import type {
  AnsweredSkill,
  CatalogueRecord,
  DayOfAnswers,
  GoalRecord,
  RetractedId,
} from '../../contracts/rebuild-tasks.js';
import { groupedBy, indices, inParts } from '../../lists.js';
import { createKeyStore } from '../access/api-keys.js';
import { raiseFence } from '../audit/retention-fence.js';
import { putCatalogueEntries } from '../catalogue/catalogue-store.js';
import { addKnownSkills, makeRare, noteLearners } from '../catalogue/known-skills.js';
import { hashEventId } from '../learners/event-ids.js';
import { encodeGoal, goalField } from '../learners/goals.js';
import type { Placed } from '../learners/learner-commands.js';
import { readIds } from '../learners/learner-reads.js';
import { type RedisClient, resultsOf, whileRedisServes } from '../redis/client.js';
import type { OtherVersion } from '../redis/deployment.js';
import {
  acceptedField,
  acceptedKey,
  apiKeysKey,
  catalogueJournalKey,
  catalogueKey,
  catalogueRevisionsKey,
  erasuresKey,
  eventIdsKey,
  journalKey,
  keptNow,
  learnerKey,
  markerKey,
  metaKey,
  modelsKey,
  outboxKey,
  parkedKey,
  partitionOf,
  removedKey,
} from '../redis/keys.js';
import { streamLengths } from '../redis/reads.js';
import { scanLearners, waitingRows } from './learner-scan.js';
import { restoreItems, restoreModels, versionsKept } from './model-restore.js';

/** JSON of the `Checkpoint`, while a rebuild runs. */
const checkpointKey = 'st:rebuild';
/** Its lock. */
export const rebuildLockKey = 'st:rebuild:lock';

/** What belongs to no partition. */
export type SharedState = 'keys' | 'catalogues' | 'models';

const sharedKeys: Readonly<Record<SharedState, string>> = {
  keys: apiKeysKey,
  catalogues: catalogueRevisionsKey,
  models: modelsKey,
};

/** Where a rebuild stands, so that a later run goes on there. */
export interface Checkpoint {
  /** By which version (`keptNow`) learners are restored: no other one goes on with it. */
  readonly kept: string;
  /** What is restored. */
  readonly partitions: readonly number[];
  readonly shared: readonly SharedState[];
  /** Event ids that arrived at this Unix second or later are remembered. */
  readonly idsFrom: number;
  /** Learners up to this one are there. */
  readonly after: LearnerPlace | null;
  readonly learnersDone: boolean;
  readonly learners: number;
  readonly answers: number;
}

/** Arguments of one command, so that none holds Redis up. */
const together = 1000;

/** @throws ApiError UNAVAILABLE from each of its functions */
export type RebuildStore = ReturnType<typeof createRebuildStore>;

export function createRebuildStore(client: RedisClient) {
  const exists = async (key: string): Promise<boolean> => (await whileRedisServes(client.exists(key))) === 1;
  return {
    /** Number of partitions that Redis says it has; null where it says nothing. */
    partitions: async () => Number(await whileRedisServes(client.hget(metaKey, 'partitions'))) || null,
    /** Whether the learners belong into these partitions where there are so many. */
    agrees: (places: readonly Placed[], count: number) =>
      places.every(({ tenant, userId, partition }) => partitionOf(tenant, userId, count) === partition),
    /** Partitions that are not restored. @param count how many there are */
    lost: async (count: number): Promise<number[]> => {
      const found = await Promise.all(indices(count).map((partition) => exists(markerKey(partition))));
      return indices(count).filter((partition) => !found[partition]);
    },
    lostShared: async (): Promise<SharedState[]> => {
      // Keys that a start brings with it are put into an empty Redis too.
      if (!(await exists(metaKey))) return ['keys', 'catalogues', 'models'];
      const names = Object.keys(sharedKeys) as SharedState[];
      const found = await Promise.all(names.map((name) => exists(sharedKeys[name])));
      return names.filter((_, i) => !found[i]);
    },
    /** Null where none was saved by this version. */
    checkpoint: async (): Promise<Checkpoint | null> => {
      const stored = JSON.parse((await whileRedisServes(client.get(checkpointKey))) ?? 'null');
      return stored?.kept === keptNow ? stored : null;
    },
    save: async (checkpoint: Checkpoint): Promise<void> => {
      await whileRedisServes(client.set(checkpointKey, JSON.stringify(checkpoint)));
    },
    /** All learners with answers, piece by piece; one may come twice. */
    learners: () => scanLearners(client),
    /** Rows of learners that wait in the outbox or are parked, in no order. @param count partitions of the deployment */
    waitingRows: (learners: readonly LearnerPlace[], count: number) => waitingRows(client, learners, count),
    /** How much waits in Redis that ClickHouse does not have, for people; empty where nothing does. */
    waiting: (count: number) => waitingIn(client, indices(count)),
    /**
     * Moves the markers of learners that another version kept aside, so that nobody counts answers by it, or back. One that
     * is missing stays so: its partition was lost.
     */
    moveMarkers: async ({ kept, partitions }: OtherVersion, to: 'aside' | 'back'): Promise<void> => {
      for (const marker of indices(partitions).map((partition) => markerKey(partition, kept))) {
        const [from, until] = to === 'aside' ? [marker, asideKey(marker)] : [asideKey(marker), marker];
        if (await exists(from)) await whileRedisServes(client.rename(from, until));
      }
    },
    /** Makes the deployment one of this version, whose partitions are not restored. */
    noteVersion: async ({ kept, partitions }: OtherVersion): Promise<void> => {
      await whileRedisServes(client.hset(metaKey, 'model_version', keptNow));
      for (const partition of indices(partitions))
        await whileRedisServes(client.del(asideKey(markerKey(partition, kept))));
    },
    /** Remembers ids that are not taken. @param count partitions of the deployment, of which some are restored */
    putRetracted: async (ids: readonly RetractedId[], partitions: readonly number[], count: number) => {
      for (const [place, id] of placed(ids, partitions, count)) await putRetracted(client, place, id);
    },
    putGoals: async (goals: readonly GoalRecord[], partitions: readonly number[], count: number) => {
      for (const [{ partition, tenant, userId }, goal] of placed(goals, partitions, count))
        await whileRedisServes(
          client.hset(learnerKey(partition, tenant, userId), goalField, encodeGoal(goal)),
        );
    },
    /** Nothing that arrived up to this month enters the partition's outbox any more. */
    raiseFence: (partition: number, month: number) => whileRedisServes(raiseFence(client, partition, month)),
    /** Later rows of the outbox get ids above this one. */
    raiseOutbox: (partition: number, id: OutboxId) => raiseOutbox(client, partition, id),
    /** Skills that are set. */
    addSkills: (tenant: string, skillIds: readonly string[]) => addKnownSkills(client, tenant, skillIds),
    /** Skills with fewer learners are rare from then on, unless they are set. */
    noteAnswered: async (tenant: string, skills: readonly AnsweredSkill[]): Promise<void> => {
      for (const part of inParts(skills, together)) await noteAnswered(client, tenant, part);
    },
    putCatalogue: (tenant: string, entries: readonly CatalogueRecord[]) =>
      putCatalogue(client, tenant, entries),
    versionsKept,
    putModels: restoreModels.bind(null, client),
    putItems: restoreItems.bind(null, client),
    putKeys: async (keys: readonly StoredKey[]): Promise<void> => {
      const { restore } = createKeyStore(client);
      for (const key of keys) await restore(key);
    },
    /** Accepted answers are those that are stored, and none was removed. */
    putAccepted: async (partitions: readonly number[], days: readonly DayOfAnswers[]): Promise<void> => {
      const byPartition = groupedBy(days, ({ partition }) => partition);
      for (const partition of partitions) {
        await whileRedisServes(client.del(acceptedKey(partition), removedKey(partition)));
        const fields = (byPartition.get(partition) ?? []).map(
          ({ tenant, day, answers }) => [acceptedField(tenant, day), answers] as const,
        );
        for (const part of inParts(fields, together))
          await whileRedisServes(client.hset(acceptedKey(partition), ...part.flat()));
      }
    },
    /** Ends the rebuild: the service may use the state from now on. */
    finish: async ({ partitions }: Checkpoint, facts: DeploymentFacts): Promise<void> => {
      const now = new Date().toISOString();
      // The marker says of a partition that all is there; the deployment's facts, that all partitions are.
      for (const partition of partitions) await whileRedisServes(client.set(markerKey(partition), now));
      await whileRedisServes(client.hsetnx(metaKey, 'deployment_id', facts.deploymentId));
      await whileRedisServes(client.hsetnx(metaKey, 'created_at', facts.createdAt));
      await whileRedisServes(client.hset(metaKey, 'model_version', keptNow));
      await whileRedisServes(client.hsetnx(metaKey, 'partitions', `${facts.partitions}`));
      await whileRedisServes(client.del(checkpointKey));
    },
  };
}

const asideKey = (marker: string): string => `${marker}:aside`;

/** Those whose learners are of the wanted partitions. */
function placed<Item extends LearnerPlace>(
  items: readonly Item[],
  wanted: readonly number[],
  count: number,
): (readonly [Placed, Item])[] {
  return items
    .map((item) => {
      const { tenant, userId } = item;
      return [{ partition: partitionOf(tenant, userId, count), tenant, userId }, item] as const;
    })
    .filter(([{ partition }]) => wanted.includes(partition));
}

/** An id that is taken was counted again after the retraction. */
async function putRetracted(
  client: RedisClient,
  place: Placed,
  { eventId, firstAnswer }: RetractedId,
): Promise<void> {
  const id = hashEventId(eventId);
  const ids = await readIds(client, place, [id]);
  const answer = Buffer.from(firstAnswer, 'base64');
  const second = answer.readUInt32LE(0);
  if (ids.find(id, second) !== null) return;
  ids.take(id, answer, second);
  const key = eventIdsKey(place.partition, place.tenant, place.userId);
  await whileRedisServes(client.hset(key, ...ids.changes().flat()));
}

/** What was set may not be in ClickHouse yet: a catalogue that is still here knows. */
async function noteAnswered(
  client: RedisClient,
  tenant: string,
  skills: readonly AnsweredSkill[],
): Promise<void> {
  const skillIds = skills.map(({ skillId }) => skillId);
  await makeRare(client, tenant, skillIds);
  const pairs = skills.flatMap(({ skillId, userIds }) => userIds.map((userId) => ({ skillId, userId })));
  for (const part of inParts(pairs, together)) await noteLearners(client, tenant, part);
  const entries = await whileRedisServes(client.hmget(catalogueKey(tenant), ...skillIds));
  const set = skillIds.filter((_, i) => entries[i] !== null);
  await addKnownSkills(client, tenant, set);
}

async function putCatalogue(
  client: RedisClient,
  tenant: string,
  entries: readonly CatalogueRecord[],
): Promise<void> {
  for (const part of inParts(entries, together)) await putCatalogueEntries(client, tenant, part);
  const [newest] = [...entries].sort((a, b) => b.updatedAt - a.updatedAt || b.revision - a.revision);
  if (newest === undefined) return;
  await whileRedisServes(
    client.hset(catalogueRevisionsKey, tenant, `${newest.revision} ${newest.updatedAt}`),
  );
}

/** By an entry that goes at once. A stream whose last id is not below keeps it. */
async function raiseOutbox(client: RedisClient, partition: number, last: OutboxId): Promise<void> {
  const key = outboxKey(partition);
  if ((await whileRedisServes(client.exists(key))) === 1) return;
  const id = entryIdOf(last);
  await whileRedisServes(resultsOf(client.multi().xadd(key, id, 'r', '').xdel(key, id)));
}

/** Not forecasts: no rebuild restores anything from them. */
async function waitingIn(client: RedisClient, partitions: readonly number[]): Promise<string[]> {
  const entriesOf = async (keys: readonly string[]): Promise<number> =>
    (await whileRedisServes(streamLengths(client, keys))).reduce((sum, length) => sum + length, 0);
  const outboxes = partitions.map(outboxKey);
  const journals = [...partitions.map(journalKey), catalogueJournalKey];
  const erasures = await whileRedisServes(
    Promise.all(partitions.map((partition) => client.hlen(erasuresKey(partition)))),
  );
  const found: readonly (readonly [number, string])[] = [
    [await entriesOf(outboxes), 'in outboxes'],
    [await entriesOf(journals), 'in journals'],
    [await entriesOf([...outboxes, ...journals].map(parkedKey)), 'parked'],
    // Two fields each.
    [erasures.reduce((sum, fields) => sum + fields, 0) / 2, 'erasures in progress'],
  ];
  return found.flatMap(([count, what]) => (count === 0 ? [] : `${count} ${what}`));
}
