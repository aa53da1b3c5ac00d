/** Keeps learners' states after the last of the answers that are about to be dropped. */
import type { AttemptRow } from '../../contracts/attempt-row.js';
import { type ReplayedStates, startReplay } from '../../domain/history/replay.js';
import { groupedBy } from '../../lists.js';
import type { LearnerPage, PlacedRow, SnapshotStore, SnapshotWriter } from './retention-ports.js';

/** The states as one text. */
export interface SnapshotCodec {
  encode(states: ReplayedStates): string;
  decode(text: string): ReplayedStates;
}

export function createSnapshotWriter(store: SnapshotStore, codec: SnapshotCodec): SnapshotWriter {
  /** Null where the learner's snapshot has all of the rows already. */
  function snapshotOf(rows: readonly AttemptRow[], from: string | undefined) {
    const states = from === undefined ? null : codec.decode(from);
    const known = states?.learner.attempts ?? 0;
    const newer = rows.filter(({ figures }) => figures.learnerSeq > known);
    if (newer.length === 0) return null;
    const replay = startReplay(states);
    for (const row of newer) replay.add(row);
    return { states: replay.states(), missing: replay.missing() };
  }

  async function write(month: number, page: LearnerPage) {
    const [latest, placed] = await Promise.all([store.latest(page), store.rowsUpTo(month, page)]);
    const snapshots = [...groupedBy(placed, userOf)].flatMap(([userId, own]) => {
      const rows = own.map(({ row }) => row);
      const made = snapshotOf(rows, latest.get(userId));
      return made === null ? [] : [{ userId, partition: (own[0] as PlacedRow).partition, ...made }];
    });
    await store.save(
      month,
      page.tenant,
      snapshots.map(({ userId, partition, states }) => ({
        userId,
        partition,
        learnerSeq: states.learner.attempts,
        state: codec.encode(states),
      })),
    );
    return {
      written: snapshots.length,
      incomplete: snapshots.filter(({ missing }) => missing !== 0).length,
    };
  }

  return { write };
}

const userOf = ({ row }: PlacedRow): string => row.event.userId;
