/** State of a rebuild in Redis. All writes are idempotent. */
import type { DeploymentRecord } from '../../contracts/access/access.js';
import { unescapeText } from '../../contracts/answers/attempt-row.js';
import { type LearnerId, learnerName } from '../../contracts/learners/learner-name.js';
import { computeSum, groupBy, indices } from '../../lists.js';
import { scanLearners } from '../learners/scan-learners.js';
import {
  fetchStreamLengths,
  findField,
  readStreamPages,
  sendPerKey,
} from '../redis/commands/bulk-operations.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import {
  activeModelsKey,
  apiKeysKey,
  catalogueRevisionsKey,
  erasuresKey,
  groupTenantsKey,
  journalKey,
  markerKey,
  metaKey,
  outboxKey,
  parkedKey,
  partitionOf,
  sharedJournalKeys,
  stateVersion,
  subscriptionsKey,
  xapiMappingsKey,
} from '../redis/keys.js';
import type { VersionMismatch } from '../redis/server/deployment.js';
import { createFactsRestore } from './facts-restore.js';

const checkpointKey = 'st:rebuild';
export const rebuildLockKey = 'st:rebuild:lock';

/** State outside partitions. Each state has one key here: if the key is missing, Redis lost the state. */
const sharedKeys = {
  ...{ keys: apiKeysKey, catalogues: catalogueRevisionsKey, models: activeModelsKey },
  ...{ webhooks: subscriptionsKey, mappings: xapiMappingsKey, groups: groupTenantsKey },
} as const;
export type SharedState = keyof typeof sharedKeys;
const sharedStates = Object.keys(sharedKeys) as SharedState[];

export interface Checkpoint {
  /** `stateVersion` of the restored learners. A checkpoint of another version is ignored. */
  readonly kept: string;
  readonly partitions: readonly number[];
  readonly shared: readonly SharedState[];
  /** Restores event ids that arrived at this Unix second or later. */
  readonly idsFrom: number;
  readonly after: LearnerId | null;
  readonly learnersDone: boolean;
  readonly learners: number;
  readonly answers: number;
}

export type RebuildStore = ReturnType<typeof createRebuildStore>;

export function createRebuildStore(client: RedisClient) {
  const keyExists = async (key: string): Promise<boolean> => (await mapRedisErrors(client.exists(key))) === 1;
  const findMissing = async <Item>(
    items: readonly Item[],
    keyOf: (item: Item) => string,
  ): Promise<Item[]> => {
    const found = await Promise.all(items.map((item) => keyExists(keyOf(item))));
    return items.filter((_, i) => !found[i]);
  };
  return {
    ...createFactsRestore(client),
    readPartitionCount: async () => Number(await mapRedisErrors(client.hget(metaKey, 'partitions'))) || null,
    findLostPartitions: (count: number) => findMissing(indices(count), (partition) => markerKey(partition)),
    /** All states if `st:meta` is missing: a start may have written some keys into an empty Redis. */
    findMissingShared: async (): Promise<SharedState[]> =>
      (await keyExists(metaKey)) ? findMissing(sharedStates, (name) => sharedKeys[name]) : sharedStates,
    loadCheckpoint: async (): Promise<Checkpoint | null> => {
      const stored = JSON.parse((await mapRedisErrors(client.get(checkpointKey))) ?? 'null');
      return stored?.kept === stateVersion ? stored : null;
    },
    saveCheckpoint: (checkpoint: Checkpoint): Promise<unknown> =>
      mapRedisErrors(client.set(checkpointKey, JSON.stringify(checkpoint))),
    scanLearners: () => scanLearners(client),
    readPendingRows: (learners: readonly LearnerId[], count: number) =>
      readPendingRows(client, learners, count),
    describePending: (count: number) => describePending(client, indices(count)),
    /** Without markers, processes of the other version count no answers. */
    moveMarkers: async (
      { storedVersion, partitions }: VersionMismatch,
      to: 'aside' | 'back',
    ): Promise<void> => {
      for (const marker of indices(partitions).map((partition) => markerKey(partition, storedVersion))) {
        const [from, until] =
          to === 'aside' ? [marker, retiredMarkerKey(marker)] : [retiredMarkerKey(marker), marker];
        if (await keyExists(from)) await mapRedisErrors(client.rename(from, until));
      }
    },
    /** A deployment of this version, with all partitions still to restore. */
    adoptVersion: async ({ storedVersion, partitions }: VersionMismatch): Promise<void> => {
      await mapRedisErrors(client.hset(metaKey, 'model_version', stateVersion));
      for (const partition of indices(partitions))
        await mapRedisErrors(client.del(retiredMarkerKey(markerKey(partition, storedVersion))));
    },
    finish: async ({ partitions }: Checkpoint, facts: DeploymentRecord): Promise<void> => {
      const now = new Date().toISOString();
      // Markers first: a marker completes its partition. The deployment's facts complete the rebuild.
      for (const partition of partitions) await mapRedisErrors(client.set(markerKey(partition), now));
      await mapRedisErrors(client.hsetnx(metaKey, 'deployment_id', facts.deploymentId));
      await mapRedisErrors(client.hsetnx(metaKey, 'created_at', facts.createdAt));
      await mapRedisErrors(client.hset(metaKey, 'model_version', stateVersion));
      await mapRedisErrors(client.hsetnx(metaKey, 'partitions', `${facts.partitions}`));
      await mapRedisErrors(client.del(checkpointKey));
    },
  };
}

const retiredMarkerKey = (marker: string): string => `${marker}:aside`;

/** Without forecasts, which a rebuild does not need. */
async function describePending(client: RedisClient, partitions: readonly number[]): Promise<string[]> {
  const countEntries = async (keys: readonly string[]) => computeSum(await fetchStreamLengths(client, keys));
  const outboxes = partitions.map(outboxKey);
  const journals = [...partitions.map(journalKey), ...sharedJournalKeys];
  const erasures = await sendPerKey<number>(client, 'hlen', partitions.map(erasuresKey));
  const found: readonly (readonly [number, string])[] = [
    [await countEntries(outboxes), 'in outboxes'],
    [await countEntries(journals), 'in journals'],
    [await countEntries([...outboxes, ...journals].map(parkedKey)), 'parked'],
    // An erasure has two fields.
    [computeSum(erasures) / 2, 'erasures in progress'],
  ];
  return found.flatMap(([count, what]) => (count === 0 ? [] : `${count} ${what}`));
}

async function readPendingRows(
  client: RedisClient,
  learners: readonly LearnerId[],
  count: number,
): Promise<string[]> {
  const partitions = groupBy(learners, ({ tenant, userId }) => partitionOf(tenant, userId, count));
  const rows: string[] = [];
  for (const [partition, own] of partitions) {
    const names = new Set(own.map(({ tenant, userId }) => learnerName(tenant, userId)));
    const source = outboxKey(partition);
    // The outbox first, because rows move from there to the dead-letter stream.
    for (const key of [source, parkedKey(source)])
      for await (const page of readStreamPages(client, key))
        for (const row of page.flatMap(([, fields]) => findField(fields, 'r')?.split('\n') ?? [])) {
          const [tenant = '', userId = ''] = row.split('\t', 2);
          if (names.has(learnerName(tenant, unescapeText(userId)))) rows.push(row);
        }
  }
  return rows;
}
