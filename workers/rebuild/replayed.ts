/** Rows of many learners, replayed learner by learner. */
import type { AttemptRow } from '../../src/contracts/attempt-row.js';
import { decodeAttemptRow } from '../../src/contracts/attempt-row-reader.js';
import { type TotalContext, takeBaseline } from '../../src/domain/history/baseline.js';
import { type ReplayedStates, startReplay } from '../../src/domain/history/replay.js';
import { tellsBaseline } from '../../src/domain/score/goal.js';
import { encodeFirstAnswer, fingerprintFrom, hashEventId } from '../../src/store/learners/event-ids.js';
import { type IdFields, noIds, openIds } from '../../src/store/learners/learner-ids.js';
import { decodeSnapshot } from '../../src/store/learners/snapshot-codec.js';
import { figuresOf } from '../track/results.js';

export interface ReplayedLearner {
  readonly tenant: string;
  readonly userId: string;
  readonly states: ReplayedStates;
  /** Event ids of answers that arrived late enough. */
  readonly ids: IdFields;
  readonly answers: number;
  /** Rows that are missing, or there twice. */
  readonly broken: number;
  /** Baseline that was taken now; null where none was. */
  readonly taken: number | null;
}

/** @param rows as the tables give them (services/rebuild/ports.ts), whole learners in order, a line feed behind each */
export function* learnersOf(rows: Uint8Array): Generator<LearnerRows> {
  const lines = Buffer.from(rows.buffer, rows.byteOffset, rows.byteLength).toString().split('\n');
  let learner = null as LearnerRows | null;
  for (const line of lines) {
    if (line === '') continue;
    const end = line.lastIndexOf('\t');
    const names = namesOf(line);
    if (learner === null || learner.tenant !== names.tenant || learner.userId !== names.userId) {
      if (learner !== null && hasAnswers(learner)) yield learner;
      learner = { ...names, baseline: null, from: null, rows: [], answers: 0 };
    }
    if (end + 1 < line.length) startFrom(learner, unescaped(line.slice(end + 1)));
    else addRow(learner, decodeAttemptRow(line.slice(0, end)));
  }
  if (learner !== null && hasAnswers(learner)) yield learner;
}

export interface LearnerRows {
  readonly tenant: string;
  readonly userId: string;
  /** The one that rows do not tell. */
  baseline: number | null;
  from: ReplayedStates | null;
  rows: AttemptRow[];
  /** Rows that there are, those before the snapshot as well. */
  answers: number;
}

/** The rows before are in the snapshot. @param state snapshot or baseline */
function startFrom(learner: LearnerRows, state: string): void {
  if (!state.startsWith('{')) {
    learner.baseline = Number(state);
    return;
  }
  learner.from = decodeSnapshot(state);
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

/** A baseline may be all that an erasure has left for the moment. */
const hasAnswers = ({ from, rows }: LearnerRows): boolean => from !== null || rows.length > 0;

/** Whether a replay may have to take a baseline: it knows none, and rows are there that do not tell it. */
export const mayLackBaseline = ({ baseline, rows }: LearnerRows): boolean =>
  baseline === null && rows.some(({ figures }) => !tellsBaseline(figures));

/**
 * @param idsFrom Unix second from which on event ids are wanted
 * @param context what a baseline is taken by where rows are there that do not tell it; null: none is taken
 */
export function replayLearner(
  { tenant, userId, baseline, from, rows, answers }: LearnerRows,
  idsFrom: number,
  context: TotalContext | null,
): ReplayedLearner {
  const replay = startReplay(from, baseline);
  const ids = openIds(noIds);
  let [last, doubled, taken] = [from?.learner.attempts ?? 0, 0, null as number | null];
  for (const row of rows) {
    const { event, figures } = row;
    if (figures.learnerSeq <= last) {
      doubled += 1;
      continue;
    }
    last = figures.learnerSeq;
    const { effect, advice } = replay.add(row);
    if (context !== null && !tellsBaseline(figures))
      taken = takeBaseline(replay, event.occurredAt, context) ?? taken;
    if (event.eventId === null || event.receivedAt < 1000 * idsFrom) continue;
    const fingerprint = fingerprintFrom(figures.eventFingerprint);
    const answer = encodeFirstAnswer(figuresOf(effect, advice), fingerprint, event.receivedAt);
    ids.take(hashEventId(event.eventId), answer, Math.floor(event.receivedAt / 1000));
  }
  const broken = replay.missing() + doubled;
  return { tenant, userId, states: replay.states(), ids: ids.changes(), answers, broken, taken };
}
