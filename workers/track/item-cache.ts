import type { ItemModel } from '../../src/domain/catalogue/tenant-model.js';
import { groupBy } from '../../src/lists.js';
import { addItemAnswers, type ItemDelta, readItems } from '../../src/store/models/item-store.js';
import { setRecentlyUsed } from '../../src/store/redis/commands/recently-used.js';
import type { RedisClient } from '../../src/store/redis/connection/client.js';

export type ItemCache = ReturnType<typeof createItemCache>;

const maxCached = 100_000;
/** Answers of further items are dropped. */
const maxPending = 50_000;

type PendingDelta = { readonly tenant: string; readonly version: number; delta: ItemDelta };

/**
 * Caches items and collects their new answers until `flush`. A thread that dies loses a second of answers.
 */
export function createItemCache(client: () => Promise<RedisClient>, maxAgeMs = 30_000) {
  const cached = new Map<string, { readonly record: ItemModel | null; readonly readAt: number }>();
  let pending = new Map<string, PendingDelta>();

  return {
    load: async (tenant: string, version: number, itemIds: readonly string[]): Promise<void> => {
      const minReadAt = Date.now() - maxAgeMs;
      const staleIds = itemIds.filter(
        (id) => (cached.get(itemKey(tenant, version, id))?.readAt ?? 0) < minReadAt,
      );
      if (staleIds.length === 0) return;
      const records = await readItems(await client(), tenant, version, staleIds);
      for (const [i, id] of staleIds.entries()) {
        const read = { record: records[i] ?? null, readAt: Date.now() };
        setRecentlyUsed(cached, itemKey(tenant, version, id), read, maxCached);
      }
    },
    find: (tenant: string, version: number, itemId: string): ItemModel | null =>
      cached.get(itemKey(tenant, version, itemId))?.record ?? null,
    addAnswers: (tenant: string, version: number, added: ItemDelta): void => {
      const key = itemKey(tenant, version, added.itemId);
      const existing = pending.get(key);
      if (existing !== undefined) existing.delta = addDeltas(existing.delta, added);
      else if (pending.size < maxPending) pending.set(key, { tenant, version, delta: added });
    },
    /** @throws ApiError UNAVAILABLE: unsent answers are lost */
    flush: async (): Promise<void> => {
      const groups = groupBy([...pending.values()], ({ tenant, version }) => `${version}:${tenant}`);
      pending = new Map();
      for (const group of groups.values()) {
        const { tenant, version } = group[0] as PendingDelta;
        const deltas = group.map(({ delta }) => delta);
        await addItemAnswers(await client(), tenant, version, deltas);
      }
    },
  };
}

/** Unique: a tenant contains no colon. */
const itemKey = (tenant: string, version: number, itemId: string): string => `${version}:${tenant}:${itemId}`;

const addDeltas = (a: ItemDelta, b: ItemDelta): ItemDelta => ({
  itemId: a.itemId,
  answers: a.answers + b.answers,
  right: a.right + b.right,
  expected: a.expected + b.expected,
});
