/** Collects all items. Node 20 has no Array.fromAsync. */
export async function listed<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}
