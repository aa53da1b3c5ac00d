/** Puts published models and what is known of items back, as a rebuild finds them in ClickHouse. */
import type { ModelChange, RecordedChange } from '../../contracts/model.js';
import type { ItemRecord } from '../../contracts/rebuild-tasks.js';
import { hashItem, makeItems, packCounters } from '../models/item-store.js';
import { keptChanges, keptVersions } from '../models/model-store.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import {
  itemsKey,
  modelLogKey,
  modelsKey,
  newestVersionKey,
  versionKey,
  versionsKey,
} from '../redis/keys.js';

/** Versions of the changes that can be used again, newest first, and the one in force. */
export function versionsKept(changes: readonly ModelChange[]): ModelChange[] {
  const fits = changes.filter(({ action }) => action === 'fit').sort((a, b) => b.version - a.version);
  const inForce = changes[0]?.version ?? 0;
  return fits.filter(({ version }, i) => i < keptVersions || version === inForce);
}

/**
 * Brings the tenant's last version into force again, behind everything that it needs.
 *
 * @param changes newest first, at least one
 * @param kept with the texts; one without is left out
 * @param newest highest number that a version was given
 */
export async function restoreModels(
  client: RedisClient,
  tenant: string,
  changes: readonly ModelChange[],
  kept: readonly RecordedChange[],
  newest: number,
): Promise<void> {
  for (const { version, basedOn, model, report } of kept.filter((one) => one.model !== '')) {
    await whileRedisServes(client.sadd(versionsKey(tenant), version));
    await whileRedisServes(client.hset(versionKey(tenant, version), { model, report, based_on: basedOn }));
  }
  const lines = changes
    .slice(0, keptChanges)
    .map((one) => `${one.change} ${one.version} ${one.basedOn} ${one.action} ${one.publishedAt}`);
  const inForce = changes[0]?.version ?? 0;
  if (inForce !== 0) await makeItems(client, tenant, inForce);
  await whileRedisServes(client.del(modelLogKey(tenant)));
  await whileRedisServes(client.rpush(modelLogKey(tenant), ...lines));
  await whileRedisServes(client.set(newestVersionKey(tenant), newest));
  await whileRedisServes(client.hset(modelsKey, tenant, inForce));
}

const itemsTogether = 2000;

/** Counters alone: what a fit found for an item comes with the next fit. */
export async function restoreItems(
  client: RedisClient,
  tenant: string,
  version: number,
  items: readonly ItemRecord[],
): Promise<void> {
  for (let at = 0; at < items.length; at += itemsTogether) {
    const some = items.slice(at, at + itemsTogether);
    const fields = some.flatMap((item) => [hashItem(item.itemId), packCounters(item)]);
    await whileRedisServes(client.hset(itemsKey(tenant, version), ...fields));
  }
}
