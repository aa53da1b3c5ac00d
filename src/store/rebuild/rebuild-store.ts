/** Redis as a rebuild sees and fills it. */
import { entryIdOf, type OutboxId } from '../../contracts/outbox-ids.js';
import { inParts } from '../../lists.js';
import type {
  AnsweredSkill,
  CatalogueRecord,
  Checkpoint,
  GoalRecord,
  RebuildStore,
  SharedState,
  TakenBackId,
} from '../../services/rebuild/ports.js';
import { createKeyStore } from '../access/api-keys.js';
import { raiseFence } from '../audit/retention-fence.js';
import { putCatalogueEntries } from '../catalogue/catalogue-store.js';
import { addKnownSkills, makeRare, noteLearners } from '../catalogue/known-skills.js';
import { answerBytes, hashEventId } from '../learners/event-ids.js';
import { encodeGoal, goalField } from '../learners/goals.js';
import { readIds } from '../learners/learner-reads.js';
import { type RedisClient, resultsOf, whileRedisServes } from '../redis/client.js';
import { notedKept } from '../redis/deployment.js';
import {
  acceptedField,
  acceptedKey,
  apiKeysKey,
  catalogueKey,
  catalogueRevisionsKey,
  eventIdsKey,
  learnerKey,
  markerKey,
  metaKey,
  modelsKey,
  outboxKey,
  partitionOf,
} from '../redis/keys.js';
import { scanLearners, waitingRows } from './learner-scan.js';
import { restoreItems, restoreModels, versionsKept } from './model-restore.js';

/** JSON of the `Checkpoint`, while a rebuild is under way. */
export const checkpointKey = 'st:rebuild';
/** Its lock. */
export const rebuildLockKey = 'st:rebuild:lock';

const sharedKeys: Readonly<Record<SharedState, string>> = {
  keys: apiKeysKey,
  catalogues: catalogueRevisionsKey,
  models: modelsKey,
};

/** Arguments of one command, so that none holds Redis up. */
const together = 1000;

export function createRebuildStore(client: RedisClient): RebuildStore {
  const exists = async (key: string): Promise<boolean> => (await whileRedisServes(client.exists(key))) === 1;
  return {
    partitions: async () => Number(await whileRedisServes(client.hget(metaKey, 'partitions'))) || null,
    agrees: (places, count) =>
      places.every(({ tenant, userId, partition }) => partitionOf(tenant, userId, count) === partition),
    lost: async (count) => {
      const all = Array.from({ length: count }, (_, partition) => partition);
      const found = await Promise.all(all.map((partition) => exists(markerKey(partition))));
      return all.filter((partition) => !found[partition]);
    },
    lostShared: async () => {
      // Keys that a start brings with it are put into an empty Redis too.
      if (!(await exists(metaKey))) return ['keys', 'catalogues', 'models'];
      const names = Object.keys(sharedKeys) as SharedState[];
      const found = await Promise.all(names.map((name) => exists(sharedKeys[name])));
      return names.filter((_, i) => !found[i]);
    },
    counted: async (partitions) => {
      const found = await Promise.all(partitions.map((partition) => exists(acceptedKey(partition))));
      return partitions.filter((_, i) => found[i]);
    },
    checkpoint: async () => {
      const stored = await whileRedisServes(client.get(checkpointKey));
      return stored === null ? null : (JSON.parse(stored) as Checkpoint);
    },
    save: async (checkpoint) => {
      await whileRedisServes(client.set(checkpointKey, JSON.stringify(checkpoint)));
    },
    putTakenBack: (ids, restored, count) => putTakenBack(client, ids, restored, count),
    waiting: (learners, count) => waitingRows(client, learners, count),
    learners: () => scanLearners(client),
    raiseFence: (partition, month) => whileRedisServes(raiseFence(client, partition, month)),
    addSkills: (tenant, skillIds) => addKnownSkills(client, tenant, skillIds),
    noteAnswered: async (tenant, skills) => {
      for (const part of inParts(skills, together)) await noteAnswered(client, tenant, part);
    },
    putGoals: (goals, partitions, count) => putGoals(client, goals, partitions, count),
    putCatalogue: (tenant, entries) => putCatalogue(client, tenant, entries),
    putModels: (tenant, changes, kept, newest) => restoreModels(client, tenant, changes, kept, newest),
    versionsKept,
    putItems: (tenant, version, items) => restoreItems(client, tenant, version, items),
    putKeys: async (keys) => {
      const { restore } = createKeyStore(client);
      for (const key of keys) await restore(key);
    },
    putAccepted: async (figures) => {
      for (const { partition, tenant, day, answers } of figures)
        await whileRedisServes(client.hset(acceptedKey(partition), acceptedField(tenant, day), answers));
    },
    raiseOutbox: (partition, id) => raiseOutbox(client, partition, id),
    finish: async ({ partitions }, facts) => {
      const now = new Date().toISOString();
      // The marker says of a partition that all is there; the deployment's, that all partitions are.
      for (const partition of partitions) await whileRedisServes(client.set(markerKey(partition), now));
      await whileRedisServes(client.hsetnx(metaKey, 'deployment_id', facts.deploymentId));
      await whileRedisServes(client.hsetnx(metaKey, 'created_at', facts.createdAt));
      await whileRedisServes(client.hset(metaKey, notedKept));
      await whileRedisServes(client.hsetnx(metaKey, 'partitions', `${facts.partitions}`));
      await whileRedisServes(client.del(checkpointKey));
    },
  };
}

/** In the first layout records without advice were shorter. */
function answerOf(base64: string): Buffer {
  const record = Buffer.from(base64, 'base64');
  return Buffer.concat([record, Buffer.alloc(answerBytes - record.length, 0xff)]);
}

/** An id that is taken has been taken again since. */
async function putTakenBack(
  client: RedisClient,
  ids: readonly TakenBackId[],
  partitions: readonly number[],
  count: number,
): Promise<void> {
  for (const { tenant, userId, eventId, firstAnswer } of ids) {
    const partition = partitionOf(tenant, userId, count);
    if (!partitions.includes(partition)) continue;
    const id = hashEventId(eventId);
    const taken = await readIds(client, { partition, tenant, userId }, [id]);
    const answer = answerOf(firstAnswer);
    const second = answer.readUInt32LE(0);
    if (taken.find(id, second) !== null) continue;
    taken.take(id, answer, second);
    await whileRedisServes(client.hset(eventIdsKey(partition, tenant, userId), ...taken.changes().flat()));
  }
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

async function putGoals(
  client: RedisClient,
  goals: readonly GoalRecord[],
  partitions: readonly number[],
  count: number,
): Promise<void> {
  const wanted = new Set(partitions);
  for (const goal of goals) {
    const partition = partitionOf(goal.tenant, goal.userId, count);
    if (!wanted.has(partition)) continue;
    const key = learnerKey(partition, goal.tenant, goal.userId);
    await whileRedisServes(client.hset(key, goalField, encodeGoal(goal)));
  }
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
