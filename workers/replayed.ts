/** Rows of many learners, replayed learner by learner. */
import type { AttemptRow } from '../src/contracts/attempt-row.js';
import { decodeAttemptRow } from '../src/contracts/attempt-row-reader.js';
import { type ReplayedStates, startReplay } from '../src/domain/replay.js';
import { encodeFirstAnswer, fingerprintFrom, hashEventId } from '../src/store/event-ids.js';
import { figuresOf } from './told.js';

export interface ReplayedLearner {
  readonly tenant: string;
  readonly userId: string;
  readonly states: ReplayedStates;
  /** By the hash of the event id, of answers that arrived late enough. */
  readonly firstAnswers: readonly (readonly [id: Buffer, answer: Buffer])[];
  readonly answers: number;
  /** Rows that are missing, or there twice. */
  readonly broken: number;
}

/**
 * @param rows as the tables give them, whole learners in order, a line feed behind each
 * @param idsFrom Unix second from which on first answers are wanted
 */
export function* replayRows(rows: Uint8Array, idsFrom: number): Generator<ReplayedLearner> {
  const lines = Buffer.from(rows.buffer, rows.byteOffset, rows.byteLength).toString().split('\n');
  let learner: AttemptRow[] = [];
  for (const line of lines) {
    if (line === '') continue;
    const row = decodeAttemptRow(line);
    const [first] = learner;
    if (first !== undefined && !isSameLearner(first, row)) {
      yield replayLearner(learner, idsFrom);
      learner = [];
    }
    learner.push(row);
  }
  if (learner.length > 0) yield replayLearner(learner, idsFrom);
}

const isSameLearner = ({ event }: AttemptRow, other: AttemptRow): boolean =>
  event.userId === other.event.userId && event.tenant === other.event.tenant;

/** @param rows of one learner, at least one, in order */
function replayLearner(rows: readonly AttemptRow[], idsFrom: number): ReplayedLearner {
  const replay = startReplay();
  const firstAnswers: [Buffer, Buffer][] = [];
  let [last, doubled] = [0, 0];
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
    firstAnswers.push([
      hashEventId(event.tenant, event.userId, event.eventId),
      encodeFirstAnswer(figuresOf(effect, advice), fingerprint, event.receivedAt),
    ]);
  }
  const { tenant, userId } = (rows[0] as AttemptRow).event;
  const broken = replay.missing() + doubled;
  return { tenant, userId, states: replay.states(), firstAnswers, answers: rows.length, broken };
}
