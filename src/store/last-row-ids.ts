import type { RedisClient } from './client.js';
import { outboxKey } from './keys.js';

/** Id of the last row that each partition's outbox was ever given; partitions that never had one are left out. */
export async function lastRowIds(
  client: RedisClient,
  partitions: number,
): Promise<ReadonlyMap<number, readonly [ms: number, seq: number]>> {
  const found = new Map<number, readonly [number, number]>();
  for (let partition = 0; partition < partitions; partition++) {
    const key = outboxKey(partition);
    if ((await client.exists(key)) === 0) continue;
    const facts = (await client.xinfo('STREAM', key)) as unknown[];
    const id = String(facts[facts.indexOf('last-generated-id') + 1]);
    const [ms, seq] = id.split('-').map(Number);
    if (ms !== undefined && seq !== undefined) found.set(partition, [ms, seq]);
  }
  return found;
}
