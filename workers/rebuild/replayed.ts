/** Rows of many learners, replayed learner by learner. */
import { type AttemptRow, decodeAttemptRow, unescapeText } from '../../src/contracts/attempt-row.js';
import { learnerName } from '../../src/contracts/learner-name.js';
import type { LearnerRows } from '../../src/contracts/rebuild-tasks.js';
import { type ReplayedStates, startReplay } from '../../src/domain/history/replay.js';
import { groupedBy } from '../../src/lists.js';
import {
  encodeFirstAnswer,
  fingerprintFrom,
  hashEventId,
  type IdFields,
  noIds,
  openIds,
} from '../../src/store/learners/event-ids.js';
import { decodeSnapshot } from '../../src/store/learners/learner-codec.js';
import { figuresOf } from '../track/results.js';

export interface StoredLearner {
  readonly tenant: string;
  readonly userId: string;
  /** What the rows follow on; null where the first is the learner's first. */
  from: ReplayedStates | null;
  rows: AttemptRow[];
  /** Rows that there are, those before the snapshot as well. */
  answers: number;
}

export function* learnersOf(rows: LearnerRows): Generator<StoredLearner> {
  const lines = Buffer.from(rows.buffer, rows.byteOffset, rows.byteLength).toString().split('\n');
  let learner: StoredLearner | null = null;
  for (const line of lines) {
    if (line === '') continue;
    const end = line.lastIndexOf('\t');
    const [tenant, userId] = namesOf(line);
    if (learner === null || learner.tenant !== tenant || learner.userId !== userId) {
      if (learner !== null) yield learner;
      learner = { tenant, userId, from: null, rows: [], answers: 0 };
    }
    if (end + 1 < line.length) {
      // The rows before are in the snapshot.
      learner.from = decodeSnapshot(unescapeText(line.slice(end + 1)));
      learner.rows = [];
    } else {
      learner.rows.push(decodeAttemptRow(line.slice(0, end)));
      learner.answers += 1;
    }
  }
  if (learner !== null) yield learner;
}

/** The first two fields. */
function namesOf(line: string): [tenant: string, userId: string] {
  const tenantEnd = line.indexOf('\t');
  const userEnd = line.indexOf('\t', tenantEnd + 1);
  return [line.slice(0, tenantEnd), unescapeText(line.slice(tenantEnd + 1, userEnd))];
}

/** The learners with their waiting rows, which may be among the stored ones as well; then those without stored rows. */
export function* withWaiting(
  learners: Iterable<StoredLearner>,
  waiting: readonly string[],
): Generator<StoredLearner> {
  const rowsOf = groupedBy(waiting.map(decodeAttemptRow), ({ event }) =>
    learnerName(event.tenant, event.userId),
  );
  const inOrder = (rows: AttemptRow[]): AttemptRow[] =>
    rows.sort((a, b) => a.figures.learnerSeq - b.figures.learnerSeq);
  for (const learner of learners) {
    const name = learnerName(learner.tenant, learner.userId);
    const rows = rowsOf.get(name) ?? [];
    rowsOf.delete(name);
    yield rows.length === 0 ? learner : { ...learner, rows: inOrder([...learner.rows, ...rows]) };
  }
  for (const rows of rowsOf.values()) {
    const { tenant, userId } = (rows[0] as AttemptRow).event;
    yield { tenant, userId, from: null, rows: inOrder(rows), answers: rows.length };
  }
}

export interface ReplayedLearner {
  readonly tenant: string;
  readonly userId: string;
  readonly states: ReplayedStates;
  /** Event ids of answers that arrived late enough. */
  readonly ids: IdFields;
  readonly answers: number;
  /** Rows that are missing, or there twice. */
  readonly broken: number;
}

/** @param idsFrom Unix second from which on event ids are wanted */
export function replayLearner(
  { tenant, userId, from, rows, answers }: StoredLearner,
  idsFrom: number,
): ReplayedLearner {
  const replay = startReplay(from);
  const ids = openIds(noIds);
  let [last, doubled] = [from?.learner.attempts ?? 0, 0];
  for (const row of rows) {
    const { event, figures } = row;
    if (figures.learnerSeq <= last) {
      doubled += 1;
      continue;
    }
    last = figures.learnerSeq;
    const { effect, advice } = replay.add(row);
    if (event.eventId === null || event.receivedAt < 1000 * idsFrom) continue;
    const fingerprint = fingerprintFrom(figures.eventFingerprint);
    const answer = encodeFirstAnswer(figuresOf(effect, advice), fingerprint, event.receivedAt);
    ids.take(hashEventId(event.eventId), answer, Math.floor(event.receivedAt / 1000));
  }
  const broken = replay.missing() + doubled;
  return { tenant, userId, states: replay.states(), ids: ids.changes(), answers, broken };
}
