/** Rejects with the first error; running work continues. */
export async function forEachConcurrently<Item>(
  items: readonly Item[],
  parallel: number,
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  const left = items.values();
  const runNext = async (): Promise<void> => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: parallel }, runNext));
}
