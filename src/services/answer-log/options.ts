import type { TimeFormat } from './times.js';

/** Columns of an answer, as in Skilltrace's own files. */
export const answerColumns = [
  'user_id',
  'correct',
  'skill_id',
  'skill_ids',
  'item_id',
  'order',
  'ts',
  'response_time_s',
  'fold',
  'question_difficulty',
] as const;
export type AnswerColumn = (typeof answerColumns)[number];

/** How to read a file; null: as its format defines. */
export interface ReadOptions {
  /** Name of a format; null: detected. */
  readonly format: string | null;
  /** Column of the file by column of the answer; several are joined by `+`. */
  readonly columns: Readonly<Partial<Record<AnswerColumn, string>>>;
  /** Knowledge component model of DataShop and KDD Cup files. */
  readonly kc: string | null;
  readonly skillSeparator: string | null;
  readonly delimiter: string | null;
  readonly encoding: string | null;
  readonly decimal: '.' | ',';
  readonly timeFormat: TimeFormat | null;
  /** IANA name. */
  readonly timezone: string | null;
  readonly correctValues: readonly string[] | null;
  readonly incorrectValues: readonly string[] | null;
  readonly firstAttemptsOnly: boolean;
  readonly originalsOnly: boolean;
  /** Partial credit from this score on is correct. */
  readonly minScore: number | null;
  /** Column of the file; numbers sort by value, dates by time, other texts by bytes. */
  readonly sortBy: string | null;
  /** Unix milliseconds of the numeric time 0. */
  readonly start: number | null;
}

export const defaultReadOptions: ReadOptions = {
  ...{ format: null, columns: {}, kc: null, skillSeparator: null, delimiter: null, encoding: null },
  ...{ decimal: '.', timeFormat: null, timezone: null, correctValues: null, incorrectValues: null },
  ...{ firstAttemptsOnly: false, originalsOnly: false, minScore: null, sortBy: null, start: null },
};
