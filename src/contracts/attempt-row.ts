import type { BktParameters } from '../domain/params.js';

/**
 * One attempt as it travels from the commit in Redis to the `attempts` table in ClickHouse.
 *
 * The row is encoded once, in the worker that commits it, in the form that ClickHouse takes as it is
 * (TabSeparated), so that draining the outbox moves bytes and builds no objects. The two outbox columns and the
 * partition are put in front when the outbox is drained, because the outbox gives them.
 */

/** The answer itself. Times are Unix milliseconds. */
export interface AttemptEvent {
  readonly tenant: string;
  readonly userId: string;
  readonly skillId: string;
  readonly itemId: string | null;
  readonly eventId: string | null;
  readonly isCorrect: boolean;
  readonly timeSpentSeconds: number | null;
  readonly confidenceScore: number | null;
  readonly questionDifficulty: number | null;
  readonly occurredAt: number;
  readonly receivedAt: number;
}

/** What counting it came to. Masteries and probabilities 0 to 1, unrounded. */
export interface AttemptFigures {
  /** 1 for the learner's first counted answer, then without gaps. */
  readonly learnerSeq: number;
  readonly masteryBefore: number;
  readonly masteryAfter: number;
  readonly pCorrect: number;
  readonly plateauDetected: boolean;
  readonly parametersVersion: number;
  readonly modelVersion: number;
}

/** Columns given by the outbox, in the order in which they stand before the encoded row. */
export const outboxColumns = ['partition_id', 'outbox_ms', 'outbox_seq'] as const;

/** Columns of an encoded row, in its order. */
export const rowColumns = [
  'tenant',
  'user_id',
  'skill_id',
  'item_id',
  'event_id',
  'is_correct',
  'time_spent_seconds',
  'confidence_score',
  'question_difficulty',
  'occurred_at',
  'received_at',
  'learner_seq',
  'mastery_before',
  'mastery_after',
  'p_correct',
  'plateau_detected',
  'p_init',
  'p_learn',
  'p_guess',
  'p_slip',
  'parameters_version',
  'model_version',
] as const;

/**
 * The row as TSV without the outbox columns and without a line feed. An absent item_id or event_id is the empty
 * string (ids have at least one character), an absent number is `\N`; times are Unix seconds with milliseconds.
 *
 * @param parameters in force when the answer was counted: a replay needs them
 */
export function encodeAttemptRow(
  event: AttemptEvent,
  figures: AttemptFigures,
  { pInit, pLearn, pGuess, pSlip }: BktParameters,
): string {
  const ids = `${event.tenant}\t${escapeText(event.userId)}\t${escapeText(event.skillId)}\t${escapeText(event.itemId)}\t${escapeText(event.eventId)}`;
  const answer = `${bit(event.isCorrect)}\t${orNull(event.timeSpentSeconds)}\t${orNull(event.confidenceScore)}\t${orNull(event.questionDifficulty)}`;
  const times = `${encodeTime(event.occurredAt)}\t${encodeTime(event.receivedAt)}\t${figures.learnerSeq}`;
  const trace = `${figures.masteryBefore}\t${figures.masteryAfter}\t${figures.pCorrect}\t${bit(figures.plateauDetected)}`;
  const model = `${pInit}\t${pLearn}\t${pGuess}\t${pSlip}\t${figures.parametersVersion}\t${figures.modelVersion}`;
  return `${ids}\t${answer}\t${times}\t${trace}\t${model}`;
}

const bit = (flag: boolean): number => (flag ? 1 : 0);
const orNull = (value: number | null): number | string => value ?? '\\N';

/** Ids have no control characters (contracts/events.ts), so a backslash is all that TSV needs escaped. */
const escapeText = (text: string | null): string =>
  text?.includes('\\') ? text.replaceAll('\\', '\\\\') : (text ?? '');

/** ClickHouse takes Unix seconds of few digits for something else, so they are always ten. */
const encodeTime = (ms: number): string => (ms / 1000).toFixed(3).padStart(14, '0');
