/** Learners from ClickHouse: snapshots and later rows. */
import { type AttemptRow, decodeAttemptRow, unescapeText } from '../../contracts/answers/attempt-row.js';
import type { LearnerRows } from '../../contracts/rebuild/rebuild-tasks.js';
import { type ReplayedAnswer, type ReplayedStates, startReplay } from '../../domain/history/replay.js';
import { decodeSnapshot } from './learner-snapshot.js';

export interface StoredLearner {
  readonly tenant: string;
  readonly userId: string;
  /** State before the rows; null: none. */
  from: ReplayedStates | null;
  rows: AttemptRow[];
  answers: number;
}

/** @param rows TSV lines sorted by learner @throws Error for an unreadable line */
export function* parseLearners(rows: LearnerRows): Generator<StoredLearner> {
  const lines = Buffer.from(rows.buffer, rows.byteOffset, rows.byteLength).toString().split('\n');
  let learner: StoredLearner | null = null;
  for (const line of lines) {
    if (line === '') continue;
    const end = line.lastIndexOf('\t');
    const [tenant = '', user = ''] = line.split('\t', 2);
    const userId = unescapeText(user);
    if (learner === null || learner.tenant !== tenant || learner.userId !== userId) {
      if (learner !== null) yield learner;
      learner = { tenant, userId, from: null, rows: [], answers: 0 };
    }
    if (end + 1 < line.length) {
      learner.from = decodeSnapshot(unescapeText(line.slice(end + 1)));
      learner.rows = [];
    } else {
      learner.rows.push(decodeAttemptRow(line.slice(0, end)));
      learner.answers += 1;
    }
  }
  if (learner !== null) yield learner;
}

/** `broken`: number of missing and duplicate rows. */
export function replayLearner(
  { from, rows }: Pick<StoredLearner, 'from' | 'rows'>,
  onAnswer: (row: AttemptRow, answer: ReplayedAnswer) => void = () => undefined,
): { states: ReplayedStates; broken: number } {
  const replay = startReplay(from);
  let [lastSeq, duplicates] = [from?.learner.attempts ?? 0, 0];
  for (const row of rows) {
    const { learnerSeq } = row.figures;
    if (learnerSeq <= lastSeq) {
      duplicates += 1;
      continue;
    }
    lastSeq = learnerSeq;
    onAnswer(row, replay.add(row));
  }
  return { states: replay.states(), broken: replay.missing() + duplicates };
}
