/**
 * Puts learners that an earlier version kept out of use, so that an ordinary rebuild restores them as this one keeps them.
 *
 * A kill may come between any two steps, and the next run goes on. Until this version is noted the markers can be put back;
 * from then on no process of the version before counts, and what is missing is restored by any rebuild.
 */
import type { OtherVersion } from '../../store/redis/deployment.js';
import { RebuildError, type RebuildParts } from './rebuild.js';

/**
 * To be called before the schema is touched, for the version before may have to drain once more.
 *
 * @param check fails where somebody else does the same now, or the run is to end
 * @throws RebuildError where something would be lost; then nothing has changed
 */
export async function retireOlder(
  { source, store }: Pick<RebuildParts, 'source' | 'store'>,
  older: OtherVersion,
  check: () => void,
): Promise<void> {
  const refuseLoss = async (reasons: readonly (() => Promise<string | null>)[]): Promise<void> => {
    for (const reason of reasons) {
      const message = await reason();
      if (message === null) continue;
      // Also those that an earlier run has moved before it was killed.
      await store.moveMarkers(older, 'back');
      throw new RebuildError(message);
    }
  };
  const waiting = () => waitingReason(store, older);
  await refuseLoss([waiting, () => unknownReason(source, store)]);
  check();
  await store.moveMarkers(older, 'aside');
  // Nothing more comes in: what came in since is seen now.
  await refuseLoss([waiting]);
  check();
  await store.noteVersion(older);
}

async function waitingReason(store: RebuildParts['store'], older: OtherVersion): Promise<string | null> {
  const waiting = await store.waiting(older.partitions);
  return waiting.length === 0
    ? null
    : `Redis alone has ${waiting.join(', ')}: start the version before, wait until health shows outbox_length, journal_length, erasures_due and parked 0 (npm run parked), stop it and run this again`;
}

const maxNames = 5;

/** Learners of another database, or of one that lost rows, would not come back. */
async function unknownReason(
  source: RebuildParts['source'],
  store: RebuildParts['store'],
): Promise<string | null> {
  const isEmpty = !(await source.holdsState());
  const names: string[] = [];
  for await (const learners of store.learners())
    for (const { tenant, userId } of isEmpty ? learners : await source.unknown(learners))
      names.push(`${tenant}:${userId}`);
  return names.length === 0
    ? null
    : `ClickHouse has no answers of ${names.length} learners of Redis (${names.slice(0, maxNames).join(', ')}): is it the right database?`;
}
