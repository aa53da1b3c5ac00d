/** `weight`: in any unit. */
export type QueuedItem = { readonly tenant: string; readonly weight: number };

/** `servedWeight`: total of served items, starting at the queue's level when the tenant joined. */
type TenantQueue<Item> = { readonly items: Item[]; weight: number; servedWeight: number };

export type FairQueue<Item extends QueuedItem> = ReturnType<typeof createFairQueue<Item>>;

/**
 * The least served tenant is next. The level is the served weight of the tenant that was
 * served last; it never decreases. A returning tenant starts at the level, so idle time earns no credit. Items of a
 * tenant stay in order.
 */
export function createFairQueue<Item extends QueuedItem>() {
  /** Empty queues stay while they are above the level. When nothing is queued, all are forgotten. */
  const queues = new Map<string, TenantQueue<Item>>();
  const emptyQueue: Readonly<TenantQueue<Item>> = { items: [], weight: 0, servedWeight: 0 };
  const total = { items: 0, weight: 0 };
  let servedLevel = 0;

  function* nonEmpty(): Generator<TenantQueue<Item>> {
    for (const [tenant, queue] of queues) {
      if (queue.items.length > 0) yield queue;
      else if (queue.servedWeight <= servedLevel) queues.delete(tenant);
    }
  }

  function removeFrom(queue: TenantQueue<Item>, from: number, count: number, isServed: boolean): Item[] {
    const removed = queue.items.splice(from, count);
    const weight = removed.reduce((sum, item) => sum + item.weight, 0);
    queue.weight -= weight;
    if (isServed) queue.servedWeight += weight;
    total.weight -= weight;
    total.items -= removed.length;
    if (total.items === 0) queues.clear();
    return removed;
  }

  return {
    add: (item: Item): void => {
      const queue = queues.get(item.tenant) ?? { items: [], weight: 0, servedWeight: servedLevel };
      if (queue.items.length === 0) queue.servedWeight = Math.max(queue.servedWeight, servedLevel);
      queues.set(item.tenant, queue);
      queue.items.push(item);
      queue.weight += item.weight;
      total.items += 1;
      total.weight += item.weight;
    },
    /** Considers the first item of each tenant. */
    dequeue: (canDispatch: (item: Item) => boolean): Item | undefined => {
      let next: TenantQueue<Item> | undefined;
      for (const queue of nonEmpty()) {
        if (canDispatch(queue.items[0] as Item) && !(next && next.servedWeight <= queue.servedWeight))
          next = queue;
      }
      if (next === undefined) return undefined;
      servedLevel = Math.max(servedLevel, next.servedWeight);
      return removeFrom(next, 0, 1, true)[0];
    },
    /** Offers items, the least served tenant first. `accept` is called once per item, until it rejects one of the tenant. */
    dequeueAccepted: (accept: (item: Item) => boolean): Item[] => {
      const taken: Item[] = [];
      for (const queue of [...nonEmpty()].sort((a, b) => a.servedWeight - b.servedWeight)) {
        const stays = queue.items.findIndex((item) => !accept(item));
        const count = stays < 0 ? queue.items.length : stays;
        if (count === 0) continue;
        if (taken.length === 0) servedLevel = Math.max(servedLevel, queue.servedWeight);
        taken.push(...removeFrom(queue, 0, count, true));
      }
      return taken;
    },
    remove: (item: Item): void => {
      const queue = queues.get(item.tenant);
      const index = queue?.items.indexOf(item) ?? -1;
      if (queue !== undefined && index >= 0) removeFrom(queue, index, 1, false);
    },
    items: function* (): Generator<Item> {
      for (const { items } of queues.values()) yield* items;
    },
    findQueue: (tenant: string): { readonly items: readonly Item[]; readonly weight: number } =>
      queues.get(tenant) ?? emptyQueue,
    total: total as { readonly items: number; readonly weight: number },
  };
}
