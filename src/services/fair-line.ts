/** How tenants share what is scarce: a part of the places for each, and turns for those who wait. */

/** Places that are taken and left again. */
export interface Places {
  /** Whether the tenant may take one. */
  free(tenant: string): boolean;
  take(tenant: string): void;
  leave(tenant: string): void;
}

/** @param ofTenant most that one tenant has at a time, so that the others find one */
export function createPlaces(all: number, ofTenant: number): Places {
  const taken = new Map<string, number>();
  let sum = 0;
  const of = (tenant: string): number => taken.get(tenant) ?? 0;
  const add = (tenant: string, change: 1 | -1): void => {
    sum += change;
    if (of(tenant) + change === 0) taken.delete(tenant);
    else taken.set(tenant, of(tenant) + change);
  };
  return {
    free: (tenant) => sum < all && of(tenant) < ofTenant,
    take: (tenant) => add(tenant, 1),
    leave: (tenant) => add(tenant, -1),
  };
}

/** What stands in a line. */
export interface Standing {
  readonly tenant: string;
  /** Of what is shared, in any unit. */
  readonly cost: number;
}

export interface FairLine<Item extends Standing> {
  add(item: Item): void;
  /** Takes out what is next of the tenants' first ones that may go. */
  take(may: (item: Item) => boolean): Item | undefined;
  drop(item: Item): void;
  /** How many wait, of a tenant or in all. */
  waiting(tenant?: string): number;
}

interface Lane<Item> {
  readonly items: Set<Item>;
  /** What the tenant was given so far, on the scale of the line's level. */
  given: number;
}

/**
 * Whoever was given least is next, and the items of one tenant keep their order. Who comes anew begins where the line is:
 * having asked for nothing before earns nothing, and who has much in the line is only waited for once.
 */
export function createFairLine<Item extends Standing>(): FairLine<Item> {
  const lanes = new Map<string, Lane<Item>>();
  let level = 0;
  let size = 0;
  const laneOf = (tenant: string): Lane<Item> => {
    const lane = lanes.get(tenant) ?? { items: new Set(), given: level };
    lanes.set(tenant, lane);
    return lane;
  };
  const drop = (item: Item): void => {
    if (lanes.get(item.tenant)?.items.delete(item)) size -= 1;
    // What was given counts among those who wait together.
    if (size === 0) lanes.clear();
  };
  return {
    add: (item) => {
      const lane = laneOf(item.tenant);
      if (lane.items.size === 0) lane.given = Math.max(lane.given, level);
      lane.items.add(item);
      size += 1;
    },
    take: (may) => {
      const [next] = firstOnes(lanes.values(), may).sort((a, b) => a.lane.given - b.lane.given);
      if (next === undefined) return undefined;
      level = next.lane.given;
      next.lane.given += next.item.cost;
      drop(next.item);
      return next.item;
    },
    drop,
    waiting: (tenant) => (tenant === undefined ? size : (lanes.get(tenant)?.items.size ?? 0)),
  };
}

function firstOnes<Item>(lanes: Iterable<Lane<Item>>, may: (item: Item) => boolean) {
  return [...lanes].flatMap((lane) => {
    const [item] = lane.items;
    return item !== undefined && may(item) ? [{ lane, item }] : [];
  });
}
