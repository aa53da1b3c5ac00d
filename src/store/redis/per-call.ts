/** What is asked of learners in one call, wherever they are. */
import { byPartition } from '../../lists.js';
import type { Placed } from '../learners/learner-records.js';
import { isCluster, type RedisClient } from './client.js';

/** One call for everything on a single node; on a Cluster a script may touch one slot, so one per partition. */
export async function perCall<Item extends Placed, Result>(
  client: RedisClient,
  items: readonly Item[],
  call: (group: readonly Item[]) => Promise<Result[]>,
): Promise<Result[]> {
  if (!isCluster(client)) return call(items);
  const results = new Map<Item, Result>();
  const callGroup = async (group: readonly Item[]): Promise<void> => {
    const answers = await call(group);
    answers.forEach((answer, i) => {
      results.set(group[i] as Item, answer);
    });
  };
  await Promise.all([...byPartition(items).values()].map(callGroup));
  return items.map((item) => results.get(item) as Result);
}
