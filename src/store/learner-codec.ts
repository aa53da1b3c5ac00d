/**
 * Binary records of a learner's states, little-endian, mastery and abilities in full double precision.
 *
 * Fields are only ever appended: a record that is shorter than today's was written by an earlier version, and the
 * fields that it lacks have the value they start with. That is how the states grow without a migration. A format
 * byte of another value is refused, for guessing would change a learner's mastery in silence.
 */
import type { Ability } from '../domain/ability.js';
import type { Activity } from '../domain/activity.js';
import type { CalibrationState } from '../domain/calibration.js';
import type { PaceState } from '../domain/efficiency.js';
import { newLearner, newSkill } from '../domain/mastery.js';
import type { MomentumState } from '../domain/momentum.js';
import { activityModel, defaultParameters } from '../domain/params.js';
import type { PlateauState } from '../domain/plateau.js';
import type { ItemTrace, LearnerTrace, SkillTrace } from '../domain/prediction/traces.js';
import type { RapidState } from '../domain/rapid.js';
import { type LearnerState, type SkillState, sections } from '../domain/types.js';

const format = 1;
const learnerBytes = 198;
/** At most 124, so that Redis keeps it in one block of 128 bytes. */
const skillBytes = 116;
const itemBytes = 11;
/** Day field where there is none, for instance of a skill without a right answer. */
const noDay = 0xffff;
const maxCount = 2 ** 24 - 1;
/** Counts of the last days, in halves, behind the day that they end with. */
const activityAt = 124;
const activityCounts = sections.length * activityModel.days;

export function encodeLearner(learner: LearnerState): Buffer {
  const record = Buffer.alloc(learnerBytes);
  record.writeUInt8(format, 0);
  record.writeUInt32LE(learner.version, 4);
  record.writeUInt32LE(learner.attempts, 8);
  record.writeUInt16LE(learner.baselineTotal ?? 0, 12);
  writeAbility(record, 16, learner.math);
  writeAbility(record, 40, learner.rw);
  writeLearnerTrace(record, learner.trace);
  record.writeUInt32LE(learner.items.generation, 116);
  record.writeUInt16LE(learner.items.size, 120);
  writeActivity(record, learner.activity);
  writeMomentum(record, learner.momentum);
  return record;
}

export function decodeLearner(stored: Buffer): LearnerState {
  const record = grown(stored, startOfLearner, firstBytes.learner);
  return {
    version: record.readUInt32LE(4),
    attempts: record.readUInt32LE(8),
    baselineTotal: record.readUInt16LE(12) || null,
    math: readAbility(record, 16),
    rw: readAbility(record, 40),
    trace: readLearnerTrace(record),
    items: { generation: record.readUInt32LE(116), size: record.readUInt16LE(120) },
    activity: readActivity(record),
    momentum: readMomentum(record),
  };
}

export function encodeSkill(skill: SkillState): Buffer {
  const record = Buffer.alloc(skillBytes);
  record.writeUInt8(format, 0);
  record.writeUInt16LE(skill.correctDays, 2);
  record.writeUInt32LE(skill.attempts, 4);
  record.writeUInt32LE(skill.correct, 8);
  writeDay(record, skill.lastCorrectDay, 12);
  record.writeDoubleLE(skill.mastery, 16);
  record.writeDoubleLE(skill.lastAttemptAt, 24);
  writePlateau(record, skill.plateau);
  writePace(record, skill.pace);
  writeRapid(record, skill.rapid);
  writeCalibration(record, skill.calibration);
  writeSkillTrace(record, skill.trace);
  return record;
}

export function decodeSkill(stored: Buffer): SkillState {
  const record = grown(stored, startOfSkill, firstBytes.skill);
  return {
    correctDays: record.readUInt16LE(2),
    attempts: record.readUInt32LE(4),
    correct: record.readUInt32LE(8),
    lastCorrectDay: readDay(record, 12),
    mastery: record.readDoubleLE(16),
    lastAttemptAt: record.readDoubleLE(24),
    plateau: readPlateau(record),
    pace: readPace(record),
    rapid: readRapid(record),
    calibration: readCalibration(record),
    trace: readSkillTrace(record),
  };
}

/** Records of the start values, whose ends complete the records that an earlier version wrote. */
const startOfLearner = encodeLearner(newLearner);
const startOfSkill = encodeSkill(newSkill(defaultParameters));

/** Bytes of the first version's records: a shorter one is damaged. */
const firstBytes = { learner: 64, skill: 32 } as const;

function grown(stored: Buffer, start: Buffer, leastBytes: number): Buffer {
  if (stored[0] !== format) throw new Error(`record format ${stored[0]} is not known to this version`);
  if (stored.length < leastBytes) throw new Error(`a record of ${stored.length} bytes is cut off`);
  return stored.length >= start.length ? stored : Buffer.concat([stored, start.subarray(stored.length)]);
}

/** Three bytes. A count stops at what they hold: a record that cannot be written would end its learner for ever. */
function writeCount(record: Buffer, count: number, at: number): void {
  record.writeUIntLE(Math.min(count, maxCount), at, 3);
}

function writeAbility(record: Buffer, at: number, { theta, variance, answers }: Ability): void {
  record.writeDoubleLE(theta, at);
  record.writeDoubleLE(variance, at + 8);
  record.writeDoubleLE(answers, at + 16);
}

const readAbility = (record: Buffer, at: number): Ability => ({
  theta: record.readDoubleLE(at),
  variance: record.readDoubleLE(at + 8),
  answers: record.readDoubleLE(at + 16),
});

function writePlateau(record: Buffer, { attempts, sum, timeSum, squareSum, run }: PlateauState): void {
  record.writeUInt8(run, 1);
  record.writeUInt16LE(attempts, 14);
  record.writeDoubleLE(sum, 32);
  record.writeDoubleLE(timeSum, 40);
  record.writeDoubleLE(squareSum, 48);
}

const readPlateau = (record: Buffer): PlateauState => ({
  attempts: record.readUInt16LE(14),
  sum: record.readDoubleLE(32),
  timeSum: record.readDoubleLE(40),
  squareSum: record.readDoubleLE(48),
  run: record.readUInt8(1),
});

function writePace(record: Buffer, { timed, timedCorrect, seconds, efficiency }: PaceState): void {
  record.writeDoubleLE(seconds, 56);
  record.writeDoubleLE(efficiency, 64);
  writeCount(record, timed, 72);
  writeCount(record, timedCorrect, 75);
}

const readPace = (record: Buffer): PaceState => ({
  timed: record.readUIntLE(72, 3),
  timedCorrect: record.readUIntLE(75, 3),
  seconds: record.readDoubleLE(56),
  efficiency: record.readDoubleLE(64),
});

function writeRapid(record: Buffer, { answers, recent, recentTimed }: RapidState): void {
  writeCount(record, answers, 78);
  record.writeUIntLE(recent, 81, 3);
  record.writeUInt8(recentTimed, 84);
}

const readRapid = (record: Buffer): RapidState => ({
  answers: record.readUIntLE(78, 3),
  recent: record.readUIntLE(81, 3),
  recentTimed: record.readUInt8(84),
});

function writeCalibration(record: Buffer, state: CalibrationState): void {
  writeCount(record, state.answers, 85);
  record.writeInt32LE(state.biasTenths, 88);
  record.writeUInt32LE(state.squaredHundredths, 92);
}

const readCalibration = (record: Buffer): CalibrationState => ({
  answers: record.readUIntLE(85, 3),
  biasTenths: record.readInt32LE(88),
  squaredHundredths: record.readUInt32LE(92),
});

function writeSkillTrace(record: Buffer, trace: SkillTrace): void {
  record.writeDoubleLE(trace.residual, 96);
  record.writeUInt32LE(trace.lastPlace, 104);
  record.writeUInt32LE(trace.lastRightPlace, 108);
  record.writeUInt32LE(trace.lastRightAt, 112);
}

const readSkillTrace = (record: Buffer): SkillTrace => ({
  residual: record.readDoubleLE(96),
  lastPlace: record.readUInt32LE(104),
  lastRightPlace: record.readUInt32LE(108),
  lastRightAt: record.readUInt32LE(112),
});

function writeLearnerTrace(record: Buffer, trace: LearnerTrace): void {
  record.writeDoubleLE(trace.ability, 64);
  record.writeDoubleLE(trace.variance, 72);
  record.writeDoubleLE(trace.recent, 80);
  record.writeDoubleLE(trace.slow, 88);
  record.writeUInt32LE(trace.right, 96);
  record.writeUInt32LE(trace.wrong, 100);
  record.writeUInt32LE(trace.wrongRun, 104);
  record.writeDoubleLE(trace.lastRightAt, 108);
}

const readLearnerTrace = (record: Buffer): LearnerTrace => ({
  ability: record.readDoubleLE(64),
  variance: record.readDoubleLE(72),
  recent: record.readDoubleLE(80),
  slow: record.readDoubleLE(88),
  right: record.readUInt32LE(96),
  wrong: record.readUInt32LE(100),
  wrongRun: record.readUInt32LE(104),
  lastRightAt: record.readDoubleLE(108),
});

function writeActivity(record: Buffer, { day, halves }: Activity): void {
  writeDay(record, day, 122);
  for (let i = 0; i < activityCounts; i++) record.writeUInt16LE(halves[i] as number, activityAt + 2 * i);
}

function readActivity(record: Buffer): Activity {
  const halves = new Uint16Array(activityCounts);
  for (let i = 0; i < activityCounts; i++) halves[i] = record.readUInt16LE(activityAt + 2 * i);
  return { day: readDay(record, 122), halves };
}

function writeMomentum(record: Buffer, { day, short, long }: MomentumState): void {
  writeDay(record, day, 180);
  record.writeDoubleLE(short, 182);
  record.writeDoubleLE(long, 190);
}

const readMomentum = (record: Buffer): MomentumState => ({
  day: readDay(record, 180),
  short: record.readDoubleLE(182),
  long: record.readDoubleLE(190),
});

/** UTC days since 1970; -1: none. */
function writeDay(record: Buffer, day: number, at: number): void {
  record.writeUInt16LE(day < 0 ? noDay : day, at);
}

function readDay(record: Buffer, at: number): number {
  const day = record.readUInt16LE(at);
  return day === noDay ? -1 : day;
}

export function encodeItem(item: ItemTrace): Buffer {
  const record = Buffer.allocUnsafe(itemBytes);
  record.writeUInt8(item.right, 0);
  record.writeUInt8(item.wrong, 1);
  record.writeUInt8(item.wrongRun, 2);
  record.writeUInt32LE(item.elsewhere, 3);
  record.writeUInt32LE(item.at, 7);
  return record;
}

export const decodeItem = (record: Buffer): ItemTrace => ({
  right: record.readUInt8(0),
  wrong: record.readUInt8(1),
  wrongRun: record.readUInt8(2),
  elsewhere: record.readUInt32LE(3),
  at: record.readUInt32LE(7),
});
