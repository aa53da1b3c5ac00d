/**
 * A learner's event ids and first results, in hash buckets, oldest first (ADR 31). Another field, the ledger,
 * determines how long ids are retained.
 */
import type { TrackEvent } from '../../contracts/answers/track-task.js';
import { type Advice, adviceCodes } from '../../domain/advice/answer-advice.js';
import type { NonEmpty } from '../../domain/base/common.js';
import { combineIds } from '../../domain/tracing/course.js';
import { hashText, readCount, toDataView, writeCount } from '../redis/wire/binary.js';

/** False hits in a year: below 1e-6, with 20,000 ids per learner and a billion answers a day. */
export const idBytes = 8;

export const hashEventId = hashText;

/** Id of an entry that continues the one before it. */
const furtherMark = Buffer.alloc(idBytes, 0xff);

const fingerprintBytes = 6;

/** Covers every field that a repeated event must repeat. */
export function computeFingerprint(event: TrackEvent): Buffer {
  const { itemId, occurredAtText } = event;
  const answer = `${event.isCorrect} ${event.timeSpentSeconds} ${event.confidenceScore}`;
  const skills = combineIds(event.skillIds);
  const question = `${event.questionDifficulty} ${occurredAtText}\0${skills}\0${itemId ?? ''}`;
  return hashText(`${answer} ${question}`).subarray(0, fingerprintBytes);
}

export const fingerprintToNumber = (fingerprint: Buffer): number =>
  fingerprint.readUIntLE(0, fingerprintBytes);

export function fingerprintFromNumber(number: number): Buffer {
  const fingerprint = Buffer.allocUnsafe(fingerprintBytes);
  fingerprint.writeUIntLE(number, 0, fingerprintBytes);
  return fingerprint;
}

/** Masteries have 4 decimals. */
export interface SkillResult {
  readonly masteryBefore: number;
  readonly masteryAfter: number;
  readonly attempts: number;
  readonly correct: number;
  readonly plateauDetected: boolean;
}

export interface ResultFigures {
  readonly skillIds: NonEmpty<string>;
  /** In the order of `skillIds`. */
  readonly skills: NonEmpty<SkillResult>;
  readonly advice: Advice | null;
}

export const resultBytes = 24;
export const entryBytes = idBytes + resultBytes;
const noCode = 0xff;
const noFigure = 0xffff;
const adviceOffset = 21;
const skillOffset = 10;

/**
 * Bytes 0 to 3: second of arrival. Each further skill follows in an entry of its own.
 * @param receivedAt Unix milliseconds
 */
export function encodeFirstResult(answer: ResultFigures, fingerprint: Buffer, receivedAt: number): Buffer {
  const { advice, skillIds, skills } = answer;
  // Zeros fill the unused bytes of further entries.
  const record =
    skills.length === 1
      ? Buffer.allocUnsafe(resultBytes)
      : Buffer.alloc(resultBytes + (skills.length - 1) * entryBytes);
  const view = toDataView(record);
  const second = Math.floor(receivedAt / 1000);
  const sorted = skillIds.length === 1 ? skillIds : skillIds.toSorted();
  for (let i = 0, at = 0; i < skills.length; i++, at += entryBytes) {
    if (i > 0) record.set(furtherMark, at - idBytes);
    view.setUint32(at, second, true);
    writeSkill(view, at + skillOffset, skills[i] as SkillResult, sorted.indexOf(skillIds[i] as string));
  }
  record.set(fingerprint, 4);
  // Four bits each: ten skills, and at most 15 codes.
  view.setUint8(
    adviceOffset,
    advice === null ? noCode : (advice.skill << 4) | adviceCodes.indexOf(advice.code),
  );
  view.setUint16(22, advice?.figures[0] ?? noFigure, true);
  return record;
}

/** @param rank of the id among the sorted ids: a repeated event may have another order */
function writeSkill(view: DataView, at: number, skill: SkillResult, rank: number): void {
  view.setUint16(at, Math.round(skill.masteryBefore * 1e4), true);
  view.setUint16(at + 2, Math.round(skill.masteryAfter * 1e4), true);
  writeCount(view, skill.attempts, at + 4);
  writeCount(view, skill.correct, at + 7);
  view.setUint8(at + 10, (rank << 1) | (skill.plateauDetected ? 1 : 0));
}

const readSkill = (view: DataView, at: number) => ({
  masteryBefore: view.getUint16(at, true) / 1e4,
  masteryAfter: view.getUint16(at + 2, true) / 1e4,
  attempts: readCount(view, at + 4),
  correct: readCount(view, at + 7),
  plateauDetected: (view.getUint8(at + 10) & 1) !== 0,
});

type FirstResult = ResultFigures & { readonly fingerprint: Buffer };

/** @param skillIds of the repeated event, in any order @throws Error for another version */
export function decodeFirstResult(record: Buffer, skillIds: NonEmpty<string>): FirstResult {
  if (record.length % entryBytes !== resultBytes)
    throw new Error(`unsupported record of an event id with ${record.length} bytes`);
  const view = toDataView(record);
  const sorted = skillIds.toSorted();
  const count = 1 + (record.length - resultBytes) / entryBytes;
  const offsets = Array.from({ length: count }, (_, i) => skillOffset + i * entryBytes);
  const coded = view.getUint8(adviceOffset);
  const code = adviceCodes[coded & 15];
  const figure = view.getUint16(22, true);
  return {
    fingerprint: record.subarray(4, 4 + fingerprintBytes),
    skillIds: offsets.map((at) => sorted[view.getUint8(at + 10) >> 1] ?? '') as [string, ...string[]],
    skills: offsets.map((at) => readSkill(view, at)) as [SkillResult, ...SkillResult[]],
    advice:
      code === undefined ? null : { code, skill: coded >> 4, figures: figure === noFigure ? [] : [figure] },
  };
}

export const idWindowSeconds = 86_400;
/** The newest ids, which are retained for the whole window. */
const minRetainedIds = 1000;
/** Every id is retained for at least this long. */
export const minIdWindowSeconds = 600;
/** Maximum ids within the minimum window. */
export const maxWindowIds = 20_000;
const idsPerMark = 250;
const maxMarks = minRetainedIds / idsPerMark + 1;

export type IdLedger = ReturnType<typeof openLedger>;

/** Times are Unix seconds. */
export function openLedger(stored: Buffer | null) {
  let count = stored === null ? 0 : stored.readUInt32LE(0);
  const marks: number[] = [];
  for (let at = 4; stored !== null && at < stored.length; at += 4) marks.push(stored.readUInt32LE(at));

  const countAtMark = (index: number): number =>
    count - (count % idsPerMark) - idsPerMark * (marks.length - 1 - index);

  function addMark(second: number): void {
    marks.push(second);
    // The first mark stays outside the minimum window: ids are counted from there.
    const windowStart = second - minIdWindowSeconds;
    while (marks.length > maxMarks && (marks[1] as number) <= windowStart) marks.shift();
  }

  return {
    /** @returns the id's second, which never decreases */
    add: (second: number): number => {
      const at = Math.max(second, marks.at(-1) ?? 0);
      count += 1;
      if (count % idsPerMark === 0) addMark(at);
      return at;
    },
    isRetained: (addedAt: number, second: number): boolean =>
      addedAt > second - minIdWindowSeconds ||
      (addedAt > second - idWindowSeconds && addedAt >= (marks.at(-maxMarks) ?? 0)),
    isFull: (second: number): boolean => {
      if (count < maxWindowIds) return false;
      const lastBefore = marks.findLastIndex((mark) => mark <= second - minIdWindowSeconds);
      return count - (lastBefore < 0 ? countAtMark(0) - idsPerMark : countAtMark(lastBefore)) >= maxWindowIds;
    },
    encode: (): Buffer => {
      const bytes = Buffer.allocUnsafe(4 + 4 * marks.length);
      bytes.writeUInt32LE(count, 0);
      for (const [i, mark] of marks.entries()) bytes.writeUInt32LE(mark, 4 + 4 * i);
      return bytes;
    },
  };
}

const buckets = 64;

export const ledgerField = 'n';
const bucketField = (id: Buffer): string => `${(id[0] as number) % buckets}`;

/** The ledger's field comes first. */
export const listIdFields = (ids: readonly Buffer[]): readonly string[] =>
  ids.length === 0 ? [] : [ledgerField, ...new Set(ids.map(bucketField))];

export type StoredIds = ReturnType<typeof toStoredIds>;

export function toStoredIds(fields: readonly string[], values: readonly (Buffer | null)[]) {
  const buckets = new Map<string, Buffer>();
  for (let i = 1; i < fields.length; i++) {
    const value = values[i];
    if (value) buckets.set(fields[i] as string, value);
  }
  return { ledger: values[0] ?? null, buckets };
}

/** Also finds expired ids. */
export const hasAnyId = ({ buckets }: StoredIds, ids: readonly Buffer[]): boolean =>
  ids.some((id) => findEntry(buckets.get(bucketField(id)) ?? emptyBucket, id) >= 0);

export type IdFields = readonly (readonly [field: string, value: Buffer])[];

const emptyBucket = Buffer.alloc(0);

export const emptyIds = toStoredIds([], []);

export type LearnerIds = ReturnType<typeof openIds>;

export function openIds(stored: StoredIds) {
  const ledger = openLedger(stored.ledger);
  const changed = new Map<string, Buffer>();
  const findBucket = (field: string): Buffer =>
    changed.get(field) ?? stored.buckets.get(field) ?? emptyBucket;
  const isExpired = (bucket: Buffer, at: number, second: number): boolean =>
    !ledger.isRetained(bucket.readUInt32LE(at + idBytes), second);

  return {
    /** Null if not retained. */
    find: (id: Buffer, second: number): Buffer | null => {
      const bucket = findBucket(bucketField(id));
      const at = findEntry(bucket, id);
      if (at < 0 || isExpired(bucket, at, second)) return null;
      return bucket.subarray(at + idBytes, findEntryEnd(bucket, at));
    },
    isFull: ledger.isFull,
    add: (id: Buffer, answer: Buffer, second: number): void => {
      const field = bucketField(id);
      const at = ledger.add(second);
      const before = findBucket(field);
      let expiredBytes = 0;
      while (expiredBytes < before.length && isExpired(before, expiredBytes, at)) expiredBytes += entryBytes;
      const bucket = Buffer.concat([before.subarray(expiredBytes), id, answer]);
      for (let end = before.length - expiredBytes; end < bucket.length; end += entryBytes)
        bucket.writeUInt32LE(at, end + idBytes);
      changed.set(field, bucket);
    },
    changes: (): IdFields => (changed.size === 0 ? [] : [[ledgerField, ledger.encode()], ...changed]),
  };
}

/** -1 if missing. Earlier entries of the id may be expired. */
function findEntry(bucket: Buffer, id: Buffer): number {
  const [low, high] = [id.readInt32LE(0), id.readInt32LE(4)];
  for (let at = bucket.length - entryBytes; at >= 0; at -= entryBytes) {
    if (bucket.readInt32LE(at) === low && bucket.readInt32LE(at + 4) === high) return at;
  }
  return -1;
}

function findEntryEnd(bucket: Buffer, at: number): number {
  let end = at + entryBytes;
  while (bucket.subarray(end, end + idBytes).equals(furtherMark)) end += entryBytes;
  return end;
}
