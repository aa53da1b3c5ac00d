/**
 * A rewrite is an outbox entry in the field `c`. The drain applies it when every earlier row is stored, and reads no later rows
 * before that. An erasure is in a separate stream under an outbox id, and is applied when the outbox has nothing older (ADR 27).
 */
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import type { LearnerPlace } from './learner-name.js';
import { firstRowOf, type OutboxId } from './outbox-ids.js';

const learner = { v: Type.Literal(1), tenant: Type.String(), userId: Type.String() };

const Erase = Type.Object({
  ...learner,
  kind: Type.Literal('erase'),
  erasureId: Type.String(),
  /** Unix milliseconds of the learner's last goal, added by the script; 0: none. */
  goalAt: Type.Integer(),
});

/** Removes the learner's rows from `fromSeq` on. All but the retracted one follow the correction, recomputed. */
const Rewrite = Type.Object({
  ...learner,
  kind: Type.Literal('rewrite'),
  fromSeq: Type.Integer({ minimum: 1 }),
  /** UTC day (number since 1970) on which the retracted answer arrived. */
  takenBackDay: Type.Integer(),
});

export type RewriteCorrection = Static<typeof Rewrite>;
export type Correction = Static<typeof Erase> | RewriteCorrection;
const check = Compile(Type.Union([Erase, Rewrite]));

export interface PendingCorrection {
  readonly partition: number;
  readonly id: string;
  /** Not decoded: an unreadable correction blocks only one partition. */
  readonly text: string;
}

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

export interface Removal {
  /** Answers that are not written again, by UTC day of arrival (number since 1970). */
  readonly answers: Counts;
  readonly before: Counts;
}

/** Clocks of processes and Redis differ: an event dated up to this long after a correction may be older. */
export const clockMs = 5000;

export const encodeCorrection = (correction: Correction): string => JSON.stringify(correction);

/** @throws Error for invalid JSON or an unknown version */
export function decodeCorrection(text: string): Correction {
  const found: unknown = JSON.parse(text);
  if (check.Check(found)) return found;
  throw new Error('a correction is not known to this version');
}

export const rowsOf = ({ partition, id }: PendingCorrection, correction: Correction): CorrectedRows => ({
  ...{ tenant: correction.tenant, userId: correction.userId, partition, below: firstRowOf(id) },
  ...(correction.kind === 'erase'
    ? { fromSeq: 0, goalAt: correction.goalAt }
    : { fromSeq: correction.fromSeq, goalAt: 0 }),
});
