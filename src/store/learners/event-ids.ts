/**
 * What is remembered of an answer that came with an event_id: enough to give the first answer again, and to tell
 * a repeated event from a different one. Where it stands, and for how long: learner-ids.ts.
 */
import type { TrackEvent } from '../../contracts/tasks.js';
import { type Advice, adviceCodes } from '../../domain/advice/answer-advice.js';
import { hashText, readCount, viewOf, writeCount } from '../redis/binary.js';

/**
 * Bytes of an id's hash. It has to be found among the ids of one learner alone, of whom there are 20,000 at most: 64 bits
 * keep the chance of a false hit below 1e-6 a year at a billion answers a day. Ids can be made that meet; who does so is
 * told of an answer of his own.
 */
export const idBytes = 8;

/** Hash under which an event id is remembered among those of its learner. */
export const hashEventId = (eventId: string): Buffer => hashText(eventId);

const fingerprintBytes = 6;

/**
 * Hash of everything that makes two events with one id the same event, as it was sent. Who makes two events of one id
 * look the same is told of the first of them, which is his own.
 */
export function fingerprintOf(event: TrackEvent): Buffer {
  const { itemId, occurredAtText } = event;
  const answer = `${event.isCorrect} ${event.timeSpentSeconds} ${event.confidenceScore}`;
  const question = `${event.questionDifficulty} ${occurredAtText}\0${event.skillId}\0${itemId ?? ''}`;
  return hashText(`${answer} ${question}`).subarray(0, fingerprintBytes);
}

/** The fingerprint as attempt rows carry it: a whole number of 48 bits. */
export const fingerprintNumber = (fingerprint: Buffer): number => fingerprint.readUIntLE(0, fingerprintBytes);

/** The fingerprint that an attempt row carries as a number. */
export function fingerprintFrom(number: number): Buffer {
  const fingerprint = Buffer.allocUnsafe(fingerprintBytes);
  fingerprint.writeUIntLE(number, 0, fingerprintBytes);
  return fingerprint;
}

/** Figures of an answer's result. Masteries are rounded to 4 decimals. */
export interface ResultFigures {
  readonly masteryBefore: number;
  readonly masteryAfter: number;
  readonly attempts: number;
  readonly correct: number;
  readonly plateauDetected: boolean;
  readonly advice: Advice | null;
}

/** The first answer to an event, and the hash of that event. */
export interface FirstAnswer extends ResultFigures {
  readonly fingerprint: Buffer;
}

/** Bytes of a record. */
export const answerBytes = 24;
const plateauFlag = 1;
/** Code and figure of the advice, where there are none. */
const noCode = 0xff;
const noFigure = 0xffff;

/** @param receivedAt Unix milliseconds; the record leads with its second */
export function encodeFirstAnswer(answer: ResultFigures, fingerprint: Buffer, receivedAt: number): Buffer {
  const { advice } = answer;
  const record = Buffer.allocUnsafe(answerBytes);
  const view = viewOf(record);
  view.setUint32(0, Math.floor(receivedAt / 1000), true);
  record.set(fingerprint, 4);
  view.setUint16(10, Math.round(answer.masteryBefore * 1e4), true);
  view.setUint16(12, Math.round(answer.masteryAfter * 1e4), true);
  writeCount(view, answer.attempts, 14);
  writeCount(view, answer.correct, 17);
  view.setUint8(20, answer.plateauDetected ? plateauFlag : 0);
  view.setUint8(21, advice === null ? noCode : adviceCodes.indexOf(advice.code));
  view.setUint16(22, advice?.figures[0] ?? noFigure, true);
  return record;
}

/** @throws Error for what this version of the service cannot read */
export function decodeFirstAnswer(record: Buffer): FirstAnswer {
  if (record.length !== answerBytes)
    throw new Error(`an event id's record of ${record.length} bytes is not known`);
  const view = viewOf(record);
  return {
    fingerprint: record.subarray(4, 4 + fingerprintBytes),
    masteryBefore: view.getUint16(10, true) / 1e4,
    masteryAfter: view.getUint16(12, true) / 1e4,
    attempts: readCount(view, 14),
    correct: readCount(view, 17),
    plateauDetected: (view.getUint8(20) & plateauFlag) !== 0,
    advice: readAdvice(view),
  };
}

function readAdvice(view: DataView): Advice | null {
  const code = adviceCodes[view.getUint8(21)];
  if (code === undefined) return null;
  const figure = view.getUint16(22, true);
  return { code, figures: figure === noFigure ? [] : [figure] };
}
