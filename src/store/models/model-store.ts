/**
 * Published models. A version is written completely before one step brings it into force, and that step compares
 * the version that was in force: a process that dies on the way leaves the old version or the new one, and of two
 * that publish at once one wins.
 */
import type { Publication } from '../../contracts/fit-tasks.js';
import { decodingOf, type ModelChange, type RecordedChange } from '../../contracts/model.js';
import { type TenantModel, unfittedModel } from '../../domain/catalogue/tenant-model.js';
import { inSlices } from '../../slices.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import {
  fitsKey,
  itemsKey,
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
 * KEYS: versions in force, log of the tenant. ARGV: tenant, version expected, new version, action, time, changes to keep.
 * Result: 1 if the new version is in force now, 0 if another than expected was.
 */
const flipVersion = defineScript(2)<readonly (string | number)[], number>(`
local expected, version = ARGV[2], ARGV[3]
if (redis.call('HGET', KEYS[1], ARGV[1]) or '0') ~= expected then return 0 end
local last = redis.call('LINDEX', KEYS[2], 0)
local change = last and tonumber(string.match(last, '^%d+')) + 1 or 1
redis.call('LPUSH', KEYS[2], table.concat({ change, version, expected, ARGV[4], ARGV[5] }, ' '))
redis.call('LTRIM', KEYS[2], 0, ARGV[6] - 1)
redis.call('HSET', KEYS[1], ARGV[1], version)
return 1
`);

/** Version in force; 0 before the first fit. */
export const versionInForce = async (client: RedisClient, tenant: string): Promise<number> =>
  Number((await whileRedisServes(client.hget(modelsKey, tenant))) ?? 0);

/** @returns whether the version is in force; where another one came first, nothing of this one is left */
export async function publishModel(client: RedisClient, publication: Publication): Promise<boolean> {
  const { tenant, version, basedOn, model, report, items, publishedAt } = publication;
  // The set comes first: what it names is cleared after a kill at any step below.
  await whileRedisServes(client.sadd(versionsKey(tenant), version));
  await whileRedisServes(client.hset(versionKey(tenant, version), { model, report, based_on: basedOn }));
  if (items === null) await copyItems(client, tenant, basedOn, version);
  else await putItems(client, tenant, version, items);
  const won = await flip(client, tenant, basedOn, version, 'fit', publishedAt);
  if (!won) await forget(client, tenant, version);
  return won;
}

async function flip(
  client: RedisClient,
  tenant: string,
  expected: number,
  version: number,
  action: ModelChange['action'],
  now: number,
): Promise<boolean> {
  const log = modelLogKey(tenant);
  const flipped = flipVersion(client, modelsKey, log, tenant, expected, version, action, now, keptChanges);
  return (await whileRedisServes(flipped)) === 1;
}

async function forget(client: RedisClient, tenant: string, version: number): Promise<void> {
  await whileRedisServes(client.unlink(versionKey(tenant, version), itemsKey(tenant, version)));
  await whileRedisServes(client.srem(versionsKey(tenant), version));
}

/** Forgets versions that are too old, and what processes left that died while they published. */
async function prune(client: RedisClient, tenant: string): Promise<void> {
  const inForce = await versionInForce(client, tenant);
  const present = await presentVersions(client, tenant);
  const known = await publishedAmong(client, tenant, present);
  const kept = new Set([...known.slice(0, keptVersions), inForce]);
  const withItems = new Set([...known.slice(0, keptItems), inForce]);
  // Newer ones than any that was in force may be on their way.
  for (const version of present.filter((version) => version < (known[0] ?? 0))) {
    if (!kept.has(version)) await forget(client, tenant, version);
    else if (!withItems.has(version)) await whileRedisServes(client.unlink(itemsKey(tenant, version)));
  }
  if (known.length >= keptItems && inForce !== 0) await whileRedisServes(client.unlink(itemsKey(tenant, 0)));
}

/** Those of the versions that were ever in force. */
async function publishedAmong(
  client: RedisClient,
  tenant: string,
  versions: readonly number[],
): Promise<number[]> {
  const log = await readLog(client, tenant);
  return versions.filter((version) => log.some((change) => change.version === version));
}

/** Newest first. */
async function presentVersions(client: RedisClient, tenant: string): Promise<number[]> {
  const members = await whileRedisServes(client.smembers(versionsKey(tenant)));
  return members.map(Number).sort((a, b) => b - a);
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

/** JSON of the version's model; null where it is not kept. */
const storedModel = (client: RedisClient, tenant: string, version: number): Promise<string | null> =>
  whileRedisServes(client.hget(versionKey(tenant, version), 'model'));

/** @throws Error for a version that is not kept, or that this version of the service cannot read */
export async function readModel(client: RedisClient, tenant: string, version: number): Promise<TenantModel> {
  if (version === 0) return unfittedModel;
  const text = await storedModel(client, tenant, version);
  if (text === null) throw new Error(`version ${version} of the model of ${tenant} is not there`);
  return inSlices(decodingOf(text));
}

/** Where models are published. A change of what is in force is one atomic step. */
export type ModelPublisher = ReturnType<typeof createModelPublisher>;

export const createModelPublisher = (client: RedisClient) => ({
  /** Version in force; 0 before the first fit. */
  inForce: (tenant: string) => versionInForce(client, tenant),
  /** @throws Error for one that is not kept, or not readable by this version of the service */
  read: (tenant: string, version: number) => readModel(client, tenant, version),
  /** A number that no other version of the tenant has or had. */
  reserve: (tenant: string) => whileRedisServes(client.incr(newestVersionKey(tenant))),
  /** Versions that can be used again, newest first, 0 aside. */
  versions: (tenant: string) => listVersions(client, tenant),
  /**
   * Brings a kept version, or 0, into force again.
   * @param expected version in force until now; where another is, nothing changes
   */
  use: async (tenant: string, version: number, expected: number) => {
    if (version !== 0 && !(await isKept(client, tenant, version))) return 'not-kept';
    await makeItems(client, tenant, version);
    return (await flip(client, tenant, expected, version, 'rollback', Date.now())) ? 'used' : 'superseded';
  },
  /** Tenants that ever had a publication. */
  tenants: () => whileRedisServes(client.hkeys(modelsKey)),
  /** Changes after the given one, oldest first; the oldest of very many may be gone. */
  changesAfter: async (tenant: string, change: number): Promise<RecordedChange[]> => {
    const missing = (await readLog(client, tenant)).filter((found) => found.change > change);
    return Promise.all(missing.reverse().map((found) => withTexts(client, found)));
  },
  /** What the last finished fit had seen; null before the first. */
  lastFit: (tenant: string) => whileRedisServes(client.hget(fitsKey, tenant)),
  /**
   * Ends a fit: forgets versions that are too old and what dead processes left. A process that dies before this leaves
   * no note, so that the next fit does it.
   */
  noteFit: async (tenant: string, mark: string): Promise<void> => {
    await prune(client, tenant);
    await whileRedisServes(client.hset(fitsKey, tenant, mark));
  },
});

async function withTexts(client: RedisClient, change: ModelChange): Promise<RecordedChange> {
  const key = versionKey(change.tenant, change.version);
  const [model, report] = await whileRedisServes(client.hmget(key, 'model', 'report'));
  return { ...change, model: model ?? '', report: report ?? '' };
}

export type KeptVersion = Awaited<ReturnType<typeof listVersions>>[number];

async function listVersions(client: RedisClient, tenant: string) {
  const [inForce, log, present] = await Promise.all([
    versionInForce(client, tenant),
    readLog(client, tenant),
    presentVersions(client, tenant),
  ]);
  return present.flatMap((version) => {
    const fit = log.find((change) => change.action === 'fit' && change.version === version);
    if (fit === undefined) return [];
    return [{ version, basedOn: fit.basedOn, publishedAt: fit.publishedAt, inForce: version === inForce }];
  });
}

/** Older ones may be there still: whoever published the newest is about to forget them. */
async function isKept(client: RedisClient, tenant: string, version: number): Promise<boolean> {
  const known = await publishedAmong(client, tenant, await presentVersions(client, tenant));
  return (
    known.slice(0, keptVersions).includes(version) && (await storedModel(client, tenant, version)) !== null
  );
}
