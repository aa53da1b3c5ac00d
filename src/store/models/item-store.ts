/** A fit counts from ClickHouse: answers during a fit are only in the next version. */
import type { Publication } from '../../contracts/models/fit-tasks.js';
import { sharedArrays } from '../../domain/base/answer-log.js';
import type { ItemModel } from '../../domain/catalogue/tenant-model.js';
import { buildPairTable, mapRelatedKeys } from '../../domain/fit/prediction/pair-tables.js';
import { buildItemModel, type ItemFigures } from '../../domain/fit/prediction/replay-log.js';
import { type ItemCounts, itemRunCount, itemTermCount } from '../../domain/prediction/prediction-model.js';
import { emptyRelatedTerms, type RelatedTerms } from '../../domain/prediction/related-terms.js';
import { indices, splitIntoParts } from '../../lists.js';
import { defineScript } from '../redis/commands/script.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { modelItemsKey } from '../redis/keys.js';
import { hashText } from '../redis/wire/binary.js';

/** Collision probability of a million items: 3e-8. */
const itemIdBytes = 8;

export const hashItem = (itemId: string): Buffer => hashText(itemId);

export interface ItemDelta extends ItemCounts {
  readonly itemId: string;
}

/** About 100 MB of Redis. Answers to further items are counted everywhere else. */
export const maxItems = 1_000_000;

/**
 * u32 answers, u32 correct answers, double expected correct answers in millionths: sums of integers do not
 * depend on the order.
 */
const counterBytes = 16;
const millionth = 1e-6;
/** Then float32 values of the fit: slopes of the prediction, offset of the ability filter. */
const slopeCount = itemTermCount - itemRunCount;
const recordBytes = counterBytes + 4 * (slopeCount + 1);
/** Optional: terms of runs of wrong answers, then key and term of each preceding item. */
const pairsOffset = recordBytes + 4 * itemRunCount;
const pairBytes = 8;
const itemsPerCommand = 2000;

/** Result: -1 if the version's items were removed, else the number of rejected new items. */
const addItemsScript = defineScript(1)<
  [key: string, deltas: Buffer, atMost: number, mayCreate: 0 | 1],
  number
>(`
local key, data, pos, refused = KEYS[1], ARGV[1], 1, 0
if ARGV[3] ~= '1' and redis.call('EXISTS', key) == 0 then return -1 end
local room = tonumber(ARGV[2]) - redis.call('HLEN', key)
while pos < #data do
  local id, answers, right, expected
  id, answers, right, expected, pos = struct.unpack('<c8I4I4d', data, pos)
  local record = redis.call('HGET', key, id)
  if record then
    local a, r, e, rest = struct.unpack('<I4I4d', record)
    record = struct.pack('<I4I4d', a + answers, r + right, e + expected) .. string.sub(record, rest)
  elseif room > 0 then
    room = room - 1
    record = struct.pack('<I4I4d', answers, right, expected)
  end
  if record then redis.call('HSET', key, id, record) else refused = refused + 1 end
end
return refused
`);

/** @returns number of rejected items */
export async function addItemAnswers(
  client: RedisClient,
  tenant: string,
  version: number,
  deltas: readonly ItemDelta[],
): Promise<number> {
  // No fit creates the items of version 0.
  const mayCreate = version === 0 ? 1 : 0;
  let rejected = 0;
  for (const part of splitIntoParts(deltas, itemsPerCommand)) {
    const packed = Buffer.concat(part.flatMap((delta) => [hashItem(delta.itemId), packCounters(delta)]));
    const result = await addItemsScript(
      client,
      modelItemsKey(tenant, version),
      packed,
      maxItems + 1,
      mayCreate,
    );
    rejected += result < 0 ? part.length : result;
  }
  return rejected;
}

export function packCounters({ answers, right, expected }: ItemCounts, bytes = counterBytes): Buffer {
  const record = Buffer.allocUnsafe(bytes).fill(0, counterBytes);
  record.writeUInt32LE(answers, 0);
  record.writeUInt32LE(right, 4);
  record.writeDoubleLE(Math.round(expected / millionth), 8);
  return record;
}

function packItem(item: ItemModel): Buffer {
  const { terms, before, abilityOffset } = item;
  const hasMore = before.keys.length > 0 || terms.slice(slopeCount).some((term) => term !== 0);
  const record = packCounters(item, hasMore ? pairsOffset + pairBytes * before.keys.length : recordBytes);
  const figures = [...terms.slice(0, slopeCount), abilityOffset, ...(hasMore ? terms.slice(slopeCount) : [])];
  for (const [i, figure] of figures.entries()) record.writeFloatLE(figure, counterBytes + 4 * i);
  for (let i = 0; i < before.keys.length; i++) {
    record.writeUInt32LE(before.keys[i] as number, pairsOffset + pairBytes * i);
    record.writeFloatLE(before.terms[i] as number, pairsOffset + pairBytes * i + 4);
  }
  return record;
}

/** A record may end after the counters, the offset, or the terms of runs: other values are 0. */
function unpackItem(record: Buffer): ItemModel {
  const figure = (at: number): number => (record.length < at + 4 ? 0 : record.readFloatLE(at));
  const pairs = indices(Math.max(0, record.length - pairsOffset) / pairBytes).map(
    (i) => pairsOffset + pairBytes * i,
  );
  return {
    answers: record.readUInt32LE(0),
    right: record.readUInt32LE(4),
    expected: record.readDoubleLE(8) * millionth,
    terms: [
      ...indices(slopeCount).map((i) => figure(counterBytes + 4 * i)),
      ...indices(itemRunCount).map((i) => figure(recordBytes + 4 * i)),
    ],
    before: {
      keys: pairs.map((at) => record.readUInt32LE(at)),
      terms: pairs.map((at) => record.readFloatLE(at + 4)),
    },
    abilityOffset: figure(counterBytes + 4 * slopeCount),
  };
}

export async function readItems(
  client: RedisClient,
  tenant: string,
  version: number,
  items: readonly (string | Buffer)[],
): Promise<(ItemModel | null)[]> {
  if (items.length === 0) return [];
  const fields = items.map((item) => (typeof item === 'string' ? hashItem(item) : item));
  const found = await mapRedisErrors(client.hmgetBuffer(modelItemsKey(tenant, version), ...fields));
  return found.map((record) => record && unpackItem(record));
}

/** Zeros for unknown items. @param hashes concatenated; the first is unused */
export async function readItemFigures(
  client: RedisClient,
  tenant: string,
  version: number,
  hashes: Uint8Array,
): Promise<ItemFigures> {
  const count = hashes.length / itemIdBytes;
  const terms = sharedArrays.floats(count * itemTermCount);
  const offsets = sharedArrays.floats(count);
  const numbers = new Map(indices(count).map((item) => [readItemKey(hashes, item), item]));
  const before: RelatedTerms[] = new Array(count).fill(emptyRelatedTerms);
  for (const items of splitIntoParts(indices(count).slice(1), itemsPerCommand)) {
    const pageHashes = items.map((item) => readItemHash(hashes, item));
    const found = await readItems(client, tenant, version, pageHashes);
    for (const [i, item] of items.entries()) {
      terms.set(found[i]?.terms ?? [], item * itemTermCount);
      offsets[item] = found[i]?.abilityOffset ?? 0;
      before[item] = mapRelatedKeys(found[i]?.before ?? emptyRelatedTerms, 1, (key) => numbers.get(key) ?? 0);
    }
  }
  return { terms, offsets, pairs: buildPairTable(before, 1) };
}

/** Equals `keyOf` of the item's id. */
const readItemKey = (hashes: Uint8Array, item: number): number =>
  readItemHash(hashes, item).readUInt32LE(0) || 1;

const readItemHash = (hashes: Uint8Array, item: number): Buffer =>
  Buffer.from(hashes.subarray(item * itemIdBytes, (item + 1) * itemIdBytes));

/** Above `maxItems`, stores the items with the most answers. */
export async function storeItems(
  client: RedisClient,
  tenant: string,
  version: number,
  items: NonNullable<Publication['items']>,
): Promise<void> {
  await createItemsHash(client, tenant, version);
  const { answers } = items.sums;
  const answered = indices(answers.length).filter((item) => item > 0 && (answers[item] as number) > 0);
  if (answered.length > maxItems) answered.sort((a, b) => (answers[b] as number) - (answers[a] as number));
  for (const part of splitIntoParts(answered.slice(0, maxItems), itemsPerCommand)) {
    const fields = part.flatMap((item) => [
      readItemHash(items.hashes, item),
      packItem(buildItemModel(items, item, (other) => readItemKey(items.hashes, other))),
    ]);
    await mapRedisErrors(client.hset(modelItemsKey(tenant, version), ...fields));
  }
}

/** In parts, because one COPY would block Redis. Items added during the copy may be missing. */
export async function copyItems(client: RedisClient, tenant: string, from: number, to: number) {
  let cursor = '0';
  do {
    const scan = client.hscanBuffer(modelItemsKey(tenant, from), cursor, 'COUNT', itemsPerCommand);
    const [next, entries] = await mapRedisErrors(scan);
    if (entries.length > 0) await mapRedisErrors(client.hset(modelItemsKey(tenant, to), ...entries));
    cursor = next.toString();
  } while (cursor !== '0');
  await createItemsHash(client, tenant, to);
}

/** Without this Redis hash, answers are rejected (except in version 0). */
export async function createItemsHash(client: RedisClient, tenant: string, version: number): Promise<void> {
  await mapRedisErrors(client.hsetnx(modelItemsKey(tenant, version), '', '1'));
}
