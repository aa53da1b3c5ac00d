/**
 * A rewrite is an outbox entry in the field `c`. The drain applies it when every earlier row is stored, and reads no later rows
 * before that. An erasure is in a separate stream under an outbox id, and is applied when the outbox has nothing older (ADR 27).
 */
import Type, { type Static } from 'typebox';
import type { LearnerPlace } from './learner-name.js';
import type { OutboxId } from './outbox-ids.js';
import { storedJson } from './stored-json.js';

/** Removes the learner's rows from `fromSeq` on. All but the retracted one follow the correction, recomputed. */
const Rewrite = Type.Object({
  v: Type.Literal(1),
  tenant: Type.String(),
  userId: Type.String(),
  kind: Type.Literal('rewrite'),
  fromSeq: Type.Integer({ minimum: 1 }),
  /** UTC day (number since 1970) on which the retracted answer arrived. */
  takenBackDay: Type.Integer(),
});

export type RewriteCorrection = Static<typeof Rewrite>;

export interface CorrectedRows extends LearnerPlace {
  readonly partition: number;
  /** Of entries before the correction. */
  readonly below: OutboxId;
  /** First `learner_seq`; 0: the whole history (erasure). */
  readonly fromSeq: number;
  /** Unix milliseconds of the last goal of an erased history. */
  readonly goalAt: number;
}

export type Counts = Readonly<Record<string, number>>;

/** Counts taken before anything is removed. */
export const Removal = Type.Object({
  /** Answers that are not written again, by UTC day of arrival (number since 1970). */
  answers: Type.Record(Type.String(), Type.Integer()),
  /** Rows by table. */
  before: Type.Record(Type.String(), Type.Integer()),
});
export type Removal = Readonly<Static<typeof Removal>>;

/** Clocks of processes and Redis differ: an event dated up to this long after a correction may be older. */
export const clockMs = 5000;

export const encodeCorrection = (correction: RewriteCorrection): string => JSON.stringify(correction);

export const decodeCorrection = storedJson(Rewrite, 'a correction');
