/**
 * The drain applies a rewrite (outbox field `c`) after all earlier rows and before all later ones. Erasures
 * are in a separate stream and are applied when the outbox has no older entry (ADR 21).
 */
import Type, { type Static } from 'typebox';
import type { LearnerId } from '../learners/learner-name.js';
import type { OutboxId } from '../outbox/outbox-ids.js';
import { createStoredParser } from '../schema/stored-json.js';

/** Removes rows from `fromSeq` on. The recomputed rows follow in the outbox. */
const Rewrite = Type.Object({
  v: Type.Literal(1),
  tenant: Type.String(),
  userId: Type.String(),
  kind: Type.Literal('rewrite'),
  fromSeq: Type.Integer({ minimum: 1 }),
  /** UTC day since 1970 on which the retracted answer arrived; null: no answer is removed. */
  takenBackDay: Type.Union([Type.Integer(), Type.Null()]),
});

export type RewriteCorrection = Static<typeof Rewrite>;

export interface CorrectedRows extends LearnerId {
  readonly partition: number;
  /** Only rows with smaller ids are affected. */
  readonly below: OutboxId;
  /** First `learner_seq`; 0: the whole history. */
  readonly fromSeq: number;
  /** Unix milliseconds of the last goal. */
  readonly goalAt: number;
  /** The same answers are written again. */
  readonly keepsAnswers?: boolean;
}

export type Counts = Readonly<Record<string, number>>;

export const RemovalCounts = Type.Object({
  /** Answers that are not rewritten, by UTC day of arrival (number since 1970). */
  answers: Type.Record(Type.String(), Type.Integer()),
  /** Rows by table. */
  before: Type.Record(Type.String(), Type.Integer()),
});
export type RemovalCounts = Readonly<Static<typeof RemovalCounts>>;

/** Clocks differ: an event dated up to this long after a correction may be older. */
export const maxClockSkewMs = 5000;

export const encodeCorrection = (correction: RewriteCorrection): string => JSON.stringify(correction);

export const decodeCorrection = createStoredParser(Rewrite, 'a correction');
