/**
 * Corrections: control entries among the rows of an outbox, field `c`. They stand in order with the rows. The drain
 * carries a rewriting out when every row before it is stored and none after it is; an erasure goes to the partition's
 * due ones when every row before it is stored, and rows behind it flow on (ADR 27).
 */
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';

/** Everything that was stored of the learner before the correction goes. */
export interface EraseCorrection {
  readonly v: 1;
  readonly kind: 'erase';
  readonly erasureId: string;
  /** Unix milliseconds of the learner's last goal, which the script adds; 0: there was none. */
  readonly goalAt: number;
  readonly tenant: string;
  readonly userId: string;
}

/** The learner's rows from this sequence number on go: they follow behind the correction once more, computed anew. */
export interface RewriteCorrection {
  readonly v: 1;
  readonly kind: 'rewrite';
  readonly tenant: string;
  readonly userId: string;
  readonly fromSeq: number;
  /**
   * UTC day (number since 1970) on which the answer arrived that is taken back; null where it was never counted among
   * the accepted ones (older versions did not).
   */
  readonly takenBackDay: number | null;
}

export type Correction = EraseCorrection | RewriteCorrection;

/** A correction in its place: the outbox, or the due ones. */
export interface PendingCorrection {
  readonly partition: number;
  /** Outbox id, `milliseconds-sequence`. */
  readonly id: string;
  /** As it stands there: what cannot be read holds up its own partition alone. */
  readonly text: string;
}

const learner = { v: Type.Literal(1), tenant: Type.String(), userId: Type.String() };
const check = Compile(
  Type.Union([
    Type.Object({
      ...learner,
      kind: Type.Literal('erase'),
      erasureId: Type.String(),
      goalAt: Type.Integer(),
    }),
    Type.Object({
      ...learner,
      kind: Type.Literal('rewrite'),
      fromSeq: Type.Integer({ minimum: 1 }),
      takenBackDay: Type.Union([Type.Integer(), Type.Null()]),
    }),
  ]),
);

/** Processes and Redis tell the time a little differently: what follows a correction within it may be of before. */
export const clockMs = 5000;

export const encodeCorrection = (correction: Correction): string => JSON.stringify(correction);

/** @throws Error for what this version of the service does not know */
export function decodeCorrection(text: string): Correction {
  const found = parsed(text);
  if (check.Check(found)) return found;
  throw new Error('the outbox has a correction that is not known to this version');
}

/** Whether rows may flow past it. What this version does not know holds up its partition. */
export function isErasure(text: string): boolean {
  const found = parsed(text);
  return check.Check(found) && found.kind === 'erase';
}

/** Undefined for what is no JSON, which no version knows. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
