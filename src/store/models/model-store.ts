/** Published models. A version is written completely, then one step with a compare puts it into force. */
import type { Publication } from '../../contracts/fit-tasks.js';
import { decodingOf, type ModelChange, type RecordedChange } from '../../contracts/model.js';
import { eventFields, webhookEvent } from '../../contracts/webhook-events.js';
import { type TenantModel, unfittedModel } from '../../domain/catalogue/tenant-model.js';
import { inSlices } from '../../slices.js';
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

/** Versions whose model is kept, so that it can be used again. */
export const keptVersions = 10;
/** Versions whose items are kept: one that is older starts with items of which nothing is known. */
const keptItems = 3;
export const keptChanges = 100;

/**
 * KEYS: versions in force, the tenant's log, events. ARGV: tenant, version expected, new version, action,
 * time, changes to keep, then the event. Result: 1 if the new version is in force, 0 if another was.
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

/** @returns whether the version is in force; where another one came first, nothing of this one is left */
export async function publishModel(client: RedisClient, publication: Publication): Promise<boolean> {
  const { tenant, version, basedOn, model, report, items } = publication;
  // The set comes first: what it names is cleared after a kill at any step below.
  await whileRedisServes(client.sadd(versionsKey(tenant), version));
  await whileRedisServes(client.hset(versionKey(tenant, version), { model, report, based_on: basedOn }));
  if (items === null) await copyItems(client, tenant, basedOn, version);
  else await putItems(client, tenant, version, items);
  const won = await flip(client, 'fit', publication);
  if (!won) await forget(client, tenant, version);
  return won;
}

/** @returns false where another version than `basedOn` was in force */
async function flip(
  client: RedisClient,
  action: ModelChange['action'],
  { tenant, basedOn, version, publishedAt }: Omit<ModelChange, 'change' | 'action'>,
): Promise<boolean> {
  const data = { version, based_on: basedOn, published_at: new Date(publishedAt).toISOString() };
  const event = webhookEvent('model.published', tenant, null, publishedAt, data);
  const keys = [modelsKey, modelLogKey(tenant), modelEventsKey];
  const args = [tenant, basedOn, version, action, publishedAt, keptChanges, ...eventFields(event)];
  return (await flipVersion(client, ...keys, ...args)) === 1;
}

/** Removes a tenant's versions and their count. Version 0 first, so that a running fit publishes nothing. */
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

/** Lists are newest first; `published`: versions that are present and were ever in force. */
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

/** Forgets versions that are too old, and what processes left that died while they published. */
async function prune(client: RedisClient, tenant: string): Promise<void> {
  const { inForce, present, published } = await readVersions(client, tenant);
  const isAmong = (newest: number, version: number): boolean =>
    version === inForce || published.slice(0, newest).includes(version);
  // A newer version than any that was in force may be about to be published.
  for (const version of present.filter((version) => version < (published[0] ?? 0))) {
    if (!isAmong(keptVersions, version)) await forget(client, tenant, version);
    else if (!isAmong(keptItems, version)) await whileRedisServes(client.unlink(itemsKey(tenant, version)));
  }
  if (published.length >= keptItems && inForce !== 0)
    await whileRedisServes(client.unlink(itemsKey(tenant, 0)));
}

/** @throws Error for a version that is not kept, or that this version of the service cannot read */
export async function readModel(client: RedisClient, tenant: string, version: number): Promise<TenantModel> {
  if (version === 0) return unfittedModel;
  const text = await whileRedisServes(client.hget(versionKey(tenant, version), 'model'));
  if (text === null) throw new Error(`version ${version} of the model of ${tenant} is not there`);
  return inSlices(decodingOf(text));
}

export type ModelPublisher = ReturnType<typeof createModelPublisher>;

/** What fits and `npm run fit` do with versions. @throws ApiError UNAVAILABLE from each of its functions */
export const createModelPublisher = (client: RedisClient) => ({
  inForce: (tenant: string) => versionInForce(client, tenant),
  read: (tenant: string, version: number) => readModel(client, tenant, version),
  /** A number that no other version of the tenant has or had. */
  reserve: (tenant: string) => whileRedisServes(client.incr(newestVersionKey(tenant))),
  /** Versions that can be used again, newest first, 0 aside. */
  versions: async (tenant: string) => {
    const { inForce, present, log } = await readVersions(client, tenant);
    return present.flatMap((version) => {
      const fit = log.find((change) => change.action === 'fit' && change.version === version);
      if (fit === undefined) return [];
      return [{ version, basedOn: fit.basedOn, publishedAt: fit.publishedAt, inForce: version === inForce }];
    });
  },
  /** Brings a kept version, or 0, into force again if `expected` is in force. */
  use: async (tenant: string, version: number, expected: number) => {
    // Older ones may be there still: whoever published the newest is about to forget them.
    const { published } = await readVersions(client, tenant);
    const isKept = published.slice(0, keptVersions).includes(version);
    const hasModel = () => whileRedisServes(client.hexists(versionKey(tenant, version), 'model'));
    if (version !== 0 && !(isKept && (await hasModel()) === 1)) return 'not-kept';
    await makeItems(client, tenant, version);
    const change = { tenant, version, basedOn: expected, publishedAt: Date.now() };
    return (await flip(client, 'rollback', change)) ? 'used' : 'superseded';
  },
  /** Tenants that ever had a publication. */
  tenants: () => whileRedisServes(client.hkeys(modelsKey)),
  /** Changes after the given one, oldest first; the oldest of very many may be gone. */
  changesAfter: async (tenant: string, change: number): Promise<RecordedChange[]> => {
    const missing = (await readLog(client, tenant)).filter((found) => found.change > change).reverse();
    const texts = missing.map(({ version }) => client.hmget(versionKey(tenant, version), 'model', 'report'));
    const found = await whileRedisServes(Promise.all(texts));
    return missing.map((one, i) => ({ ...one, model: found[i]?.[0] ?? '', report: found[i]?.[1] ?? '' }));
  },
  /** What the last finished fit had seen; null before the first. */
  lastFit: (tenant: string) => whileRedisServes(client.hget(fitsKey, tenant)),
  /** Ends a fit. A process that dies before the note leaves it to the next fit to forget versions. */
  noteFit: async (tenant: string, mark: string): Promise<void> => {
    await prune(client, tenant);
    await whileRedisServes(client.hset(fitsKey, tenant, mark));
  },
});

export type KeptVersion = Awaited<ReturnType<ModelPublisher['versions']>>[number];
