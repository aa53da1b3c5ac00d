/**
 * Calls that come while one is running share its outcome: a crowd that asks the same costs what one costs.
 *
 * @param make settles in bounded time
 */
export function shared<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let running: Promise<Value> | null = null;
  return () => {
    running ??= make().finally(() => {
      running = null;
    });
    return running;
  };
}
