/** A version is written completely, then activated in one compare-and-set. */
import type { Publication } from '../../contracts/models/fit-tasks.js';
import {
  decodeModelSteps,
  type ModelChange,
  type ModelChangeRecord,
} from '../../contracts/models/stored-model.js';
import { createWebhookEvent, toStreamFields } from '../../contracts/webhooks/webhook-events.js';
import { type TenantModel, unfittedModel } from '../../domain/catalogue/tenant-model.js';
import type { IntervalCalibration } from '../../domain/prediction/interval-calibration.js';
import { runInSlices } from '../../slices.js';
import { defineScript } from '../redis/commands/script.js';
import { appendEventsLua } from '../redis/commands/webhook-events.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import {
  activeModelsKey,
  calibratedTenantsKey,
  lastFitsKey,
  modelEventsKey,
  modelItemsKey,
  modelLogKey,
  modelVersionKey,
  modelVersionsKey,
  newestModelKey,
} from '../redis/keys.js';
import { readCalibration, saveCalibration } from './calibration-store.js';
import { copyItems, createItemsHash, storeItems } from './item-store.js';

export const maxRetainedVersions = 10;
/** After a rollback to an older version, items have no counts and no terms. */
const maxItemVersions = 3;
export const maxLoggedChanges = 100;

/**
 * ARGV: tenant, expected version, new version, action, time, log size, event. Result: 0 if another version
 * was active.
 */
const activateVersionScript = defineScript(3)<readonly (string | number)[], number>(`
${appendEventsLua}
local expected, version = ARGV[2], ARGV[3]
if (redis.call('HGET', KEYS[1], ARGV[1]) or '0') ~= expected then return 0 end
local last = redis.call('LINDEX', KEYS[2], 0)
local change = last and tonumber(string.match(last, '^%d+')) + 1 or 1
redis.call('LPUSH', KEYS[2], table.concat({ change, version, expected, ARGV[4], ARGV[5] }, ' '))
redis.call('LTRIM', KEYS[2], 0, ARGV[6] - 1)
redis.call('HSET', KEYS[1], ARGV[1], version)
appendEvents(KEYS[3], 7)
return 1
`);

/** 0 before the first fit. */
export const fetchActiveVersion = async (client: RedisClient, tenant: string): Promise<number> =>
  Number((await mapRedisErrors(client.hget(activeModelsKey, tenant))) ?? 0);

/** @returns false if another version was activated first */
export async function publishModel(client: RedisClient, publication: Publication): Promise<boolean> {
  const { tenant, version, basedOn, model, report, items } = publication;
  // Registered first: if the process dies later, `pruneVersions` finds the version.
  await mapRedisErrors(client.sadd(modelVersionsKey(tenant), version));
  await mapRedisErrors(client.hset(modelVersionKey(tenant, version), { model, report, based_on: basedOn }));
  if (items === null) await copyItems(client, tenant, basedOn, version);
  else await storeItems(client, tenant, version, items);
  const isActivated = await activateVersion(client, 'fit', publication);
  if (!isActivated) await removeVersion(client, tenant, version);
  return isActivated;
}

async function activateVersion(
  client: RedisClient,
  action: ModelChange['action'],
  { tenant, basedOn, version, publishedAt }: Omit<ModelChange, 'change' | 'action'>,
): Promise<boolean> {
  const data = { version, based_on: basedOn, published_at: new Date(publishedAt).toISOString() };
  const event = createWebhookEvent('model.published', tenant, null, publishedAt, data);
  const keys = [activeModelsKey, modelLogKey(tenant), modelEventsKey];
  const args = [tenant, basedOn, version, action, publishedAt, maxLoggedChanges, ...toStreamFields(event)];
  return (await activateVersionScript(client, ...keys, ...args)) === 1;
}

/** Resets to version 0 first, so that a running fit publishes nothing. */
export async function removeModels(client: RedisClient, tenant: string): Promise<void> {
  await mapRedisErrors(client.hdel(activeModelsKey, tenant));
  await mapRedisErrors(client.unlink(modelLogKey(tenant)));
  await mapRedisErrors(client.hdel(lastFitsKey, tenant));
  await saveCalibration(client, tenant, null);
  for (const version of await mapRedisErrors(client.smembers(modelVersionsKey(tenant))))
    await removeVersion(client, tenant, Number(version));
  await mapRedisErrors(client.unlink(newestModelKey(tenant), modelItemsKey(tenant, 0)));
}

async function removeVersion(client: RedisClient, tenant: string, version: number): Promise<void> {
  await mapRedisErrors(client.unlink(modelVersionKey(tenant, version), modelItemsKey(tenant, version)));
  await mapRedisErrors(client.srem(modelVersionsKey(tenant), version));
}

/** Newest first. `published`: present versions that were ever active. */
async function readVersions(client: RedisClient, tenant: string) {
  const [inForce, members, log] = await Promise.all([
    fetchActiveVersion(client, tenant),
    mapRedisErrors(client.smembers(modelVersionsKey(tenant))),
    readLog(client, tenant),
  ]);
  const present = members.map(Number).sort((a, b) => b - a);
  const published = present.filter((version) => log.some((change) => change.version === version));
  return { inForce, present, published, log };
}

/** Newest first. */
async function readLog(client: RedisClient, tenant: string): Promise<ModelChange[]> {
  const lines = await mapRedisErrors(client.lrange(modelLogKey(tenant), 0, -1));
  return lines.map((line) => {
    const [change, version, basedOn, action, publishedAt] = line.split(' ');
    return {
      tenant,
      change: Number(change),
      version: Number(version),
      basedOn: Number(basedOn),
      action: action === 'rollback' ? 'rollback' : 'fit',
      publishedAt: Number(publishedAt),
    };
  });
}

/** Removes old versions, and versions of processes that died while publishing. */
async function pruneVersions(client: RedisClient, tenant: string): Promise<void> {
  const { inForce, present, published } = await readVersions(client, tenant);
  const isRetained = (newest: number, version: number): boolean =>
    version === inForce || published.slice(0, newest).includes(version);
  // A version above all published ones may be about to be published.
  for (const version of present.filter((version) => version < (published[0] ?? 0))) {
    if (!isRetained(maxRetainedVersions, version)) await removeVersion(client, tenant, version);
    else if (!isRetained(maxItemVersions, version))
      await mapRedisErrors(client.unlink(modelItemsKey(tenant, version)));
  }
  if (published.length >= maxItemVersions && inForce !== 0)
    await mapRedisErrors(client.unlink(modelItemsKey(tenant, 0)));
}

/** @throws Error for a missing or unreadable version */
export async function readModel(client: RedisClient, tenant: string, version: number): Promise<TenantModel> {
  if (version === 0) return unfittedModel;
  const text = await mapRedisErrors(client.hget(modelVersionKey(tenant, version), 'model'));
  if (text === null) throw new Error(`model version ${version} of tenant ${tenant} is missing`);
  return runInSlices(decodeModelSteps(text));
}

export type ModelStore = ReturnType<typeof createModelStore>;

export const createModelStore = (client: RedisClient) => ({
  fetchActiveVersion: (tenant: string) => fetchActiveVersion(client, tenant),
  read: (tenant: string, version: number) => readModel(client, tenant, version),
  /** Never returns a number twice. */
  reserveVersion: (tenant: string) => mapRedisErrors(client.incr(newestModelKey(tenant))),
  /** Newest first, without version 0. */
  listVersions: async (tenant: string) => {
    const { inForce, present, log } = await readVersions(client, tenant);
    return present.flatMap((version) => {
      const fit = log.find((change) => change.action === 'fit' && change.version === version);
      if (fit === undefined) return [];
      return [{ version, basedOn: fit.basedOn, publishedAt: fit.publishedAt, inForce: version === inForce }];
    });
  },
  /** Activates a retained version, or 0, if `expected` is active. */
  activate: async (tenant: string, version: number, expected: number) => {
    // Older versions may still exist until the publisher of the newest removes them.
    const { published } = await readVersions(client, tenant);
    const isRetained = published.slice(0, maxRetainedVersions).includes(version);
    const hasModel = () => mapRedisErrors(client.hexists(modelVersionKey(tenant, version), 'model'));
    if (version !== 0 && !(isRetained && (await hasModel()) === 1)) return 'not-kept';
    await createItemsHash(client, tenant, version);
    const change = { tenant, version, basedOn: expected, publishedAt: Date.now() };
    return (await activateVersion(client, 'rollback', change)) ? 'used' : 'superseded';
  },
  listTenants: () => mapRedisErrors(client.hkeys(activeModelsKey)),
  readCalibration: (tenant: string) => readCalibration(client, tenant),
  saveCalibration: (tenant: string, calibration: IntervalCalibration | null, isFitted: boolean) =>
    saveCalibration(client, tenant, calibration, isFitted),
  listCalibrated: () => mapRedisErrors(client.hkeys(calibratedTenantsKey)),
  /** Oldest first. The log has only the newest `maxLoggedChanges`. */
  listChangesAfter: async (tenant: string, change: number): Promise<ModelChangeRecord[]> => {
    const missing = (await readLog(client, tenant)).filter((found) => found.change > change).reverse();
    const texts = missing.map(({ version }) =>
      client.hmget(modelVersionKey(tenant, version), 'model', 'report'),
    );
    const found = await mapRedisErrors(Promise.all(texts));
    return missing.map((one, i) => ({ ...one, model: found[i]?.[0] ?? '', report: found[i]?.[1] ?? '' }));
  },
  /** Null before the first fit. */
  fetchLastFit: (tenant: string) => mapRedisErrors(client.hget(lastFitsKey, tenant)),
  /** If the process dies before this call, the next fit removes old versions. */
  finishFit: async (tenant: string, mark: string): Promise<void> => {
    await pruneVersions(client, tenant);
    await mapRedisErrors(client.hset(lastFitsKey, tenant, mark));
  },
});

export type RetainedVersion = Awaited<ReturnType<ModelStore['listVersions']>>[number];
