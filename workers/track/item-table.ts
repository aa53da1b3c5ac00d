import type { ItemModel } from '../../src/domain/catalogue/tenant-model.js';
import { groupBy } from '../../src/lists.js';
import { addItemAnswers, type ItemDelta, readItems } from '../../src/store/models/item-store.js';
import type { RedisClient } from '../../src/store/redis/client.js';
import { setRecentlyUsed } from '../../src/store/redis/recently-used.js';

export type ItemTable = ReturnType<typeof createItemTable>;

const maxCached = 100_000;
/** Answers of further items are dropped. */
const maxPending = 50_000;

type Pending = { readonly tenant: string; readonly version: number; delta: ItemDelta };

/**
 * Caches items and collects their new answers until `flush`. A thread that dies loses a second of answers.
 */
export function createItemTable(client: () => Promise<RedisClient>, freshMs = 30_000) {
  const cached = new Map<string, { readonly record: ItemModel | null; readonly readAt: number }>();
  let pending = new Map<string, Pending>();

  return {
    load: async (tenant: string, version: number, itemIds: readonly string[]): Promise<void> => {
      const oldest = Date.now() - freshMs;
      const wanted = itemIds.filter((id) => (cached.get(keyOf(tenant, version, id))?.readAt ?? 0) < oldest);
      if (wanted.length === 0) return;
      const records = await readItems(await client(), tenant, version, wanted);
      for (const [i, id] of wanted.entries()) {
        const read = { record: records[i] ?? null, readAt: Date.now() };
        setRecentlyUsed(cached, keyOf(tenant, version, id), read, maxCached);
      }
    },
    find: (tenant: string, version: number, itemId: string): ItemModel | null =>
      cached.get(keyOf(tenant, version, itemId))?.record ?? null,
    count: (tenant: string, version: number, added: ItemDelta): void => {
      const key = keyOf(tenant, version, added.itemId);
      const noted = pending.get(key);
      if (noted !== undefined) noted.delta = plus(noted.delta, added);
      else if (pending.size < maxPending) pending.set(key, { tenant, version, delta: added });
    },
    /** @throws ApiError UNAVAILABLE: unsent answers are lost */
    flush: async (): Promise<void> => {
      const groups = groupBy([...pending.values()], ({ tenant, version }) => `${version}:${tenant}`);
      pending = new Map();
      for (const group of groups.values()) {
        const { tenant, version } = group[0] as Pending;
        const deltas = group.map(({ delta }) => delta);
        await addItemAnswers(await client(), tenant, version, deltas);
      }
    },
  };
}

/** Unique: a tenant contains no colon. */
const keyOf = (tenant: string, version: number, itemId: string): string => `${version}:${tenant}:${itemId}`;

const plus = (a: ItemDelta, b: ItemDelta): ItemDelta => ({
  itemId: a.itemId,
  answers: a.answers + b.answers,
  right: a.right + b.right,
  expected: a.expected + b.expected,
});
