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
  readonly cost: number;
}

interface Lane<Item> {
  readonly items: Set<Item>;
  /** What the tenant was given so far, on the scale of the line's level. */
  given: number;
}

export type FairLine<Item extends Standing> = ReturnType<typeof createFairLine<Item>>;

/**
 * Whoever was given least is next, and the items of one tenant keep their order. Who comes anew begins where the line is:
 * having asked for nothing before earns nothing, and who has much in the line is only waited for once.
 */
export function createFairLine<Item extends Standing>() {
  /** Of tenants that wait, or did since the line was empty. */
  const lanes = new Map<string, Lane<Item>>();
  let level = 0;
  let size = 0;
  const drop = (item: Item): void => {
    if (lanes.get(item.tenant)?.items.delete(item)) size -= 1;
    if (size === 0) lanes.clear();
  };
  return {
    add: (item: Item): void => {
      const { items, given } = lanes.get(item.tenant) ?? { items: new Set(), given: level };
      lanes.set(item.tenant, { items, given: items.size === 0 ? Math.max(given, level) : given });
      items.add(item);
      size += 1;
    },
    /** Takes out what is next of the tenants' first ones that may go. */
    take: (may: (item: Item) => boolean): Item | undefined => {
      let next: { readonly lane: Lane<Item>; readonly item: Item } | undefined;
      for (const lane of lanes.values()) {
        const [item] = lane.items;
        if (item && may(item) && !(next && next.lane.given <= lane.given)) next = { lane, item };
      }
      if (next === undefined) return undefined;
      level = next.lane.given;
      next.lane.given += next.item.cost;
      drop(next.item);
      return next.item;
    },
    drop,
    waiting: (tenant: string): number => lanes.get(tenant)?.items.size ?? 0,
  };
}
