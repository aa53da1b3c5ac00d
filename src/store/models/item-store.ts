/**
 * What is known of a tenant's items: terms of the last fit, and counters that every process adds to. The counters
 * belong to a version of the model: a fit counts the answers in ClickHouse anew, so what is answered while it runs
 * is in the next fit's counters only.
 */

import type { ItemModel } from '../../domain/catalogue/tenant-model.js';
import { type FittedItems, type ItemFigures, itemModelAt } from '../../domain/fit/prediction/served.js';
import type { ItemCounts } from '../../domain/prediction/items.js';
import { itemTermCount } from '../../domain/prediction/model.js';
import { inParts } from '../../lists.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { itemsKey } from '../redis/keys.js';
import { hashItem, itemIdBytes } from './item-id.js';
import { addItems, writeItems } from './item-scripts.js';

/** What to add to an item's counters; the expected answers are kept to a millionth. */
export interface ItemDelta extends ItemCounts {
  readonly itemId: string;
}

/** Most items of one tenant; answers on further ones count for everything but their items. About 100 MB of Redis. */
export const maxItems = 1_000_000;

export const counterBytes = 16;
/** The counters, then float32: the terms of the prediction, the offset of the ability filter. */
const recordBytes = counterBytes + 4 * (itemTermCount + 1);
const entryBytes = itemIdBytes + recordBytes;
const millionth = 1e-6;
/** Items per script call: nobody waits long behind one. */
const chunk = 2000;

/**
 * Adds to the counters of items; additions of several processes commute.
 *
 * @param version of the model that the answers were counted with; where its items are gone, nothing is added
 * @returns how many items were not added, because the tenant has the most already or the version is gone
 */
export async function addItemAnswers(
  client: RedisClient,
  tenant: string,
  version: number,
  deltas: readonly ItemDelta[],
): Promise<number> {
  let refused = 0;
  for (const part of inParts(deltas, chunk)) {
    // No publication makes the items of version 0, so whoever is first does.
    const make = version === 0 ? 1 : 0;
    const packed = packDeltas(part);
    const result = await whileRedisServes(
      addItems(client, itemsKey(tenant, version), packed, maxItems + 1, make),
    );
    refused += result < 0 ? part.length : result;
  }
  return refused;
}

function packDeltas(deltas: readonly ItemDelta[]): Buffer {
  const packed = Buffer.allocUnsafe(deltas.length * (itemIdBytes + counterBytes));
  deltas.forEach((delta, i) => {
    const at = i * (itemIdBytes + counterBytes);
    hashItem(delta.itemId).copy(packed, at);
    writeCounters(packed, at + itemIdBytes, delta);
  });
  return packed;
}

export function writeCounters(buffer: Buffer, at: number, { answers, right, expected }: ItemCounts): void {
  buffer.writeUInt32LE(answers, at);
  buffer.writeUInt32LE(right, at + 4);
  buffer.writeDoubleLE(Math.round(expected / millionth), at + 8);
}

/** One command. @returns a record per item, in order; null for an item without answers */
export async function readItems(
  client: RedisClient,
  tenant: string,
  version: number,
  itemIds: readonly string[],
): Promise<(ItemModel | null)[]> {
  if (itemIds.length === 0) return [];
  const found = await whileRedisServes(
    client.hmgetBuffer(itemsKey(tenant, version), ...itemIds.map(hashItem)),
  );
  return found.map((record) => record && decodeItemModel(record));
}

/**
 * What the version's fit found for items, zeros for those that it did not see.
 *
 * @param hashes of `hashItem`, one after the other; the first place is no item
 */
export async function readItemFigures(
  client: RedisClient,
  tenant: string,
  version: number,
  hashes: Uint8Array,
): Promise<ItemFigures> {
  const count = hashes.length / itemIdBytes;
  const terms = new Float32Array(new SharedArrayBuffer(4 * count * itemTermCount));
  const offsets = new Float32Array(new SharedArrayBuffer(4 * count));
  for (let from = 1; from < count; from += chunk) {
    const to = Math.min(count, from + chunk);
    const fields = Array.from({ length: to - from }, (_, i) => hashAt(hashes, from + i));
    const found = await whileRedisServes(client.hmgetBuffer(itemsKey(tenant, version), ...fields));
    for (const [i, record] of found.entries()) {
      if (record === null) continue;
      const item = decodeItemModel(record);
      terms.set(item.terms, (from + i) * itemTermCount);
      offsets[from + i] = item.abilityOffset;
    }
  }
  return { terms, offsets };
}

const hashAt = (hashes: Uint8Array, item: number): Buffer =>
  Buffer.from(hashes.subarray(item * itemIdBytes, (item + 1) * itemIdBytes));

/** An item that only online answers made has counters alone. */
function decodeItemModel(record: Buffer): ItemModel {
  const figure = (i: number): number =>
    record.length < recordBytes ? 0 : record.readFloatLE(counterBytes + 4 * i);
  return {
    answers: record.readUInt32LE(0),
    right: record.readUInt32LE(4),
    expected: record.readDoubleLE(8) * millionth,
    terms: Array.from({ length: itemTermCount }, (_, i) => figure(i)),
    abilityOffset: figure(itemTermCount),
  };
}

/**
 * Items as a publication writes them; where there are too many, those with the most answers.
 *
 * @param hashes as for `readItemFigures`
 */
export function encodeItems(items: FittedItems, hashes: Uint8Array): Buffer {
  const answered = answeredItems(items.sums.answers);
  const entries = Buffer.allocUnsafe(answered.length * entryBytes);
  for (const [place, item] of answered.entries()) {
    const at = place * entryBytes;
    entries.set(hashAt(hashes, item), at);
    encodeItem(entries, at + itemIdBytes, itemModelAt(items, item));
  }
  return entries;
}

function answeredItems(answers: Uint32Array): number[] {
  const items = Array.from(answers.keys()).filter((item) => item > 0 && (answers[item] as number) > 0);
  if (items.length <= maxItems) return items;
  return items.sort((a, b) => (answers[b] as number) - (answers[a] as number)).slice(0, maxItems);
}

function encodeItem(entries: Buffer, at: number, item: ItemModel): void {
  writeCounters(entries, at, item);
  const figures = at + counterBytes;
  for (let i = 0; i < itemTermCount; i++) entries.writeFloatLE(item.terms[i] ?? 0, figures + 4 * i);
  entries.writeFloatLE(item.abilityOffset, figures + 4 * itemTermCount);
}

/**
 * Writes the items of a version that is not in force yet.
 *
 * @param entries as `encodeItems` makes them
 */
export async function putItems(
  client: RedisClient,
  tenant: string,
  version: number,
  entries: Buffer,
): Promise<void> {
  await makeItems(client, tenant, version);
  for (let from = 0; from < entries.length; from += chunk * entryBytes) {
    await whileRedisServes(
      writeItems(
        client,
        itemsKey(tenant, version),
        entries.subarray(from, from + chunk * entryBytes),
        recordBytes,
      ),
    );
  }
}

/**
 * Gives a version the items of another, in parts: one COPY would hold up every other caller for as long as it takes.
 * What is added to them meanwhile may stay with the other.
 */
export async function copyItems(
  client: RedisClient,
  tenant: string,
  from: number,
  to: number,
): Promise<void> {
  let cursor = '0';
  do {
    const scan = client.hscanBuffer(itemsKey(tenant, from), cursor, 'COUNT', chunk);
    const [next, entries] = await whileRedisServes(scan);
    if (entries.length > 0) await whileRedisServes(client.hset(itemsKey(tenant, to), ...entries));
    cursor = next.toString();
  } while (cursor !== '0');
  await makeItems(client, tenant, to);
}

/** Makes sure that the version has a hash to add to: the scripts tell by it that the version's items are kept. */
export async function makeItems(client: RedisClient, tenant: string, version: number): Promise<void> {
  await whileRedisServes(client.hsetnx(itemsKey(tenant, version), '', '1'));
}
