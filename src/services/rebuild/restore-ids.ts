/** The event ids' part of a rebuild: their first answers are there with the learners, their order follows. */
import type { Checkpoint } from './ports.js';
import type { RebuildOptions, RebuildParts } from './rebuild.js';

/** In the order in which they were committed, by which the oldest are forgotten. */
export async function restoreIds(
  { source, store }: RebuildParts,
  { check, onProgress }: RebuildOptions,
  { partitions, idsFrom, answers }: Checkpoint,
  count: number,
): Promise<void> {
  for (const [done, partition] of partitions.entries()) {
    check();
    onProgress({ step: `event ids, ${done} of ${partitions.length} partitions`, answers, total: answers });
    let first = true;
    for await (const ids of source.ids(partition, idsFrom)) {
      await store.queueIds(partition, ids, first);
      first = false;
    }
  }
  // Behind the others: they are forgotten a little later than they would have been.
  for await (const ids of source.takenBack(idsFrom)) await store.putTakenBack(ids, partitions, count);
}
