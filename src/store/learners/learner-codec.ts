import { utc } from '../../domain/base/calendar.js';
import { sections } from '../../domain/base/common.js';
import { courseConstants } from '../../domain/base/prediction-constants.js';
import type { Course } from '../../domain/tracing/course.js';
import type { LearnerState } from '../../domain/tracing/learner-states.js';
import { activityConstants } from '../../domain/tracing/tracing-constants.js';
import { toDataView } from '../redis/wire/binary.js';
import { allocateRecord, openRecord, readDay, recordFormat, writeDay } from './record-bytes.js';

const learnerBytes = 310;
const courseOffset = 198;
const courseEnd = courseOffset + 8 * courseConstants.skills;
const trendOffset = courseEnd + 40;
/** Half answers per section and day, newest day first. */
const activityOffset = 124;
const activityCounts = sections.length * activityConstants.days;

/** A table of fields takes four times as long. */
export function encodeLearner(learner: LearnerState): Buffer {
  const { abilities, activity, momentum, trace, trend, items, timeZone } = learner;
  const stored = allocateRecord(learnerBytes + (timeZone === utc ? 0 : timeZone.length));
  const record = toDataView(stored);
  record.setUint8(0, recordFormat);
  record.setUint16(2, learner.abilityVersion, true);
  record.setUint32(4, learner.version, true);
  record.setUint32(8, learner.attempts, true);
  record.setUint16(12, learner.baselineTotal ?? 0, true);
  record.setFloat64(16, abilities.math, true);
  record.setFloat64(24, abilities.mathVariance, true);
  record.setFloat64(32, abilities.covariance, true);
  record.setFloat64(40, abilities.rw, true);
  record.setFloat64(48, abilities.rwVariance, true);
  record.setFloat32(56, trend.achieved, true);
  record.setFloat32(60, trend.projected, true);
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
    record.setUint16(activityOffset + 2 * i, activity.halfAnswers[i] as number, true);
  writeDay(record, momentum.day, 180);
  record.setFloat64(182, momentum.short, true);
  record.setFloat64(190, momentum.long, true);
  writeCourse(record, trace.course);
  record.setUint32(trendOffset, trend.answers, true);
  record.setFloat32(trendOffset + 4, trend.share, true);
  record.setFloat32(trendOffset + 8, trend.change, true);
  record.setFloat32(trendOffset + 12, trend.bias, true);
  // After the fixed fields, and only if it is not UTC.
  if (timeZone !== utc) stored.write(timeZone, learnerBytes, 'latin1');
  return stored;
}

function writeCourse(record: DataView, course: Course): void {
  const { skills, forms } = course;
  for (let i = 0; i < skills.length; i++) {
    record.setUint32(courseOffset + 8 * i, skills[i] as number, true);
    record.setFloat32(courseOffset + 8 * i + 4, forms[i] as number, true);
  }
  record.setUint32(courseEnd, course.firstSkill, true);
  record.setUint32(courseEnd + 4, course.secondSkill, true);
  record.setUint32(courseEnd + 8, course.lastItem, true);
  record.setUint32(courseEnd + 12, course.itemBeforeRun, true);
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
  for (let at = courseOffset; at < courseEnd; at += 8) {
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
    itemBeforeRun: record.getUint32(courseEnd + 12, true),
    firstAbility: record.getFloat32(courseEnd + 16, true),
    firstForm: record.getFloat32(courseEnd + 20, true),
    firstTries: record.getUint32(courseEnd + 24, true),
    retryAbility: record.getFloat32(courseEnd + 28, true),
    retryForm: record.getFloat32(courseEnd + 32, true),
    retries: record.getUint32(courseEnd + 36, true),
  };
}

/** Property order of `newLearner`: one object shape is faster. */
export function decodeLearner(stored: Buffer): LearnerState {
  const record = openRecord(stored, learnerBytes, true);
  return {
    version: record.getUint32(4, true),
    attempts: record.getUint32(8, true),
    abilityVersion: record.getUint16(2, true),
    timeZone: stored.length === learnerBytes ? utc : stored.toString('latin1', learnerBytes),
    abilities: {
      math: record.getFloat64(16, true),
      rw: record.getFloat64(40, true),
      mathVariance: record.getFloat64(24, true),
      rwVariance: record.getFloat64(48, true),
      covariance: record.getFloat64(32, true),
    },
    baselineTotal: record.getUint16(12, true) || null,
    activity: { day: readDay(record, 122), halfAnswers: readHalves(record) },
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
      answers: record.getUint32(trendOffset, true),
      share: record.getFloat32(trendOffset + 4, true),
      change: record.getFloat32(trendOffset + 8, true),
      bias: record.getFloat32(trendOffset + 12, true),
      achieved: record.getFloat32(56, true),
      projected: record.getFloat32(60, true),
    },
    items: { generation: record.getUint32(116, true), size: record.getUint16(120, true) },
  };
}

function readHalves(record: DataView): Uint16Array {
  const halves = new Uint16Array(activityCounts);
  for (let i = 0; i < activityCounts; i++) halves[i] = record.getUint16(activityOffset + 2 * i, true);
  return halves;
}

/** Fields of the learner hash. */
export const learnerField = 'L';
export const goalField = 'G';
export const skillField = (skillId: string): string => `s${skillId}`;
