import type { SkillState } from '../../domain/tracing/learner-states.js';
import { readCount, toDataView, writeCount, writeUint24 } from '../redis/wire/binary.js';
import { allocateRecord, openRecord, readDay, recordFormat, writeDay } from './record-bytes.js';

/** At most 124: Redis stores the record in a block of 128 bytes. */
const skillBytes = 123;

export function encodeSkill(skill: SkillState): Buffer {
  const { plateau, pace, rapid, calibration, trace } = skill;
  const stored = allocateRecord(skillBytes);
  const record = toDataView(stored);
  record.setUint8(0, recordFormat);
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
  writeUint24(record, rapid.recent, 81);
  record.setUint8(84, rapid.recentTimed);
  writeCount(record, calibration.answers, 85);
  record.setInt32(88, calibration.biasTenths, true);
  record.setUint32(92, calibration.squaredHundredths, true);
  record.setFloat64(96, trace.residual, true);
  record.setUint32(104, trace.lastAnswerNumber, true);
  record.setUint32(108, trace.lastRightNumber, true);
  record.setUint32(112, trace.lastRightAt, true);
  record.setUint8(116, skill.reached ? 1 : 0);
  record.setInt8(117, trace.streak);
  record.setFloat32(118, pace.accuracy, true);
  record.setUint8(122, skill.ready ? 1 : 0);
  return stored;
}

/** Properties in the order of `newSkill`. */
export function decodeSkill(stored: Buffer): SkillState {
  const record = openRecord(stored, skillBytes);
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
      lastAnswerNumber: record.getUint32(104, true),
      lastRightNumber: record.getUint32(108, true),
      lastRightAt: record.getUint32(112, true),
      streak: record.getInt8(117),
    },
    reached: record.getUint8(116) === 1,
    ready: record.getUint8(122) === 1,
  };
}
