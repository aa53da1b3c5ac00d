/**
 * What a worker knows of the items that its tenants use: read from Redis on first use and again after a while, and
 * the answers counted here, which reach Redis in batches. Item difficulty is a statistic: an item's answers of the
 * last second may be missing from it when a thread dies, and others see them some seconds later. Nothing else
 * depends on it, for every attempt row has the figures that it was counted with.
 */

import type { ItemModel } from '../../src/domain/catalogue/tenant-model.js';
import type { ItemCounts } from '../../src/domain/prediction/model.js';
import { addItemAnswers, type ItemDelta, readItems } from '../../src/store/models/item-store.js';
import type { RedisClient } from '../../src/store/redis/client.js';

export type ItemTable = ReturnType<typeof createItemTable>;

const freshMs = 30_000;
/** Items in one generation of the cache; two generations are kept. */
const maxCached = 50_000;
/** Notes that wait for Redis; beyond this many items, further ones are dropped. */
const maxPending = 50_000;

interface Cached {
  readonly record: ItemModel | null;
  readonly readAt: number;
}

export function createItemTable(client: () => Promise<RedisClient>, now: () => number) {
  let current = new Map<string, Cached>();
  let before = new Map<string, Cached>();
  let pending = new Map<string, Map<string, ItemCounts>>();
  let pendingItems = 0;

  const lookUp = (key: string): Cached | undefined => current.get(key) ?? before.get(key);

  function keep(key: string, cached: Cached): void {
    if (current.size >= maxCached) {
      before = current;
      current = new Map();
    }
    current.set(key, cached);
  }

  /** Fetches what is not known, or too old; afterwards `find` has it. */
  async function load(tenant: string, version: number, itemIds: readonly string[]): Promise<void> {
    const oldest = now() - freshMs;
    const wanted = itemIds.filter((id) => {
      const found = lookUp(keyOf(tenant, version, id));
      return found === undefined || found.readAt < oldest;
    });
    if (wanted.length === 0) return;
    const records = await readItems(await client(), tenant, version, wanted);
    wanted.forEach((id, i) => {
      keep(keyOf(tenant, version, id), { record: records[i] ?? null, readAt: now() });
    });
  }

  /** Notes an answer that is committed. */
  function count(tenant: string, version: number, { itemId, ...added }: ItemDelta): void {
    const group = `${version}:${tenant}`;
    const items = pending.get(group) ?? new Map<string, ItemCounts>();
    pending.set(group, items);
    const sum = items.get(itemId);
    if (sum === undefined && pendingItems >= maxPending) return;
    if (sum === undefined) pendingItems++;
    items.set(itemId, sum === undefined ? added : plus(sum, added));
  }

  /** Sends what was noted. */
  async function flush(): Promise<void> {
    const sending = pending;
    pending = new Map();
    pendingItems = 0;
    for (const [group, items] of sending) {
      const at = group.indexOf(':');
      const deltas = [...items].map(([itemId, answers]) => ({ itemId, ...answers }));
      await addItemAnswers(await client(), group.slice(at + 1), Number(group.slice(0, at)), deltas);
    }
  }

  /** Null for an item that nobody answered yet. */
  const find = (tenant: string, version: number, itemId: string): ItemModel | null =>
    lookUp(keyOf(tenant, version, itemId))?.record ?? null;

  return { load, find, count, flush };
}

/** A tenant has no colon, so the parts cannot be confused. */
const keyOf = (tenant: string, version: number, itemId: string): string => `${version}:${tenant}:${itemId}`;

const plus = (a: ItemCounts, b: ItemCounts): ItemCounts => ({
  answers: a.answers + b.answers,
  right: a.right + b.right,
  expected: a.expected + b.expected,
});
