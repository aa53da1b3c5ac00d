/**
 * One attempt as it travels from the commit in Redis to the `attempts` table in ClickHouse.
 *
 * The row is encoded once, in the worker that commits it, in the form that ClickHouse takes as it is
 * (TabSeparated), so that draining the outbox moves bytes and builds no objects. The two outbox columns and the
 * partition are put in front when the outbox is drained, because the outbox gives them.
 */

/** Everything that is known about one counted answer. Times are Unix milliseconds, probabilities 0 to 1. */
export interface AttemptRow {
  tenant: string;
  userId: string;
  skillId: string;
  itemId: string | null;
  eventId: string | null;
  isCorrect: boolean;
  timeSpentSeconds: number | null;
  confidenceScore: number | null;
  questionDifficulty: number | null;
  occurredAt: number;
  receivedAt: number;
  /** 1 for the learner's first counted answer, then without gaps. */
  learnerSeq: number;
  masteryBefore: number;
  masteryAfter: number;
  pCorrect: number;
  plateauDetected: boolean;
  pInit: number;
  pLearn: number;
  pGuess: number;
  pSlip: number;
  parametersVersion: number;
  modelVersion: number;
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
 */
export function encodeAttemptRow(row: AttemptRow): string {
  return [
    row.tenant,
    escapeText(row.userId),
    escapeText(row.skillId),
    row.itemId === null ? '' : escapeText(row.itemId),
    row.eventId === null ? '' : escapeText(row.eventId),
    row.isCorrect ? 1 : 0,
    row.timeSpentSeconds ?? '\\N',
    row.confidenceScore ?? '\\N',
    row.questionDifficulty ?? '\\N',
    encodeTime(row.occurredAt),
    encodeTime(row.receivedAt),
    row.learnerSeq,
    row.masteryBefore,
    row.masteryAfter,
    row.pCorrect,
    row.plateauDetected ? 1 : 0,
    row.pInit,
    row.pLearn,
    row.pGuess,
    row.pSlip,
    row.parametersVersion,
    row.modelVersion,
  ].join('\t');
}

/** Ids have no control characters (contracts/events.ts), so a backslash is all that TSV needs escaped. */
const escapeText = (text: string): string => (text.includes('\\') ? text.replaceAll('\\', '\\\\') : text);

/** ClickHouse takes Unix seconds of few digits for something else, so they are always ten. */
const encodeTime = (ms: number): string => (ms / 1000).toFixed(3).padStart(14, '0');
