/** Keeps learners' states after the last of the answers that are about to be dropped. */
import type { AttemptRow } from '../contracts/attempt-row.js';
import { type ReplayedStates, startReplay } from '../domain/replay.js';
import type { LearnerPage, SnapshotStore, SnapshotWriter } from './retention-ports.js';

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
    const [latest, rows] = await Promise.all([store.latest(page), store.rowsUpTo(month, page)]);
    const snapshots = [...byLearner(rows)].flatMap(([userId, of]) => {
      const made = snapshotOf(of, latest.get(userId));
      return made === null ? [] : [{ userId, ...made }];
    });
    await store.save(
      month,
      page.tenant,
      snapshots.map(({ userId, states }) => ({
        userId,
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

function byLearner(rows: readonly AttemptRow[]): Map<string, AttemptRow[]> {
  const learners = new Map<string, AttemptRow[]>();
  for (const row of rows) {
    const known = learners.get(row.event.userId);
    if (known) known.push(row);
    else learners.set(row.event.userId, [row]);
  }
  return learners;
}
