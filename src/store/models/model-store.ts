/** A version is written completely, then activated in one compare-and-set. */
import type { Publication } from '../../contracts/fit-tasks.js';
import { decodeModelSteps, type ModelChange, type ModelChangeRecord } from '../../contracts/stored-model.js';
import { createWebhookEvent, toStreamFields } from '../../contracts/webhook-events.js';
import { type TenantModel, unfittedModel } from '../../domain/catalogue/tenant-model.js';
import { runInSlices } from '../../slices.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { appendEventsLua } from '../redis/event-stream.js';
import {
  fitsKey,
  itemsKey,
  modelEventsKey,
  modelLogKey,
  modelsKey,
  newestVersionKey,
  versionKey,
  versionsKey,
} from '../redis/keys.js';
import { defineScript } from '../redis/script.js';
import { copyItems, makeItems, putItems } from './item-store.js';

export const keptVersions = 10;
/** After a rollback to an older version, items have no counts and no terms. */
const keptItems = 3;
export const keptChanges = 100;

/**
 * ARGV: tenant, expected version, new version, action, time, log size, event. Result: 0 if another version
 * was active.
 */
const flipVersion = defineScript(3)<readonly (string | number)[], number>(`
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
export const versionInForce = async (client: RedisClient, tenant: string): Promise<number> =>
  Number((await whileRedisServes(client.hget(modelsKey, tenant))) ?? 0);

/** @returns false if another version was activated first */
export async function publishModel(client: RedisClient, publication: Publication): Promise<boolean> {
  const { tenant, version, basedOn, model, report, items } = publication;
  // Registered first: if the process dies later, `pruneVersions` finds the version.
  await whileRedisServes(client.sadd(versionsKey(tenant), version));
  await whileRedisServes(client.hset(versionKey(tenant, version), { model, report, based_on: basedOn }));
  if (items === null) await copyItems(client, tenant, basedOn, version);
  else await putItems(client, tenant, version, items);
  const won = await flip(client, 'fit', publication);
  if (!won) await forget(client, tenant, version);
  return won;
}

async function flip(
  client: RedisClient,
  action: ModelChange['action'],
  { tenant, basedOn, version, publishedAt }: Omit<ModelChange, 'change' | 'action'>,
): Promise<boolean> {
  const data = { version, based_on: basedOn, published_at: new Date(publishedAt).toISOString() };
  const event = createWebhookEvent('model.published', tenant, null, publishedAt, data);
  const keys = [modelsKey, modelLogKey(tenant), modelEventsKey];
  const args = [tenant, basedOn, version, action, publishedAt, keptChanges, ...toStreamFields(event)];
  return (await flipVersion(client, ...keys, ...args)) === 1;
}

/** Resets to version 0 first, so that a running fit publishes nothing. */
export async function removeModels(client: RedisClient, tenant: string): Promise<void> {
  await whileRedisServes(client.hdel(modelsKey, tenant));
  await whileRedisServes(client.unlink(modelLogKey(tenant)));
  await whileRedisServes(client.hdel(fitsKey, tenant));
  for (const version of await whileRedisServes(client.smembers(versionsKey(tenant))))
    await forget(client, tenant, Number(version));
  await whileRedisServes(client.unlink(newestVersionKey(tenant), itemsKey(tenant, 0)));
}

async function forget(client: RedisClient, tenant: string, version: number): Promise<void> {
  await whileRedisServes(client.unlink(versionKey(tenant, version), itemsKey(tenant, version)));
  await whileRedisServes(client.srem(versionsKey(tenant), version));
}

/** Newest first. `published`: present versions that were ever active. */
async function readVersions(client: RedisClient, tenant: string) {
  const [inForce, members, log] = await Promise.all([
    versionInForce(client, tenant),
    whileRedisServes(client.smembers(versionsKey(tenant))),
    readLog(client, tenant),
  ]);
  const present = members.map(Number).sort((a, b) => b - a);
  const published = present.filter((version) => log.some((change) => change.version === version));
  return { inForce, present, published, log };
}

/** Newest first. */
async function readLog(client: RedisClient, tenant: string): Promise<ModelChange[]> {
  const lines = await whileRedisServes(client.lrange(modelLogKey(tenant), 0, -1));
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
async function prune(client: RedisClient, tenant: string): Promise<void> {
  const { inForce, present, published } = await readVersions(client, tenant);
  const isAmong = (newest: number, version: number): boolean =>
    version === inForce || published.slice(0, newest).includes(version);
  // A version above all published ones may be about to be published.
  for (const version of present.filter((version) => version < (published[0] ?? 0))) {
    if (!isAmong(keptVersions, version)) await forget(client, tenant, version);
    else if (!isAmong(keptItems, version)) await whileRedisServes(client.unlink(itemsKey(tenant, version)));
  }
  if (published.length >= keptItems && inForce !== 0)
    await whileRedisServes(client.unlink(itemsKey(tenant, 0)));
}

/** @throws Error for a missing or unreadable version */
export async function readModel(client: RedisClient, tenant: string, version: number): Promise<TenantModel> {
  if (version === 0) return unfittedModel;
  const text = await whileRedisServes(client.hget(versionKey(tenant, version), 'model'));
  if (text === null) throw new Error(`version ${version} of the model of ${tenant} is not there`);
  return runInSlices(decodeModelSteps(text));
}

export type ModelPublisher = ReturnType<typeof createModelPublisher>;

export const createModelPublisher = (client: RedisClient) => ({
  inForce: (tenant: string) => versionInForce(client, tenant),
  read: (tenant: string, version: number) => readModel(client, tenant, version),
  /** Never returns a number twice. */
  reserve: (tenant: string) => whileRedisServes(client.incr(newestVersionKey(tenant))),
  /** Newest first, without version 0. */
  versions: async (tenant: string) => {
    const { inForce, present, log } = await readVersions(client, tenant);
    return present.flatMap((version) => {
      const fit = log.find((change) => change.action === 'fit' && change.version === version);
      if (fit === undefined) return [];
      return [{ version, basedOn: fit.basedOn, publishedAt: fit.publishedAt, inForce: version === inForce }];
    });
  },
  /** Activates a retained version, or 0, if `expected` is active. */
  use: async (tenant: string, version: number, expected: number) => {
    // Older versions may still exist until the publisher of the newest removes them.
    const { published } = await readVersions(client, tenant);
    const isKept = published.slice(0, keptVersions).includes(version);
    const hasModel = () => whileRedisServes(client.hexists(versionKey(tenant, version), 'model'));
    if (version !== 0 && !(isKept && (await hasModel()) === 1)) return 'not-kept';
    await makeItems(client, tenant, version);
    const change = { tenant, version, basedOn: expected, publishedAt: Date.now() };
    return (await flip(client, 'rollback', change)) ? 'used' : 'superseded';
  },
  tenants: () => whileRedisServes(client.hkeys(modelsKey)),
  changesAfter: async (tenant: string, change: number): Promise<ModelChangeRecord[]> => {
    const missing = (await readLog(client, tenant)).filter((found) => found.change > change).reverse();
    const texts = missing.map(({ version }) => client.hmget(versionKey(tenant, version), 'model', 'report'));
    const found = await whileRedisServes(Promise.all(texts));
    return missing.map((one, i) => ({ ...one, model: found[i]?.[0] ?? '', report: found[i]?.[1] ?? '' }));
  },
  /** Null before the first fit. */
  lastFit: (tenant: string) => whileRedisServes(client.hget(fitsKey, tenant)),
  /** If the process dies before, the next fit removes old versions. */
  noteFit: async (tenant: string, mark: string): Promise<void> => {
    await prune(client, tenant);
    await whileRedisServes(client.hset(fitsKey, tenant, mark));
  },
});

export type KeptVersion = Awaited<ReturnType<ModelPublisher['versions']>>[number];
