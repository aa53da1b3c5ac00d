/** Records of learners, skills, items and event ids in Redis. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import type { ReplayedStates } from '../../src/domain/history/replay.js';
import {
  type LearnerState,
  newLearner,
  newSkill,
  type SkillState,
} from '../../src/domain/tracing/learner-states.js';
import { decodeFirstResult } from '../../src/store/learners/event-ids.js';
import { decodeItem, encodeItem } from '../../src/store/learners/item-codec.js';
import { decodeLearner, encodeLearner } from '../../src/store/learners/learner-codec.js';
import { dumpLearner, type HashFields } from '../../src/store/learners/learner-dump.js';
import { decodeSkill, encodeSkill } from '../../src/store/learners/skill-codec.js';
import { describeDifference } from '../../src/store/rebuild/learner-writes.js';
import { countAnswers } from '../support/builders/answers.js';
import { anyAnswer, upTo } from '../support/builders/arbitraries.js';
import { forAll } from '../support/builders/properties.js';

test('Records of learners, skills and items return the encoded state, bit for bit', () => {
  forAll(upTo(60, anyAnswer), (list) => {
    const {
      learner,
      skills: [skill],
    } = countAnswers(list);
    assert.deepEqual(decodeLearner(encodeLearner(learner)), learner);
    assert.deepEqual(decodeSkill(encodeSkill(skill)), skill);
  });
  const largest = { right: 255, wrong: 0, wrongRun: 8, wrongBits: 15, otherSkillAnswers: 2 ** 28 - 1 };
  const item = { ...largest, at: 1_800_000_000 };
  assert.deepEqual(decodeItem(encodeItem(item)), item);
});

const [uint8, uint16, uint24, uint32] = [2 ** 8 - 1, 2 ** 16 - 1, 2 ** 24 - 1, 2 ** 32 - 1] as const;

test('decodeLearner returns the largest values that encodeLearner can store', () => {
  const { activity, momentum, trace, trend } = newLearner;
  const course = { firstSkill: uint32, secondSkill: uint32, firstTries: uint32, retries: uint32 };
  const learner: LearnerState = {
    ...{ ...newLearner, version: uint32, attempts: uint32, abilityVersion: uint16, baselineTotal: 1600 },
    activity: { day: uint16 - 1, halfAnswers: activity.halfAnswers.map(() => uint16) },
    momentum: { ...momentum, day: uint16 - 1 },
    trace: {
      ...{ ...trace, right: uint32, wrong: uint32, wrongRun: uint32, lastRightAt: 4e12 },
      course: { ...trace.course, ...course, lastItem: uint32, itemBeforeRun: uint32 },
    },
    trend: { ...trend, answers: uint32 },
    items: { generation: uint32, size: 128 },
  };
  assert.deepEqual(decodeLearner(encodeLearner(learner)), learner);
});

test('decodeSkill returns the largest values that encodeSkill can store', () => {
  const skill: SkillState = {
    ...{ mastery: 0.999, attempts: uint32, correct: uint32, reached: true, ready: true },
    ...{ correctDays: uint16, lastCorrectDay: uint16 - 1, lastAttemptAt: 4e12 },
    plateau: { attempts: uint16, sum: 10, timeSum: -100, squareSum: 10, run: uint8 },
    pace: { timed: uint24, timedCorrect: uint24, seconds: 1e9, slowness: 1e9, accuracy: 1 },
    rapid: { answers: uint24, recent: uint24, recentTimed: uint8 },
    calibration: { answers: uint24, biasTenths: -(2 ** 31), squaredHundredths: uint32 },
    trace: {
      ...{ lastAnswerNumber: uint32, lastRightNumber: uint32, lastRightAt: uint32 },
      ...{ residual: -9, streak: -5 },
    },
  };
  assert.deepEqual(decodeSkill(encodeSkill(skill)), skill);
});

test('encodeSkill limits counts to the range of their bytes, and needs at most 128 bytes in Redis', () => {
  const skill = newSkill(defaultParameters);
  assert.ok(encodeSkill(skill).length <= 128 - 4);
  const large = decodeSkill(encodeSkill({ ...skill, pace: { ...skill.pace, timed: uint24 + 5 } }));
  assert.equal(large.pace.timed, uint24);
});

test('Decoders reject records of an unknown format or length', () => {
  const learner = encodeLearner(newLearner);
  const skill = encodeSkill(newSkill(defaultParameters));
  const unknown = Buffer.concat([Buffer.of(2), learner.subarray(1)]);
  const cases: readonly [decode: () => unknown, error: RegExp][] = [
    [() => decodeLearner(unknown), /unsupported record format 2/],
    [() => decodeSkill(unknown), /unsupported record format 2/],
    [() => decodeLearner(learner.subarray(0, -1)), /unsupported record of 309 bytes/],
    [() => decodeSkill(Buffer.concat([skill, skill])), /unsupported record of 246 bytes/],
    [() => decodeItem(Buffer.alloc(12)), /unsupported record of an item with 12 bytes/],
    ...[20, 22, 25].map((bytes): [() => unknown, RegExp] => [
      () => decodeFirstResult(Buffer.alloc(bytes), ['algebra']),
      /unsupported record of an event id with \d+ bytes/,
    ]),
  ];
  for (const [decode, error] of cases) assert.throws(decode, error);
});

/** The states of a learner with three answers. */
function buildStates(): ReplayedStates {
  const {
    learner,
    skills: [skill],
  } = countAnswers([true, false, true].map((isCorrect) => ({ isCorrect })));
  const item = { right: 2, wrong: 1, wrongRun: 0, wrongBits: 0b010, otherSkillAnswers: 0, at: 9 };
  const items = [new Map([['i', item]]), new Map()] as const;
  return { learner, skills: new Map([['algebra', skill]]), items };
}

test('describeDifference names the record that differs: of the learner, of a skill or of the items', () => {
  /** Changes a byte in the records with a matching field. */
  const differs = (field: RegExp, at: number): string | null => {
    const states = buildStates();
    const { records, items } = dumpLearner(states);
    const changed = (fields: HashFields): HashFields =>
      fields.map(([name, value]) => {
        const bytes = Buffer.from(value);
        if (field.test(`${name}`)) bytes[at] = 0x7f;
        return [name, bytes];
      });
    return describeDifference(states, { records: changed(records), items: [changed(items[0]), items[1]] });
  };
  assert.equal(differs(/^$/, 0), null);
  assert.equal(differs(/^L$/, 199), 'differs in the learner record');
  assert.equal(differs(/^salgebra$/, 117), 'differs in skill algebra');
  assert.equal(differs(/^(?!L$|salgebra$)/, 2), 'differs in the item records');
});
