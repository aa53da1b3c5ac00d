/** State of a rebuild in Redis. All writes are idempotent. */
import type { DeploymentRecord } from '../../contracts/access.js';
import { unescapeText } from '../../contracts/attempt-row.js';
import { type LearnerId, learnerName } from '../../contracts/learner-name.js';
import { computeSum, groupBy, indices } from '../../lists.js';
import { learnerField } from '../learners/learner-codec.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import type { OtherVersion } from '../redis/deployment.js';
import {
  apiKeysKey,
  catalogueRevisionsKey,
  erasuresKey,
  journalKey,
  keptNow,
  markerKey,
  metaKey,
  modelsKey,
  outboxKey,
  parkedKey,
  partitionOf,
  sharedJournals,
  wantedEventsKey,
  xapiMappingsKey,
} from '../redis/keys.js';
import { fieldOf, repliesTo, replyPerKey, scanKeys, streamLengths, streamPages } from '../redis/reads.js';
import { createFactsRestore } from './restored-facts.js';

const checkpointKey = 'st:rebuild';
export const rebuildLockKey = 'st:rebuild:lock';

/** State outside partitions. A missing key means that Redis lost this state. */
const sharedKeys = {
  ...{ keys: apiKeysKey, catalogues: catalogueRevisionsKey, models: modelsKey },
  ...{ webhooks: wantedEventsKey, mappings: xapiMappingsKey },
} as const;
export type SharedState = keyof typeof sharedKeys;
const sharedStates = Object.keys(sharedKeys) as SharedState[];

export interface Checkpoint {
  /** `stateVersion` of the restored learners. Another version starts from scratch. */
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
  const exists = async (key: string): Promise<boolean> => (await whileRedisServes(client.exists(key))) === 1;
  const without = async <Item>(items: readonly Item[], keyOf: (item: Item) => string): Promise<Item[]> => {
    const found = await Promise.all(items.map((item) => exists(keyOf(item))));
    return items.filter((_, i) => !found[i]);
  };
  return {
    ...createFactsRestore(client),
    partitions: async () => Number(await whileRedisServes(client.hget(metaKey, 'partitions'))) || null,
    lost: (count: number) => without(indices(count), (partition) => markerKey(partition)),
    /** Everything if Redis is empty, even if a start added some keys. */
    lostShared: async (): Promise<SharedState[]> =>
      (await exists(metaKey)) ? without(sharedStates, (name) => sharedKeys[name]) : sharedStates,
    checkpoint: async (): Promise<Checkpoint | null> => {
      const stored = JSON.parse((await whileRedisServes(client.get(checkpointKey))) ?? 'null');
      return stored?.kept === keptNow ? stored : null;
    },
    save: (checkpoint: Checkpoint): Promise<unknown> =>
      whileRedisServes(client.set(checkpointKey, JSON.stringify(checkpoint))),
    learners: () => scanLearners(client),
    waitingRows: (learners: readonly LearnerId[], count: number) => waitingRows(client, learners, count),
    waiting: (count: number) => waitingIn(client, indices(count)),
    /** Without markers, processes of the other version count no answers. */
    moveMarkers: async ({ kept, partitions }: OtherVersion, to: 'aside' | 'back'): Promise<void> => {
      for (const marker of indices(partitions).map((partition) => markerKey(partition, kept))) {
        const [from, until] = to === 'aside' ? [marker, asideKey(marker)] : [asideKey(marker), marker];
        if (await exists(from)) await whileRedisServes(client.rename(from, until));
      }
    },
    /** A deployment of this version, with all partitions still to restore. */
    noteVersion: async ({ kept, partitions }: OtherVersion): Promise<void> => {
      await whileRedisServes(client.hset(metaKey, 'model_version', keptNow));
      for (const partition of indices(partitions))
        await whileRedisServes(client.del(asideKey(markerKey(partition, kept))));
    },
    finish: async ({ partitions }: Checkpoint, facts: DeploymentRecord): Promise<void> => {
      const now = new Date().toISOString();
      // Markers first: a marker completes its partition. The deployment's facts complete the rebuild.
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

/** Without forecasts, which a rebuild does not need. */
async function waitingIn(client: RedisClient, partitions: readonly number[]): Promise<string[]> {
  const entriesOf = async (keys: readonly string[]) => computeSum(await streamLengths(client, keys));
  const outboxes = partitions.map(outboxKey);
  const journals = [...partitions.map(journalKey), ...sharedJournals];
  const erasures = await replyPerKey<number>(client, 'hlen', partitions.map(erasuresKey));
  const found: readonly (readonly [number, string])[] = [
    [await entriesOf(outboxes), 'in outboxes'],
    [await entriesOf(journals), 'in journals'],
    [await entriesOf([...outboxes, ...journals].map(parkedKey)), 'parked'],
    // An erasure has two fields.
    [computeSum(erasures) / 2, 'erasures in progress'],
  ];
  return found.flatMap(([count, what]) => (count === 0 ? [] : `${count} ${what}`));
}

const learnerPattern = 'st:{p*}:l:*';
const namePattern = /^st:\{p\d+\}:l:([^:]+):(.*)$/s;

/** A learner may appear twice. */
async function* scanLearners(client: RedisClient): AsyncGenerator<LearnerId[]> {
  for await (const [node, keys] of scanKeys(client, learnerPattern)) {
    const asked = keys.map((key) => ['hexists', key, learnerField] as const);
    const found = await repliesTo<number>(node, asked);
    yield keys.flatMap((key, i) => {
      const [, tenant, userId] = namePattern.exec(key) ?? [];
      const isLearner = found[i] === 1 && tenant !== undefined && userId !== undefined;
      return isLearner ? [{ tenant, userId }] : [];
    });
  }
}

async function waitingRows(
  client: RedisClient,
  learners: readonly LearnerId[],
  count: number,
): Promise<string[]> {
  const partitions = groupBy(learners, ({ tenant, userId }) => partitionOf(tenant, userId, count));
  const rows: string[] = [];
  for (const [partition, own] of partitions) {
    const wanted = new Set(own.map(({ tenant, userId }) => learnerName(tenant, userId)));
    const source = outboxKey(partition);
    // The outbox first, because rows move from there to the dead-letter stream.
    for (const key of [source, parkedKey(source)])
      for await (const page of streamPages(client, key))
        for (const row of page.flatMap(([, fields]) => fieldOf(fields, 'r')?.split('\n') ?? [])) {
          const [tenant = '', userId = ''] = row.split('\t', 2);
          if (wanted.has(learnerName(tenant, unescapeText(userId)))) rows.push(row);
        }
  }
  return rows;
}
