/**
 * Restores Redis from ClickHouse, learners by replay. The markers that make Redis usable come last; until
 * then the service responds 503. Each step is idempotent. A later run resumes if the same partitions are missing.
 */

import type { DeploymentRecord } from '../../contracts/access/access.js';
import { StartError } from '../../lifecycle.js';
import { groupBy } from '../../lists.js';
import { idWindowSeconds } from '../../store/learners/event-ids.js';
import { selectRetainedVersions } from '../../store/rebuild/facts-restore.js';
import type { Checkpoint, RebuildStore, SharedState } from '../../store/rebuild/rebuild-store.js';
import { partitionOf, stateVersion } from '../../store/redis/keys.js';
import { defaultPartitions, type VersionMismatch } from '../../store/redis/server/deployment.js';
import type { RebuildSource } from '../../warehouse/reads/rebuild-source.js';
import { type RebuildDependencies, type RebuildOptions, replayAllLearners } from './replay-learners.js';

/**
 * `resumedAfter`: answers restored by an earlier run; `broken`: some learners with missing or duplicate rows.
 */
export type RebuildResult = NonNullable<Awaited<ReturnType<typeof rebuild>>>;

/** @returns null if there is nothing to restore @throws StartError */
export async function rebuild(dependencies: RebuildDependencies, options: RebuildOptions) {
  const { source, store } = dependencies;
  const since = performance.now();
  const hasDeployment = (await store.readPartitionCount()) !== null;
  if (!hasDeployment && !(await source.hasStoredState())) return null;
  const facts = await resolveDeployment(dependencies);
  const lostPartitions = await store.findLostPartitions(facts.partitions);
  const lostState = await findRestorableShared(dependencies, hasDeployment);
  if (lostPartitions.length === 0 && lostState.length === 0 && hasDeployment) return null;
  const start = await resumeOrStart(store, lostPartitions, lostState);
  await source.restoreReplaced(lostPartitions);
  const { checkpoint, ...replayed } = await replayAllLearners(dependencies, options, facts.partitions, start);
  await restoreTenants(dependencies, options, checkpoint);
  const unreadableKeys = await restoreOtherState(dependencies, options, checkpoint, facts.partitions);
  options.ensureMayContinue();
  await store.finish(checkpoint, facts);
  const { partitions, learners, answers } = checkpoint;
  return {
    ...{ partitions: partitions.length, learners, answers, resumedAfter: start.answers },
    ...{ ...replayed, unreadableKeys, seconds: (performance.now() - since) / 1000 },
  };
}

/** Without a record, assumes the default partitions. Sampled rows must confirm their number. */
async function resolveDeployment({ source, store }: RebuildDependencies): Promise<DeploymentRecord> {
  const recorded = await source.deployment();
  const partitions = (await store.readPartitionCount()) ?? recorded?.partitions ?? defaultPartitions;
  const samples = await source.sampleLearners();
  if (samples.some(({ tenant, userId, partition }) => partitionOf(tenant, userId, partitions) !== partition))
    throw new StartError(
      `The rows in ClickHouse do not belong to a deployment with ${partitions} partitions. Check the database in CLICKHOUSE_URL.`,
    );
  const createdAt = new Date().toISOString();
  return { deploymentId: `rebuilt-${Date.now()}`, createdAt, ...recorded, partitions };
}

/** Missing state outside partitions that ClickHouse can restore. */
async function findRestorableShared(
  { source, store }: RebuildDependencies,
  hasDeployment: boolean,
): Promise<SharedState[]> {
  const missing = await store.findMissingShared();
  // Redis is empty: restore every kind. Items have counters even without a published model.
  if (!hasDeployment) return missing;
  const isStored: Readonly<Record<SharedState, () => Promise<boolean>>> = {
    keys: async () => (await source.keys()).keys.length > 0,
    catalogues: async () =>
      (await source.fetchCatalogue()).length > 0 || (await source.timeZones()).length > 0,
    models: async () => (await source.fetchModelChanges()).length > 0,
    webhooks: async () => (await source.fetchWebhooks()).length > 0,
    mappings: async () => (await source.mappings()).length > 0,
    groups: async () => (await source.fetchGroups()).length > 0,
  };
  const lost = await Promise.all(missing.map((name) => isStored[name]()));
  return missing.filter((_, i) => lost[i]);
}

async function resumeOrStart(
  store: RebuildStore,
  partitions: readonly number[],
  shared: readonly SharedState[],
): Promise<Checkpoint> {
  const found = await store.loadCheckpoint();
  if (found?.partitions.join() === partitions.join()) return found;
  const idsFrom = Math.floor(Date.now() / 1000) - idWindowSeconds;
  const initialProgress = { after: null, learnersDone: false, learners: 0, answers: 0 };
  const checkpoint = { kept: stateVersion, partitions, shared, idsFrom, ...initialProgress };
  await store.saveCheckpoint(checkpoint);
  return checkpoint;
}

const createStepReporter =
  ({ ensureMayContinue, onProgress }: RebuildOptions, { answers }: Checkpoint) =>
  (step: string): void => {
    ensureMayContinue();
    onProgress({ step, answers, total: answers });
  };

const getTenant = ({ tenant }: { readonly tenant: string }): string => tenant;

async function restoreTenants(
  { source, store }: RebuildDependencies,
  options: RebuildOptions,
  checkpoint: Checkpoint,
): Promise<void> {
  const step = createStepReporter(options, checkpoint);
  const { shared } = checkpoint;
  const tenants = await source.listTenants();
  step('catalogues');
  for (const tenant of tenants)
    for await (const skills of source.readAnsweredSkills(tenant))
      await store.restoreAnsweredSkills(tenant, skills);
  for (const [tenant, entries] of groupBy(await source.fetchCatalogue(), getTenant)) {
    const skillIds = entries.map(({ skillId }) => skillId);
    await store.registerSkills(tenant, skillIds);
    if (shared.includes('catalogues')) await store.restoreCatalogue(tenant, entries);
  }
  // After the catalogues, whose marks contain the zones. A change checks the zone of every learner.
  if (shared.includes('catalogues'))
    for (const { tenant, timeZone, updatedAt } of await source.timeZones())
      await store.restoreTimeZone(tenant, timeZone, updatedAt);
  if (shared.includes('mappings'))
    for (const { tenant, text } of await source.mappings()) await store.restoreMapping(tenant, text);
  if (!shared.includes('models')) return;
  step('models and items');
  const newest = await source.fetchNewestVersions();
  const changesByTenant = groupBy(await source.fetchModelChanges(), getTenant);
  // Changes are newest first. Items belong to the active version, which is 0 before the first fit.
  for (const tenant of tenants)
    for await (const items of source.readItems(tenant))
      await store.restoreItems(tenant, changesByTenant.get(tenant)?.[0]?.version ?? 0, items);
  for (const [tenant, changes] of changesByTenant) {
    const kept = [];
    for (const change of selectRetainedVersions(changes)) kept.push(await source.fetchModelTexts(change));
    await store.restoreModels(tenant, changes, kept, newest.get(tenant) ?? 0);
  }
}

/** @returns the number of keys that were sealed with another secret */
async function restoreOtherState(
  { source, store }: RebuildDependencies,
  options: RebuildOptions,
  checkpoint: Checkpoint,
  partitionCount: number,
): Promise<number> {
  const step = createStepReporter(options, checkpoint);
  const { partitions, idsFrom } = checkpoint;
  for await (const ids of source.readRetracted(idsFrom))
    await store.restoreRetractedIds(ids, partitions, partitionCount);
  step('goals');
  for await (const goals of source.readGoals()) await store.restoreGoals(goals, partitions, partitionCount);
  step('groups and profiles');
  for await (const profiles of source.readProfiles())
    await store.restoreProfiles(profiles, partitions, partitionCount);
  if (checkpoint.shared.includes('groups')) {
    for await (const memberships of source.readMemberships()) await store.restoreMemberships(memberships);
    await store.restoreGroups(await source.fetchGroups());
  }
  step('daily counts');
  await store.restoreAcceptedCounts(partitions, await source.fetchDailyAnswers(partitions));
  const month = await source.fetchArchivedMonth();
  for (const partition of partitions) {
    if (month > 0) await store.raiseFence(partition, month);
    const last = await source.findLastId(partition);
    if (last !== null) await store.raiseOutboxId(partition, last);
  }
  step('webhooks');
  if (checkpoint.shared.includes('webhooks')) await store.restoreEndpoints(await source.fetchWebhooks());
  // A start saves configured keys as valid; a recorded revocation overrides that.
  step('API keys');
  const { keys, unreadable } = await source.keys();
  await store.restoreKeys(keys);
  return unreadable;
}

/**
 * Retires learners of an earlier version, so that a rebuild restores them in the current format. Until
 * `adoptVersion`, the markers can move back. While they are aside, the earlier version counts no answers.
 * @throws StartError without changes if data would be lost
 */
export async function retireOlderVersion(
  { source, store }: Pick<RebuildDependencies, 'source' | 'store'>,
  older: VersionMismatch,
  ensureMayContinue: () => void,
): Promise<void> {
  const rejectLoss = async (reason: string | null): Promise<void> => {
    if (reason === null) return;
    // Also moves back the markers that an earlier, killed run had moved aside.
    await store.moveMarkers(older, 'back');
    throw new StartError(reason);
  };
  await rejectLoss((await findPendingReason(store, older)) ?? (await findUnknownReason(source, store)));
  ensureMayContinue();
  await store.moveMarkers(older, 'aside');
  // No more answers arrive now. Check the answers since the first check.
  await rejectLoss(await findPendingReason(store, older));
  ensureMayContinue();
  await store.adoptVersion(older);
}

async function findPendingReason(store: RebuildStore, older: VersionMismatch): Promise<string | null> {
  const waiting = await store.describePending(older.partitions);
  return waiting.length === 0
    ? null
    : `Redis has data that is not in ClickHouse: ${waiting.join(', ')}. Start the previous version, wait until health shows 0 for outbox_length, journal_length, erasures_due and parked (npm run parked), stop it, and run this command again.`;
}

const maxUnknownNames = 5;

/** Learners without rows in ClickHouse cannot be restored. */
async function findUnknownReason(source: RebuildSource, store: RebuildStore): Promise<string | null> {
  const isEmpty = !(await source.hasStoredState());
  const names: string[] = [];
  for await (const learners of store.scanLearners())
    for (const { tenant, userId } of isEmpty ? learners : await source.findUnstored(learners))
      names.push(`${tenant}:${userId}`);
  return names.length === 0
    ? null
    : `ClickHouse has no answers of ${names.length} learners in Redis (${names.slice(0, maxUnknownNames).join(', ')}). Check the database in CLICKHOUSE_URL.`;
}
