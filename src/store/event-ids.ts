/**
 * What is remembered of an answer that came with an event_id: enough to give the first answer again, and to tell
 * a repeated event from a different one. With Redis's own cost an id takes at most 64 bytes.
 */
import { createHash } from 'node:crypto';
import type { TrackEvent } from '../contracts/tasks.js';
import { type Advice, adviceCodes } from '../domain/recommend.js';

/** Bytes of an id's hash: 80 bits keep the chance of a false hit below 1e-10 a day at 20 million ids. */
export const idBytes = 10;

/** Hash under which an event id of one learner is remembered. Ids hold no NUL, so the parts cannot be confused. */
export function hashEventId(tenant: string, userId: string, eventId: string): Buffer {
  return digest(`${tenant}\0${userId}\0${eventId}`, idBytes);
}

const fingerprintBytes = 6;

/** The first bytes of SHA-256. */
const digest = (text: string, bytes: number): Buffer =>
  createHash('sha256').update(text).digest().subarray(0, bytes);

/** Hash of everything that makes two events with one id the same event, as it was sent. */
export function fingerprintOf(event: TrackEvent): Buffer {
  const compared = [
    event.skillId,
    event.isCorrect,
    event.timeSpentSeconds,
    event.confidenceScore,
    event.questionDifficulty,
    event.itemId,
    event.occurredAtText,
  ];
  return digest(JSON.stringify(compared), fingerprintBytes);
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
/** Counts are told up to what three bytes hold: a record that cannot be written would end its learner for ever. */
const maxCount = 2 ** 24 - 1;
/** Few answers come with advice, so only those carry it: one byte for the code, two for its figure. */
const adviceBytes = 3;
const noFigure = 0xffff;

/** @param receivedAt Unix milliseconds; the record leads with its second, by which old ids are forgotten */
export function encodeFirstAnswer(answer: FirstAnswer, receivedAt: number): Buffer {
  const { advice } = answer;
  const record = Buffer.allocUnsafe(answerBytes + (advice === null ? 0 : adviceBytes));
  record.writeUInt32LE(Math.floor(receivedAt / 1000), 0);
  answer.fingerprint.copy(record, 4);
  record.writeUInt16LE(Math.round(answer.masteryBefore * 1e4), 10);
  record.writeUInt16LE(Math.round(answer.masteryAfter * 1e4), 12);
  record.writeUIntLE(Math.min(answer.attempts, maxCount), 14, 3);
  record.writeUIntLE(Math.min(answer.correct, maxCount), 17, 3);
  record.writeUInt8(answer.plateauDetected ? plateauFlag : 0, 20);
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

export function decodeFirstAnswer(record: Buffer): FirstAnswer {
  return {
    fingerprint: record.subarray(4, 4 + fingerprintBytes),
    masteryBefore: record.readUInt16LE(10) / 1e4,
    masteryAfter: record.readUInt16LE(12) / 1e4,
    attempts: record.readUIntLE(14, 3),
    correct: record.readUIntLE(17, 3),
    plateauDetected: (record.readUInt8(20) & plateauFlag) !== 0,
    advice: readAdvice(record),
  };
}
