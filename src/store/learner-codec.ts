/**
 * Binary records of a learner's states, little-endian, mastery and abilities in full double precision.
 *
 * Fields are only ever appended: a record that is shorter than today's was written by an earlier version, and the
 * fields that it lacks have the value they start with. That is how the states grow without a migration. A format
 * byte of another value is refused, for guessing would change a learner's mastery in silence.
 */
import type { Ability } from '../domain/ability.js';
import type { LearnerState, SkillState } from '../domain/types.js';

const format = 1;
const learnerBytes = 64;
const skillBytes = 32;
/** Day field of a skill without a right answer. */
const noDay = 0xffff;

export function encodeLearner(learner: LearnerState): Buffer {
  const record = Buffer.alloc(learnerBytes);
  record.writeUInt8(format, 0);
  record.writeUInt32LE(learner.version, 4);
  record.writeUInt32LE(learner.attempts, 8);
  record.writeUInt16LE(learner.baselineTotal ?? 0, 12);
  writeAbility(record, 16, learner.math);
  writeAbility(record, 40, learner.rw);
  return record;
}

export function decodeLearner(record: Buffer): LearnerState {
  checkFormat(record);
  return {
    version: record.readUInt32LE(4),
    attempts: record.readUInt32LE(8),
    baselineTotal: record.readUInt16LE(12) || null,
    math: readAbility(record, 16),
    rw: readAbility(record, 40),
  };
}

export function encodeSkill(skill: SkillState): Buffer {
  const record = Buffer.alloc(skillBytes);
  record.writeUInt8(format, 0);
  record.writeUInt16LE(skill.correctDays, 2);
  record.writeUInt32LE(skill.attempts, 4);
  record.writeUInt32LE(skill.correct, 8);
  record.writeUInt16LE(skill.lastCorrectDay < 0 ? noDay : skill.lastCorrectDay, 12);
  record.writeDoubleLE(skill.mastery, 16);
  record.writeDoubleLE(skill.lastAttemptAt, 24);
  return record;
}

export function decodeSkill(record: Buffer): SkillState {
  checkFormat(record);
  const lastCorrectDay = record.readUInt16LE(12);
  return {
    correctDays: record.readUInt16LE(2),
    attempts: record.readUInt32LE(4),
    correct: record.readUInt32LE(8),
    lastCorrectDay: lastCorrectDay === noDay ? -1 : lastCorrectDay,
    mastery: record.readDoubleLE(16),
    lastAttemptAt: record.readDoubleLE(24),
  };
}

function checkFormat(record: Buffer): void {
  if (record[0] !== format) throw new Error(`record format ${record[0]} is not known to this version`);
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
