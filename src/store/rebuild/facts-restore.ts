/** Writes everything that a rebuild restores, except learners' states. All writes are idempotent. */
import type { StoredKey } from '../../contracts/access/access.js';
import type { LearnerId } from '../../contracts/learners/learner-name.js';
import type { ModelChange, ModelChangeRecord } from '../../contracts/models/stored-model.js';
import { type OutboxId, toEntryId } from '../../contracts/outbox/outbox-ids.js';
import type {
  AnsweredSkill,
  CatalogueRecord,
  DailyAnswers,
  GoalRecord,
  GroupRecord,
  ItemCountRecord,
  MembershipRecord,
  ProfileRecord,
  RetractedEvent,
} from '../../contracts/rebuild/rebuild-tasks.js';
import type { WebhookRecord } from '../../contracts/webhooks/webhooks.js';
import { groupByPartition, splitIntoParts } from '../../lists.js';
import { createKeyStore } from '../access/api-keys.js';
import { raiseFence } from '../audit/retention-fence.js';
import { storeCatalogueEntries } from '../catalogue/catalogue-store.js';
import { recordLearners, registerRareSkills, registerSkills } from '../catalogue/registered-skills.js';
import { createTimeZoneStore } from '../catalogue/time-zones.js';
import { restoreProfile } from '../groups/profile-store.js';
import { restoreGroups, restoreMemberships } from '../groups/restore-groups.js';
import { hashEventId } from '../learners/event-ids.js';
import { restoreDailyCheck } from '../learners/goal-checks.js';
import { encodeGoal } from '../learners/goals.js';
import { goalField } from '../learners/learner-codec.js';
import type { LearnerLocation } from '../learners/learner-commands.js';
import { readEventIds } from '../learners/learner-reads.js';
import { createItemsHash, hashItem, packCounters } from '../models/item-store.js';
import { maxLoggedChanges, maxRetainedVersions } from '../models/model-store.js';
import { executeAll, mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import {
  acceptedCountsKey,
  acceptedField,
  activeModelsKey,
  catalogueKey,
  catalogueRevisionsKey,
  eventIdsKey,
  learnerKey,
  modelItemsKey,
  modelLogKey,
  modelVersionKey,
  modelVersionsKey,
  newestModelKey,
  outboxKey,
  partitionOf,
  removedCountsKey,
  xapiMappingsKey,
} from '../redis/keys.js';
import { restoreEndpoints } from '../webhooks/endpoints.js';

const argumentsPerCommand = 1000;

export function selectRetainedVersions(changes: readonly ModelChange[]): ModelChange[] {
  const fits = changes.filter(({ action }) => action === 'fit').sort((a, b) => b.version - a.version);
  const inForce = changes[0]?.version ?? 0;
  return fits.filter(({ version }, i) => i < maxRetainedVersions || version === inForce);
}

export function createFactsRestore(client: RedisClient) {
  const run = mapRedisErrors;
  const storeFields = async (key: string, fields: readonly (readonly (string | number | Buffer)[])[]) => {
    for (const part of splitIntoParts(fields, argumentsPerCommand))
      await run(client.hset(key, ...part.flat()));
  };

  return {
    restoreRetractedIds: async (
      ids: readonly RetractedEvent[],
      partitions: readonly number[],
      count: number,
    ) => {
      for (const [place, id] of locateLearners(ids, partitions, count))
        await restoreRetractedId(client, place, id);
    },
    restoreGoals: async (goals: readonly GoalRecord[], partitions: readonly number[], count: number) => {
      for (const [place, goal] of locateLearners(goals, partitions, count)) {
        const key = learnerKey(place.partition, place.tenant, place.userId);
        await run(client.hset(key, goalField, encodeGoal(goal)));
        await restoreDailyCheck(client, place, goal);
      }
    },
    restoreProfiles: async (
      profiles: readonly ProfileRecord[],
      partitions: readonly number[],
      count: number,
    ) => {
      for (const [{ partition }, profile] of locateLearners(profiles, partitions, count))
        await restoreProfile(client, partition, profile);
    },
    restoreGroups: (groups: readonly GroupRecord[]) => restoreGroups(client, groups),
    restoreMemberships: (memberships: readonly MembershipRecord[]) => restoreMemberships(client, memberships),
    restoreMapping: (tenant: string, text: string) => run(client.hset(xapiMappingsKey, tenant, text)),
    raiseFence: (partition: number, month: number) => run(raiseFence(client, partition, month)),
    /** Adds and removes an entry, so that later rows get higher ids. Does nothing if the stream exists. */
    raiseOutboxId: async (partition: number, last: OutboxId): Promise<void> => {
      const [key, id] = [outboxKey(partition), toEntryId(last)];
      if ((await run(client.exists(key))) === 1) return;
      await executeAll(client.multi().xadd(key, id, 'r', '').xdel(key, id));
    },
    /** All skills become rare first. Enough learners, or an entry in the catalogue, then make a skill common. */
    restoreAnsweredSkills: async (tenant: string, skills: readonly AnsweredSkill[]): Promise<void> => {
      for (const part of splitIntoParts(skills, argumentsPerCommand)) {
        const skillIds = part.map(({ skillId }) => skillId);
        await registerRareSkills(client, tenant, skillIds);
        const pairs = part.flatMap(({ skillId, userIds }) => userIds.map((userId) => ({ skillId, userId })));
        for (const some of splitIntoParts(pairs, argumentsPerCommand))
          await recordLearners(client, tenant, some);
        const entries = await run(client.hmget(catalogueKey(tenant), ...skillIds));
        const set = skillIds.filter((_, i) => entries[i] !== null);
        await registerSkills(client, tenant, set);
      }
    },
    registerSkills: (tenant: string, skillIds: readonly string[]) => registerSkills(client, tenant, skillIds),
    restoreCatalogue: async (tenant: string, entries: readonly CatalogueRecord[]): Promise<void> => {
      for (const part of splitIntoParts(entries, argumentsPerCommand))
        await storeCatalogueEntries(client, tenant, part);
      const [newest] = [...entries].sort((a, b) => b.updatedAt - a.updatedAt || b.revision - a.revision);
      if (newest === undefined) return;
      await run(client.hset(catalogueRevisionsKey, tenant, `${newest.revision} ${newest.updatedAt}`));
    },
    restoreTimeZone: createTimeZoneStore(client).set,
    restoreItems: (tenant: string, version: number, items: readonly ItemCountRecord[]) =>
      storeFields(
        modelItemsKey(tenant, version),
        items.map((item) => [hashItem(item.itemId), packCounters(item)]),
      ),
    /** Activates the last version after writing everything else. @param changes newest first, at least one */
    restoreModels: async (
      tenant: string,
      changes: readonly ModelChange[],
      retained: readonly ModelChangeRecord[],
      newest: number,
    ): Promise<void> => {
      for (const { version, basedOn, model, report } of retained.filter((one) => one.model !== '')) {
        await run(client.sadd(modelVersionsKey(tenant), version));
        await run(client.hset(modelVersionKey(tenant, version), { model, report, based_on: basedOn }));
      }
      const lines = changes
        .slice(0, maxLoggedChanges)
        .map((one) => `${one.change} ${one.version} ${one.basedOn} ${one.action} ${one.publishedAt}`);
      const activeVersion = changes[0]?.version ?? 0;
      if (activeVersion !== 0) await createItemsHash(client, tenant, activeVersion);
      await run(client.del(modelLogKey(tenant)));
      await run(client.rpush(modelLogKey(tenant), ...lines));
      await run(client.set(newestModelKey(tenant), newest));
      await run(client.hset(activeModelsKey, tenant, activeVersion));
    },
    restoreEndpoints: (endpoints: readonly WebhookRecord[]) => restoreEndpoints(client, endpoints),
    restoreKeys: async (keys: readonly StoredKey[]): Promise<void> => {
      const { restore } = createKeyStore(client);
      for (const key of keys) await restore(key);
    },
    /** Replaces the counters of whole partitions: all stored answers count as accepted, none as removed. */
    restoreAcceptedCounts: async (
      partitions: readonly number[],
      days: readonly DailyAnswers[],
    ): Promise<void> => {
      const own = groupByPartition(days);
      for (const partition of partitions) {
        await run(client.del(acceptedCountsKey(partition), removedCountsKey(partition)));
        const counts = own.get(partition) ?? [];
        await storeFields(
          acceptedCountsKey(partition),
          counts.map(({ tenant, day, answers }) => [acceptedField(tenant, day), answers]),
        );
      }
    },
  };
}

/** Skips other partitions than `partitions`. @param count of all partitions, restored or not */
const locateLearners = <Item extends LearnerId>(
  items: readonly Item[],
  partitions: readonly number[],
  count: number,
): (readonly [LearnerLocation, Item])[] =>
  items
    .map((item) => [{ ...item, partition: partitionOf(item.tenant, item.userId, count) }, item] as const)
    .filter(([{ partition }]) => partitions.includes(partition));

/** Keeps an id that is present: it was sent and counted again after the retraction. */
async function restoreRetractedId(
  client: RedisClient,
  place: LearnerLocation,
  { eventId, firstAnswer }: RetractedEvent,
): Promise<void> {
  const id = hashEventId(eventId);
  const ids = await readEventIds(client, place, [id]);
  const answer = Buffer.from(firstAnswer, 'base64');
  const second = answer.readUInt32LE(0);
  if (ids.find(id, second) !== null) return;
  ids.add(id, answer, second);
  const key = eventIdsKey(place.partition, place.tenant, place.userId);
  await mapRedisErrors(client.hset(key, ...ids.changes().flat()));
}
