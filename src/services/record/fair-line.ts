/** How tenants share what is scarce: a part of the places for each, and turns for those who wait. */

/** Places that are taken and left again. @param ofTenant most that one tenant has, so that the others find one */
export function createPlaces(all: number, ofTenant: number) {
  const taken = new Map<string, number>();
  let sum = 0;
  const of = (tenant: string): number => taken.get(tenant) ?? 0;
  const change = (tenant: string, by: 1 | -1): void => {
    sum += by;
    if (of(tenant) + by === 0) taken.delete(tenant);
    else taken.set(tenant, of(tenant) + by);
  };
  return {
    free: (tenant: string): boolean => sum < all && of(tenant) < ofTenant,
    take: (tenant: string): void => change(tenant, 1),
    leave: (tenant: string): void => change(tenant, -1),
  };
}

/** What stands in a line. */
export interface Standing {
  readonly tenant: string;
  /** Of what is shared, in any unit. */
  readonly weight: number;
}

/** What stands there of one tenant. */
interface Queue<Item> {
  readonly waiting: Item[];
  weight: number;
  /** Weight that the tenant was given so far, on the scale of the line's level. */
  given: number;
}

export type FairLine<Item extends Standing> = ReturnType<typeof createFairLine<Item>>;

/**
 * Whoever was given least is next, and the items of one tenant keep their order. Who comes anew begins where the line is:
 * having asked for nothing before earns nothing, and who has much in the line is only waited for once.
 */
export function createFairLine<Item extends Standing>() {
  /** Also of tenants of which nothing waits, for as long as they were given more than the line's level. */
  const queues = new Map<string, Queue<Item>>();
  const none: Readonly<Queue<Item>> = { waiting: [], weight: 0, given: 0 };
  const all = { items: 0, weight: 0 };
  let level = 0;

  function* waitingQueues(): Generator<Queue<Item>> {
    for (const [tenant, queue] of queues) {
      if (queue.waiting.length > 0) yield queue;
      else if (queue.given <= level) queues.delete(tenant);
    }
  }

  /** Takes out as many as `count` from the place `from` on. */
  const takeOut = (queue: Queue<Item>, from: number, count: number): Item[] => {
    const taken = queue.waiting.splice(from, count);
    const weight = taken.reduce((sum, item) => sum + item.weight, 0);
    queue.weight -= weight;
    all.weight -= weight;
    all.items -= taken.length;
    if (all.items === 0) queues.clear();
    return taken;
  };
  const give = (queue: Queue<Item>, count: number): Item[] => {
    const before = queue.weight;
    const given = takeOut(queue, 0, count);
    queue.given += before - queue.weight;
    return given;
  };

  return {
    add: (item: Item): void => {
      const { tenant, weight } = item;
      const queue = queues.get(tenant) ?? { waiting: [], weight: 0, given: level };
      if (queue.waiting.length === 0) queue.given = Math.max(queue.given, level);
      queues.set(tenant, queue);
      queue.waiting.push(item);
      queue.weight += weight;
      all.items += 1;
      all.weight += weight;
    },
    /** Takes out what is next of the tenants' first ones that may go. */
    take: (may: (item: Item) => boolean): Item | undefined => {
      let next: Queue<Item> | undefined;
      for (const queue of waitingQueues()) {
        if (may(queue.waiting[0] as Item) && !(next && next.given <= queue.given)) next = queue;
      }
      if (next === undefined) return undefined;
      level = Math.max(level, next.given);
      return give(next, 1)[0];
    },
    /**
     * Takes out of each tenant, first of the one that was given least, the first ones that may go.
     * @param may is asked of each in turn, and what it lets go is taken
     */
    takeAll: (may: (item: Item) => boolean): Item[] => {
      const taken: Item[] = [];
      for (const queue of [...waitingQueues()].sort((a, b) => a.given - b.given)) {
        const stays = queue.waiting.findIndex((item) => !may(item));
        const count = stays < 0 ? queue.waiting.length : stays;
        if (count === 0) continue;
        if (taken.length === 0) level = Math.max(level, queue.given);
        taken.push(...give(queue, count));
      }
      return taken;
    },
    /** Takes out one that waits no more, if it is there. */
    drop: (item: Item): void => {
      const queue = queues.get(item.tenant);
      const place = queue?.waiting.indexOf(item) ?? -1;
      if (queue !== undefined && place >= 0) takeOut(queue, place, 1);
    },
    /** All that stands there, of each tenant in its order. */
    standing: function* (): Generator<Item> {
      for (const { waiting } of queues.values()) yield* waiting;
    },
    /** What waits of a tenant, in its order. */
    of: (tenant: string): { readonly waiting: readonly Item[]; readonly weight: number } =>
      queues.get(tenant) ?? none,
    /** How much waits. */
    all: all as { readonly items: number; readonly weight: number },
  };
}
