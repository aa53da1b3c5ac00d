/** Writes everything that a rebuild restores, except learners' states. All writes are idempotent. */
import type { StoredKey } from '../../contracts/access.js';
import type { LearnerId } from '../../contracts/learner-name.js';
import { type OutboxId, toEntryId } from '../../contracts/outbox-ids.js';
import type {
  AnsweredSkill,
  CatalogueRecord,
  DailyAnswers,
  GoalRecord,
  ItemRecord,
  RetractedEvent,
} from '../../contracts/rebuild-tasks.js';
import type { ModelChange, ModelChangeRecord } from '../../contracts/stored-model.js';
import type { WebhookRecord } from '../../contracts/webhooks.js';
import { groupByPartition, splitIntoParts } from '../../lists.js';
import { createKeyStore } from '../access/api-keys.js';
import { raiseFence } from '../audit/retention-fence.js';
import { putCatalogueEntries } from '../catalogue/catalogue-store.js';
import { addKnownSkills, makeRare, noteLearners } from '../catalogue/known-skills.js';
import { hashEventId } from '../learners/event-ids.js';
import { restoreDailyCheck } from '../learners/goal-checks.js';
import { encodeGoal } from '../learners/goals.js';
import { goalField } from '../learners/learner-codec.js';
import type { Placed } from '../learners/learner-commands.js';
import { readIds } from '../learners/learner-reads.js';
import { hashItem, makeItems, packCounters } from '../models/item-store.js';
import { keptChanges, keptVersions } from '../models/model-store.js';
import { type RedisClient, resultsOf, whileRedisServes } from '../redis/client.js';
import {
  acceptedField,
  acceptedKey,
  catalogueKey,
  catalogueRevisionsKey,
  eventIdsKey,
  itemsKey,
  learnerKey,
  modelLogKey,
  modelsKey,
  newestVersionKey,
  outboxKey,
  partitionOf,
  removedKey,
  versionKey,
  versionsKey,
  xapiMappingsKey,
} from '../redis/keys.js';
import { putEndpoints } from '../webhooks/endpoints.js';

const together = 1000;

export function versionsKept(changes: readonly ModelChange[]): ModelChange[] {
  const fits = changes.filter(({ action }) => action === 'fit').sort((a, b) => b.version - a.version);
  const inForce = changes[0]?.version ?? 0;
  return fits.filter(({ version }, i) => i < keptVersions || version === inForce);
}

export function createFactsRestore(client: RedisClient) {
  const serve = whileRedisServes;
  const putFields = async (key: string, fields: readonly (readonly (string | number | Buffer)[])[]) => {
    for (const part of splitIntoParts(fields, together)) await serve(client.hset(key, ...part.flat()));
  };

  return {
    putRetracted: async (ids: readonly RetractedEvent[], partitions: readonly number[], count: number) => {
      for (const [place, id] of placed(ids, partitions, count)) await putRetracted(client, place, id);
    },
    putGoals: async (goals: readonly GoalRecord[], partitions: readonly number[], count: number) => {
      for (const [place, goal] of placed(goals, partitions, count)) {
        const key = learnerKey(place.partition, place.tenant, place.userId);
        await serve(client.hset(key, goalField, encodeGoal(goal)));
        await restoreDailyCheck(client, place, goal);
      }
    },
    putMapping: (tenant: string, text: string) => serve(client.hset(xapiMappingsKey, tenant, text)),
    raiseFence: (partition: number, month: number) => serve(raiseFence(client, partition, month)),
    /** Adds and removes an entry, so that later rows get higher ids. Does nothing if the stream exists. */
    raiseOutbox: async (partition: number, last: OutboxId): Promise<void> => {
      const [key, id] = [outboxKey(partition), toEntryId(last)];
      if ((await serve(client.exists(key))) === 1) return;
      await resultsOf(client.multi().xadd(key, id, 'r', '').xdel(key, id));
    },
    /** Skills with too few learners become rare, unless the catalogue has them. */
    noteAnswered: async (tenant: string, skills: readonly AnsweredSkill[]): Promise<void> => {
      for (const part of splitIntoParts(skills, together)) {
        const skillIds = part.map(({ skillId }) => skillId);
        await makeRare(client, tenant, skillIds);
        const pairs = part.flatMap(({ skillId, userIds }) => userIds.map((userId) => ({ skillId, userId })));
        for (const some of splitIntoParts(pairs, together)) await noteLearners(client, tenant, some);
        const entries = await serve(client.hmget(catalogueKey(tenant), ...skillIds));
        const set = skillIds.filter((_, i) => entries[i] !== null);
        await addKnownSkills(client, tenant, set);
      }
    },
    addSkills: (tenant: string, skillIds: readonly string[]) => addKnownSkills(client, tenant, skillIds),
    putCatalogue: async (tenant: string, entries: readonly CatalogueRecord[]): Promise<void> => {
      for (const part of splitIntoParts(entries, together)) await putCatalogueEntries(client, tenant, part);
      const [newest] = [...entries].sort((a, b) => b.updatedAt - a.updatedAt || b.revision - a.revision);
      if (newest === undefined) return;
      await serve(client.hset(catalogueRevisionsKey, tenant, `${newest.revision} ${newest.updatedAt}`));
    },
    putItems: (tenant: string, version: number, items: readonly ItemRecord[]) =>
      putFields(
        itemsKey(tenant, version),
        items.map((item) => [hashItem(item.itemId), packCounters(item)]),
      ),
    /** Activates the last version after writing everything else. @param changes newest first, at least one */
    putModels: async (
      tenant: string,
      changes: readonly ModelChange[],
      kept: readonly ModelChangeRecord[],
      newest: number,
    ): Promise<void> => {
      for (const { version, basedOn, model, report } of kept.filter((one) => one.model !== '')) {
        await serve(client.sadd(versionsKey(tenant), version));
        await serve(client.hset(versionKey(tenant, version), { model, report, based_on: basedOn }));
      }
      const lines = changes
        .slice(0, keptChanges)
        .map((one) => `${one.change} ${one.version} ${one.basedOn} ${one.action} ${one.publishedAt}`);
      const inForce = changes[0]?.version ?? 0;
      if (inForce !== 0) await makeItems(client, tenant, inForce);
      await serve(client.del(modelLogKey(tenant)));
      await serve(client.rpush(modelLogKey(tenant), ...lines));
      await serve(client.set(newestVersionKey(tenant), newest));
      await serve(client.hset(modelsKey, tenant, inForce));
    },
    putEndpoints: (endpoints: readonly WebhookRecord[]) => putEndpoints(client, endpoints),
    putKeys: async (keys: readonly StoredKey[]): Promise<void> => {
      const { restore } = createKeyStore(client);
      for (const key of keys) await restore(key);
    },
    /** All stored answers count as accepted, none as removed. */
    putAccepted: async (partitions: readonly number[], days: readonly DailyAnswers[]): Promise<void> => {
      const own = groupByPartition(days);
      for (const partition of partitions) {
        await serve(client.del(acceptedKey(partition), removedKey(partition)));
        const counts = own.get(partition) ?? [];
        await putFields(
          acceptedKey(partition),
          counts.map(({ tenant, day, answers }) => [acceptedField(tenant, day), answers]),
        );
      }
    },
  };
}

const placed = <Item extends LearnerId>(
  items: readonly Item[],
  wanted: readonly number[],
  count: number,
): (readonly [Placed, Item])[] =>
  items
    .map((item) => [{ ...item, partition: partitionOf(item.tenant, item.userId, count) }, item] as const)
    .filter(([{ partition }]) => wanted.includes(partition));

/** A used id was counted again after the retraction. */
async function putRetracted(
  client: RedisClient,
  place: Placed,
  { eventId, firstAnswer }: RetractedEvent,
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
