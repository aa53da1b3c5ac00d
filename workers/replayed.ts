/** Rows of many learners, replayed learner by learner. */
import type { AttemptRow } from '../src/contracts/attempt-row.js';
import { decodeAttemptRow } from '../src/contracts/attempt-row-reader.js';
import { type ReplayedStates, startReplay } from '../src/domain/replay.js';
import { encodeFirstAnswer, fingerprintFrom, hashEventId } from '../src/store/event-ids.js';
import { decodeSnapshot } from '../src/store/snapshot-codec.js';
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
 * @param rows as the tables give them (services/rebuild/ports.ts), whole learners in order, a line feed behind each
 * @param idsFrom Unix second from which on first answers are wanted
 */
export function* replayRows(rows: Uint8Array, idsFrom: number): Generator<ReplayedLearner> {
  const lines = Buffer.from(rows.buffer, rows.byteOffset, rows.byteLength).toString().split('\n');
  let learner = null as LearnerRows | null;
  for (const line of lines) {
    if (line === '') continue;
    const end = line.lastIndexOf('\t');
    const names = namesOf(line);
    if (learner === null || learner.tenant !== names.tenant || learner.userId !== names.userId) {
      if (learner !== null) yield replayLearner(learner, idsFrom);
      learner = { ...names, from: null, rows: [], answers: 0 };
    }
    if (end + 1 < line.length) startFrom(learner, unescaped(line.slice(end + 1)));
    else addRow(learner, decodeAttemptRow(line.slice(0, end)));
  }
  if (learner !== null) yield replayLearner(learner, idsFrom);
}

interface LearnerRows {
  readonly tenant: string;
  readonly userId: string;
  from: ReplayedStates | null;
  rows: AttemptRow[];
  /** Rows that there are, those before the snapshot as well. */
  answers: number;
}

/** The rows before are in the snapshot. */
function startFrom(learner: LearnerRows, snapshot: string): void {
  learner.from = decodeSnapshot(snapshot);
  learner.rows = [];
}

function addRow(learner: LearnerRows, row: AttemptRow): void {
  learner.rows.push(row);
  learner.answers += 1;
}

/** The first two fields. */
function namesOf(line: string): Pick<LearnerRows, 'tenant' | 'userId'> {
  const tenantEnd = line.indexOf('\t');
  const userEnd = line.indexOf('\t', tenantEnd + 1);
  return { tenant: line.slice(0, tenantEnd), userId: unescaped(line.slice(tenantEnd + 1, userEnd)) };
}

/** Neither ids nor snapshots have control characters. */
const unescaped = (text: string): string => (text.includes('\\') ? text.replaceAll(/\\(.)/g, '$1') : text);

function replayLearner(
  { tenant, userId, from, rows, answers }: LearnerRows,
  idsFrom: number,
): ReplayedLearner {
  const replay = startReplay(from);
  const firstAnswers: [Buffer, Buffer][] = [];
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
    firstAnswers.push([
      hashEventId(event.tenant, event.userId, event.eventId),
      encodeFirstAnswer(figuresOf(effect, advice), fingerprint, event.receivedAt),
    ]);
  }
  const broken = replay.missing() + doubled;
  return { tenant, userId, states: replay.states(), firstAnswers, answers, broken };
}
