/**
 * Makes way for learners by today's formulas: what was counted by earlier ones is moved aside in Redis, and an ordinary
 * rebuild restores it.
 *
 * A kill may come between any two steps, and the next run goes on. Until it is decided, the markers can be put back; from
 * then on nobody counts, for no process finds one that it knows. Once today's version is noted, what is missing is a
 * matter of any rebuild, and what that restores is never moved.
 */
import type { RebuildSource, RebuildStore } from './ports.js';
import { RebuildError } from './rebuild.js';

/** Redis with learners of an earlier version. All writes may be repeated. @throws ApiError UNAVAILABLE */
export interface ReplaceStore {
  /** What ClickHouse does not have yet and a rebuild would lose, for people; empty where all is there. */
  waiting(): Promise<readonly string[]>;
  /** From here on nobody counts answers. */
  moveMarkers(): Promise<void>;
  putMarkersBack(): Promise<void>;
  /** Notes that learners are moved from now on, and whether that was noted. */
  decide(): Promise<void>;
  isDecided(): Promise<boolean>;
  /** Moves learners and their items. @param onMoved hears how many keys so far. @returns how many */
  moveLearners(onMoved: (keys: number) => void): Promise<number>;
  /** Notes today's version. */
  finish(): Promise<void>;
}

export interface ReplaceParts {
  readonly source: Pick<RebuildSource, 'holdsState' | 'unknown'>;
  readonly store: Pick<RebuildStore, 'learners'>;
  readonly replacing: ReplaceStore;
}

/**
 * Stops everybody who counts by earlier formulas, and makes sure that nothing came in before they stopped. To be done
 * before the schema is touched, for the version before may have to drain once more.
 *
 * @param check fails where somebody else does the same now, or the run is to end
 * @throws RebuildError where something would be lost; then nothing has changed
 */
export async function decideToReplace(parts: ReplaceParts, check: () => void): Promise<void> {
  const { replacing } = parts;
  if (await replacing.isDecided()) return;
  await refuseWaiting(replacing);
  await refuseUnknown(parts);
  check();
  await replacing.moveMarkers();
  await refuseWaiting(replacing);
  check();
  await replacing.decide();
}

/** @param onMoved hears how many keys were moved so far, and may fail as `check` does. @returns how many */
export async function moveLearners(
  replacing: ReplaceStore,
  onMoved: (keys: number) => void,
): Promise<number> {
  const keys = await replacing.moveLearners(onMoved);
  onMoved(keys);
  await replacing.finish();
  return keys;
}

async function refuseWaiting(replacing: ReplaceStore): Promise<void> {
  const waiting = await replacing.waiting();
  if (waiting.length > 0)
    await refuse(
      replacing,
      `Redis alone has ${waiting.join(', ')}: start the version before, wait until health tells outbox_length, journal_length, erasures_due and parked 0 (npm run parked), stop it and run this again`,
    );
}

/** An earlier run may have moved the markers before it was killed. */
async function refuse(replacing: ReplaceStore, message: string): Promise<never> {
  await replacing.putMarkersBack();
  throw new RebuildError(message);
}

const maxNames = 5;

/** Of another database, or one that lost rows, nobody would come back. */
async function refuseUnknown({ source, store, replacing }: ReplaceParts): Promise<void> {
  const isEmpty = !(await source.holdsState());
  const names: string[] = [];
  for await (const learners of store.learners())
    for (const { tenant, userId } of isEmpty ? learners : await source.unknown(learners))
      names.push(`${tenant}:${userId}`);
  if (names.length > 0)
    await refuse(
      replacing,
      `ClickHouse has no answers of ${names.length} learners of Redis (${names.slice(0, maxNames).join(', ')}): is it the right database?`,
    );
}
