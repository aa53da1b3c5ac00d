/**
 * Binary records of a learner's states, little-endian. A record with another format byte or length is rejected: a guess would
 * silently change a learner's mastery.
 */
import { sections } from '../../domain/base/common.js';
import { activityModel, courseModel } from '../../domain/base/params.js';
import type { ReplayedStates } from '../../domain/history/replay.js';
import type { Course } from '../../domain/tracing/course.js';
import type { LearnerState, SkillState } from '../../domain/tracing/states.js';
import type { ItemTrace } from '../../domain/tracing/traces.js';
import { hashItem } from '../models/item-store.js';
import { readCount, viewOf, write3Bytes, writeCount } from '../redis/binary.js';

const format = 1;
const learnerBytes = 310;
const courseAt = 198;
const courseEnd = courseAt + 8 * courseModel.skills;
const trendAt = courseEnd + 40;
/** At most 124: Redis stores it in a block of 128 bytes. */
const skillBytes = 123;
const itemBytes = 11;
/** The last four answers are stored above the 28 bits of `elsewhere`. */
const lastWrongUnit = 2 ** 28;
const noDay = 0xffff;
/** Half answers per section and day, newest day first, after the number of the last day. */
const activityAt = 124;
const activityCounts = sections.length * activityModel.days;

const emptyRecord = (bytes: number): Buffer => Buffer.allocUnsafe(bytes).fill(0);

/** Field by field: a table of fields takes four times as long. */
export function encodeLearner(learner: LearnerState): Buffer {
  const { abilities, activity, momentum, trace, trend, items } = learner;
  const stored = emptyRecord(learnerBytes);
  const record = viewOf(stored);
  record.setUint8(0, format);
  record.setUint16(2, learner.abilityVersion, true);
  record.setUint32(4, learner.version, true);
  record.setUint32(8, learner.attempts, true);
  record.setUint16(12, learner.baselineTotal ?? 0, true);
  record.setFloat64(16, abilities.math, true);
  record.setFloat64(24, abilities.mathVariance, true);
  record.setFloat64(32, abilities.covariance, true);
  record.setFloat64(40, abilities.rw, true);
  record.setFloat64(48, abilities.rwVariance, true);
  // 56 to 63 are unused.
  record.setFloat64(64, trace.ability, true);
  record.setFloat64(72, trace.variance, true);
  record.setFloat64(80, trace.recent, true);
  record.setFloat64(88, trace.slow, true);
  record.setUint32(96, trace.right, true);
  record.setUint32(100, trace.wrong, true);
  record.setUint32(104, trace.wrongRun, true);
  record.setFloat64(108, trace.lastRightAt, true);
  record.setUint32(116, items.generation, true);
  record.setUint16(120, items.size, true);
  writeDay(record, activity.day, 122);
  for (let i = 0; i < activityCounts; i++)
    record.setUint16(activityAt + 2 * i, activity.halves[i] as number, true);
  writeDay(record, momentum.day, 180);
  record.setFloat64(182, momentum.short, true);
  record.setFloat64(190, momentum.long, true);
  writeCourse(record, trace.course);
  record.setUint32(trendAt, trend.answers, true);
  record.setFloat32(trendAt + 4, trend.share, true);
  record.setFloat32(trendAt + 8, trend.change, true);
  record.setFloat32(trendAt + 12, trend.bias, true);
  return stored;
}

function writeCourse(record: DataView, course: Course): void {
  const { skills, forms } = course;
  for (let i = 0; i < skills.length; i++) {
    record.setUint32(courseAt + 8 * i, skills[i] as number, true);
    record.setFloat32(courseAt + 8 * i + 4, forms[i] as number, true);
  }
  record.setUint32(courseEnd, course.firstSkill, true);
  record.setUint32(courseEnd + 4, course.secondSkill, true);
  record.setUint32(courseEnd + 8, course.lastItem, true);
  record.setUint32(courseEnd + 12, course.itemBefore, true);
  record.setFloat32(courseEnd + 16, course.firstAbility, true);
  record.setFloat32(courseEnd + 20, course.firstForm, true);
  record.setUint32(courseEnd + 24, course.firstTries, true);
  record.setFloat32(courseEnd + 28, course.retryAbility, true);
  record.setFloat32(courseEnd + 32, course.retryForm, true);
  record.setUint32(courseEnd + 36, course.retries, true);
}

function readCourse(record: DataView): Course {
  const skills: number[] = [];
  const forms: number[] = [];
  for (let at = courseAt; at < courseEnd; at += 8) {
    const skill = record.getUint32(at, true);
    if (skill === 0) break;
    skills.push(skill);
    forms.push(record.getFloat32(at + 4, true));
  }
  return {
    skills,
    forms,
    firstSkill: record.getUint32(courseEnd, true),
    secondSkill: record.getUint32(courseEnd + 4, true),
    lastItem: record.getUint32(courseEnd + 8, true),
    itemBefore: record.getUint32(courseEnd + 12, true),
    firstAbility: record.getFloat32(courseEnd + 16, true),
    firstForm: record.getFloat32(courseEnd + 20, true),
    firstTries: record.getUint32(courseEnd + 24, true),
    retryAbility: record.getFloat32(courseEnd + 28, true),
    retryForm: record.getFloat32(courseEnd + 32, true),
    retries: record.getUint32(courseEnd + 36, true),
  };
}

/** Properties in the order of `newLearner`: objects with one order share a shape, which keeps code on them fast. */
export function decodeLearner(stored: Buffer): LearnerState {
  const record = checkedView(stored, learnerBytes);
  return {
    version: record.getUint32(4, true),
    attempts: record.getUint32(8, true),
    abilityVersion: record.getUint16(2, true),
    abilities: {
      math: record.getFloat64(16, true),
      rw: record.getFloat64(40, true),
      mathVariance: record.getFloat64(24, true),
      rwVariance: record.getFloat64(48, true),
      covariance: record.getFloat64(32, true),
    },
    baselineTotal: record.getUint16(12, true) || null,
    activity: { day: readDay(record, 122), halves: readHalves(record) },
    momentum: {
      day: readDay(record, 180),
      short: record.getFloat64(182, true),
      long: record.getFloat64(190, true),
    },
    trace: {
      ability: record.getFloat64(64, true),
      variance: record.getFloat64(72, true),
      recent: record.getFloat64(80, true),
      slow: record.getFloat64(88, true),
      right: record.getUint32(96, true),
      wrong: record.getUint32(100, true),
      wrongRun: record.getUint32(104, true),
      lastRightAt: record.getFloat64(108, true),
      course: readCourse(record),
    },
    trend: {
      answers: record.getUint32(trendAt, true),
      share: record.getFloat32(trendAt + 4, true),
      change: record.getFloat32(trendAt + 8, true),
      bias: record.getFloat32(trendAt + 12, true),
    },
    items: { generation: record.getUint32(116, true), size: record.getUint16(120, true) },
  };
}

export function encodeSkill(skill: SkillState): Buffer {
  const { plateau, pace, rapid, calibration, trace } = skill;
  const stored = emptyRecord(skillBytes);
  const record = viewOf(stored);
  record.setUint8(0, format);
  record.setUint8(1, plateau.run);
  record.setUint16(2, skill.correctDays, true);
  record.setUint32(4, skill.attempts, true);
  record.setUint32(8, skill.correct, true);
  writeDay(record, skill.lastCorrectDay, 12);
  record.setUint16(14, plateau.attempts, true);
  record.setFloat64(16, skill.mastery, true);
  record.setFloat64(24, skill.lastAttemptAt, true);
  record.setFloat64(32, plateau.sum, true);
  record.setFloat64(40, plateau.timeSum, true);
  record.setFloat64(48, plateau.squareSum, true);
  record.setFloat64(56, pace.seconds, true);
  record.setFloat64(64, pace.slowness, true);
  writeCount(record, pace.timed, 72);
  writeCount(record, pace.timedCorrect, 75);
  writeCount(record, rapid.answers, 78);
  write3Bytes(record, rapid.recent, 81);
  record.setUint8(84, rapid.recentTimed);
  writeCount(record, calibration.answers, 85);
  record.setInt32(88, calibration.biasTenths, true);
  record.setUint32(92, calibration.squaredHundredths, true);
  record.setFloat64(96, trace.residual, true);
  record.setUint32(104, trace.lastPlace, true);
  record.setUint32(108, trace.lastRightPlace, true);
  record.setUint32(112, trace.lastRightAt, true);
  record.setUint8(116, skill.reached ? 1 : 0);
  record.setInt8(117, trace.streak);
  record.setFloat32(118, pace.accuracy, true);
  record.setUint8(122, skill.ready ? 1 : 0);
  return stored;
}

/** Properties in the order of `newSkill`. */
export function decodeSkill(stored: Buffer): SkillState {
  const record = checkedView(stored, skillBytes);
  return {
    mastery: record.getFloat64(16, true),
    attempts: record.getUint32(4, true),
    correct: record.getUint32(8, true),
    lastAttemptAt: record.getFloat64(24, true),
    correctDays: record.getUint16(2, true),
    lastCorrectDay: readDay(record, 12),
    plateau: {
      attempts: record.getUint16(14, true),
      sum: record.getFloat64(32, true),
      timeSum: record.getFloat64(40, true),
      squareSum: record.getFloat64(48, true),
      run: record.getUint8(1),
    },
    pace: {
      timed: readCount(record, 72),
      timedCorrect: readCount(record, 75),
      seconds: record.getFloat64(56, true),
      slowness: record.getFloat64(64, true),
      accuracy: record.getFloat32(118, true),
    },
    rapid: {
      answers: readCount(record, 78),
      recent: readCount(record, 81),
      recentTimed: record.getUint8(84),
    },
    calibration: {
      answers: readCount(record, 85),
      biasTenths: record.getInt32(88, true),
      squaredHundredths: record.getUint32(92, true),
    },
    trace: {
      residual: record.getFloat64(96, true),
      lastPlace: record.getUint32(104, true),
      lastRightPlace: record.getUint32(108, true),
      lastRightAt: record.getUint32(112, true),
      streak: record.getInt8(117),
    },
    reached: record.getUint8(116) === 1,
    ready: record.getUint8(122) === 1,
  };
}

function checkedView(stored: Buffer, bytes: number): DataView {
  if (stored[0] !== format) throw new Error(`record format ${stored[0]} is not known to this version`);
  if (stored.length !== bytes)
    throw new Error(`a record of ${stored.length} bytes is not known to this version`);
  return viewOf(stored);
}

function readHalves(record: DataView): Uint16Array {
  const halves = new Uint16Array(activityCounts);
  for (let i = 0; i < activityCounts; i++) halves[i] = record.getUint16(activityAt + 2 * i, true);
  return halves;
}

/** UTC days since 1970; -1: none. */
function writeDay(record: DataView, day: number, at: number): void {
  record.setUint16(at, day < 0 ? noDay : day, true);
}

function readDay(record: DataView, at: number): number {
  const day = record.getUint16(at, true);
  return day === noDay ? -1 : day;
}

export function encodeItem(item: ItemTrace): Buffer {
  const stored = emptyRecord(itemBytes);
  const record = viewOf(stored);
  record.setUint8(0, item.right);
  record.setUint8(1, item.wrong);
  record.setUint8(2, item.wrongRun);
  record.setUint32(3, item.lastWrong * lastWrongUnit + Math.min(item.elsewhere, lastWrongUnit - 1), true);
  record.setUint32(7, item.at, true);
  return stored;
}

export function decodeItem(stored: Buffer): ItemTrace {
  if (stored.length !== itemBytes) throw new Error(`an item's record of ${stored.length} bytes is not known`);
  const record = viewOf(stored);
  const packed = record.getUint32(3, true);
  return {
    right: record.getUint8(0),
    wrong: record.getUint8(1),
    wrongRun: record.getUint8(2),
    lastWrong: Math.floor(packed / lastWrongUnit),
    elsewhere: packed % lastWrongUnit,
    at: record.getUint32(7, true),
  };
}

/** Fields of the learner hash: own record, goal (goals.ts), each skill. */
export const learnerField = 'L';
export const goalField = 'G';
export const skillField = (skillId: string): string => `s${skillId}`;

export type Fields = readonly (readonly [field: Buffer, value: Buffer])[];

export type LearnerDump = ReturnType<typeof dumpOf>;

/** The learner hash without its goal, and both hashes of items, as a commit of the states leaves them. */
export const dumpOf = ({ learner, skills, items: [even, odd] }: ReplayedStates) => ({
  records: [
    [Buffer.from(learnerField), encodeLearner(learner)],
    ...[...skills].map(([skillId, skill]) => [Buffer.from(skillField(skillId)), encodeSkill(skill)] as const),
  ] as Fields,
  items: [itemFields(even), itemFields(odd)] as readonly [even: Fields, odd: Fields],
});

const itemFields = (items: ReadonlyMap<string, ItemTrace>): Fields =>
  [...items].map(([itemId, trace]) => [hashItem(itemId), encodeItem(trace)] as const);

const snapshotVersion = 1;

/** JSON with base64 records. ClickHouse keeps it when it drops the rows that led to the states. */
export const encodeSnapshot = ({ learner, skills, items: [even, odd] }: ReplayedStates): string =>
  JSON.stringify({
    v: snapshotVersion,
    learner: encodeLearner(learner).toString('base64'),
    skills: base64Of(skills, encodeSkill),
    items: [base64Of(even, encodeItem), base64Of(odd, encodeItem)],
  });

/** @throws Error for another version */
export function decodeSnapshot(text: string): ReplayedStates {
  const { v, learner, skills, items } = JSON.parse(text);
  if (v !== snapshotVersion)
    throw new Error(`a snapshot of version ${v} is not known to this version of the service`);
  return {
    learner: decodeLearner(Buffer.from(learner, 'base64')),
    skills: fromBase64(skills, decodeSkill),
    items: [fromBase64(items[0], decodeItem), fromBase64(items[1], decodeItem)],
  };
}

const base64Of = <State>(states: ReadonlyMap<string, State>, encode: (state: State) => Buffer) =>
  [...states].map(([id, state]) => [id, encode(state).toString('base64')] as const);

const fromBase64 = <State>(records: [id: string, record: string][], decode: (record: Buffer) => State) =>
  new Map(records.map(([id, record]) => [id, decode(Buffer.from(record, 'base64'))]));
