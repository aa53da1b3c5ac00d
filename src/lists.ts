export function groupBy<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

export const groupByPartition = <Item extends { readonly partition: number }>(
  items: readonly Item[],
): Map<number, Item[]> => groupBy(items, ({ partition }) => partition);

export const splitIntoParts = <Item>(items: readonly Item[], size: number): Item[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));

/** 0 to `count` - 1. */
export const indices = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

export const computeSum = (numbers: readonly number[]): number =>
  numbers.reduce((sum, number) => sum + number, 0);

export const distinct = <Item>(items: Iterable<Item>): Item[] => [...new Set(items)];

export function createInterner(ids: string[]) {
  const known = new Map(ids.map((id, i) => [id, i]));
  return {
    ids,
    indexOf: (id: string): number => {
      const found = known.get(id);
      if (found !== undefined) return found;
      known.set(id, ids.length);
      return ids.push(id) - 1;
    },
  };
}
