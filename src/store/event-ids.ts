/**
 * What is remembered of an answer that came with an event_id: enough to give the first answer again, and to tell
 * a repeated event from a different one. With Redis's own cost an id takes at most 64 bytes.
 */
import { hash } from 'node:crypto';
import type { TrackEvent } from '../contracts/tasks.js';
import { type Advice, adviceCodes } from '../domain/recommend.js';
import { readCount, viewOf, writeCount } from './records.js';
import { hashText } from './text-hash.js';

/** Bytes of an id's hash: 80 bits keep the chance of a false hit below 1e-10 a day at 20 million ids. */
export const idBytes = 10;

/**
 * Hash under which an event id of one learner is remembered: the first bytes of SHA-256, for who could make two ids
 * meet would be told of another learner. Ids hold no NUL, so the parts cannot be confused.
 */
export const hashEventId = (tenant: string, userId: string, eventId: string): Buffer =>
  hash('sha256', `${tenant}\0${userId}\0${eventId}`, 'buffer').subarray(0, idBytes);

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

/** What an answer told. Masteries are rounded to 4 decimals. */
export interface ToldFigures {
  readonly masteryBefore: number;
  readonly masteryAfter: number;
  readonly attempts: number;
  readonly correct: number;
  readonly plateauDetected: boolean;
  readonly advice: Advice | null;
}

/** The first answer to an event, and the hash of that event. */
export interface FirstAnswer extends ToldFigures {
  readonly fingerprint: Buffer;
}

const answerBytes = 21;
const plateauFlag = 1;
/** Few answers come with advice, so only those carry it: one byte for the code, two for its figure. */
const adviceBytes = 3;
const noFigure = 0xffff;

/** @param receivedAt Unix milliseconds; the record leads with its second, by which old ids are forgotten */
export function encodeFirstAnswer(answer: ToldFigures, fingerprint: Buffer, receivedAt: number): Buffer {
  const { advice } = answer;
  const record = Buffer.allocUnsafe(answerBytes + (advice === null ? 0 : adviceBytes));
  const view = viewOf(record);
  view.setUint32(0, Math.floor(receivedAt / 1000), true);
  record.set(fingerprint, 4);
  view.setUint16(10, Math.round(answer.masteryBefore * 1e4), true);
  view.setUint16(12, Math.round(answer.masteryAfter * 1e4), true);
  writeCount(view, answer.attempts, 14);
  writeCount(view, answer.correct, 17);
  view.setUint8(20, answer.plateauDetected ? plateauFlag : 0);
  if (advice !== null) writeAdvice(record, advice);
  return record;
}

function writeAdvice(record: Buffer, { code, figures }: Advice): void {
  record.writeUInt8(adviceCodes.indexOf(code), answerBytes);
  record.writeUInt16LE(figures[0] ?? noFigure, answerBytes + 1);
}

function readAdvice(record: Buffer): Advice | null {
  if (record.length === answerBytes) return null;
  const code = adviceCodes[record.readUInt8(answerBytes)];
  if (code === undefined) return null;
  const figure = record.readUInt16LE(answerBytes + 1);
  return { code, figures: figure === noFigure ? [] : [figure] };
}

/** @throws Error for what this version of the service cannot read */
export function decodeFirstAnswer(record: Buffer): FirstAnswer {
  if (record.length !== answerBytes && record.length !== answerBytes + adviceBytes)
    throw new Error(`an event id's record of ${record.length} bytes is not known`);
  const view = viewOf(record);
  return {
    fingerprint: record.subarray(4, 4 + fingerprintBytes),
    masteryBefore: view.getUint16(10, true) / 1e4,
    masteryAfter: view.getUint16(12, true) / 1e4,
    attempts: readCount(view, 14),
    correct: readCount(view, 17),
    plateauDetected: (view.getUint8(20) & plateauFlag) !== 0,
    advice: readAdvice(record),
  };
}
