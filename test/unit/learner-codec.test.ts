import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { defaultParameters } from '../../src/domain/base/params.js';
import type { ReplayedStates } from '../../src/domain/history/replay.js';
import { newLearner, newSkill } from '../../src/domain/tracing/states.js';
import { decodeFirstAnswer } from '../../src/store/learners/event-ids.js';
import {
  decodeItem,
  decodeLearner,
  decodeSkill,
  dumpOf,
  encodeItem,
  encodeLearner,
  encodeSkill,
  type Fields,
} from '../../src/store/learners/learner-codec.js';
import { differenceOf } from '../../src/store/rebuild/replayed-learners.js';
import { countAnswers } from '../support/answers.js';
import { reportedConfidence, reportedSeconds, upTo } from '../support/arbitraries.js';

const answers = upTo(
  60,
  fc.record({
    isCorrect: fc.boolean(),
    occurredAt: fc.integer({ min: 0, max: 4e12 }),
    questionDifficulty: fc.option(fc.integer({ min: -3, max: 3 })),
    timeSpentSeconds: reportedSeconds,
    confidenceScore: reportedConfidence,
  }),
);

test('states survive their records bit for bit', () => {
  fc.assert(
    fc.property(answers, (list) => {
      const { learner, skill } = countAnswers(list);
      assert.deepEqual(decodeLearner(encodeLearner(learner)), learner);
      assert.deepEqual(decodeSkill(encodeSkill(skill)), skill);
    }),
  );
});

test('an item survives its record', () => {
  const item = {
    right: 255,
    wrong: 0,
    wrongRun: 8,
    lastWrong: 15,
    elsewhere: 2 ** 28 - 1,
    at: 1_800_000_000,
  };
  assert.deepEqual(decodeItem(encodeItem(item)), item);
});

test('of an item that an earlier version wrote, the run of wrong answers is known of its last ones', () => {
  const item = { right: 3, wrong: 2, wrongRun: 2, lastWrong: 0b1011, elsewhere: 7, at: 9 };
  const record = encodeItem(item);
  assert.equal(decodeItem(record).lastWrong, 0b1011);
  record.writeUInt32LE(item.elsewhere, 3);
  assert.deepEqual(decodeItem(record), { ...item, lastWrong: 0b11 });
});

test('a process of an earlier version reads the run of wrong answers on an item as it is', () => {
  for (const wrongRun of [0, 1, 8])
    assert.equal(
      encodeItem({ right: 3, wrong: 9, wrongRun, lastWrong: 15, elsewhere: 7, at: 9 })[2],
      wrongRun,
    );
});

test('of a skill that an earlier version wrote, the streak is at least its last answer', () => {
  const streakOf = (...answers: boolean[]): number => {
    const { skill } = countAnswers(answers.map((isCorrect) => ({ isCorrect })));
    return decodeSkill(encodeSkill(skill).subarray(0, 117)).trace.streak;
  };
  assert.deepEqual([streakOf(), streakOf(true, true), streakOf(true, false, false)], [0, 1, -1]);
});

test('a skill takes one block of 128 bytes in Redis, 4 of them its own', () => {
  assert.ok(encodeSkill(newSkill(defaultParameters)).length <= 124);
});

test('a record of an earlier version is read with start values for what it lacks', () => {
  const learner = { ...newLearner, version: 3, attempts: 5, baselineTotal: 1010 };
  const skill = { ...newSkill(defaultParameters), mastery: 0.7, attempts: 5, correct: 4, lastAttemptAt: 9 };
  assert.deepEqual(decodeLearner(encodeLearner(learner).subarray(0, 64)), learner);
  assert.deepEqual(decodeSkill(encodeSkill(skill).subarray(0, 32)), skill);
});

test('a record from before accuracy was stored has the share of correct timed answers, and the usual slowness', () => {
  const pace = { timed: 4, timedCorrect: 3, seconds: 90, slowness: -0.5, accuracy: 0.25 };
  const record = encodeSkill({ ...newSkill(defaultParameters), pace });
  assert.deepEqual(decodeSkill(record).pace, pace);
  assert.deepEqual(decodeSkill(record.subarray(0, 118)).pace, { ...pace, slowness: 0, accuracy: 0.75 });
});

test('a record from before mastery could be reached is completed so that nobody is notified of what holds', () => {
  const reachedIn = (mastery: number): boolean =>
    decodeSkill(encodeSkill({ ...newSkill(defaultParameters), mastery }).subarray(0, 116)).reached;
  assert.deepEqual([0.949, 0.95, 0.999].map(reachedIn), [false, true, true]);
});

test('a record from before READY needed expected accuracy is ready if mastery is steady', () => {
  const right = (attempts: number) => countAnswers(new Array(attempts).fill({ isCorrect: true })).skill;
  const readyIn = (attempts: number): boolean =>
    decodeSkill(encodeSkill({ ...right(attempts), ready: false }).subarray(0, 118)).ready;
  assert.deepEqual([4, 20].map(readyIn), [false, true]);
});

test('a record of an unknown format is refused', () => {
  const record = encodeLearner(newLearner);
  record[0] = 2;
  assert.throws(() => decodeLearner(record), /format 2 is not known/);
  assert.throws(() => decodeSkill(record), /format 2 is not known/);
});

test('a record that is cut off is refused', () => {
  assert.throws(() => decodeLearner(encodeLearner(newLearner).subarray(0, 7)), /cut off/);
  assert.throws(() => decodeSkill(encodeSkill(newSkill(defaultParameters)).subarray(0, 31)), /cut off/);
});

test('counts stop at what their bytes hold instead of ending the learner', () => {
  const most = 2 ** 24 - 1;
  const skill = newSkill(defaultParameters);
  const large = {
    ...skill,
    pace: { ...skill.pace, timed: most + 5 },
    rapid: { ...skill.rapid, answers: most },
  };
  assert.equal(decodeSkill(encodeSkill(large)).pace.timed, most);
  assert.equal(decodeSkill(encodeSkill(large)).rapid.answers, most);
});

test('records of items and event ids of another length are refused by name', () => {
  assert.throws(() => decodeItem(Buffer.alloc(12)), /an item's record of 12 bytes is not known/);
  for (const bytes of [20, 22, 25])
    assert.throws(
      () => decodeFirstAnswer(Buffer.alloc(bytes)),
      /an event id's record of \d+ bytes is not known/,
    );
});

/** A learner of three answers as the rows give it. */
function threeAnswers(): ReplayedStates {
  const { learner, skill } = countAnswers([true, false, true].map((isCorrect) => ({ isCorrect })));
  const item = { right: 2, wrong: 1, wrongRun: 0, lastWrong: 0b010, elsewhere: 0, at: 9 };
  const items = [new Map([['i', item]]), new Map()] as const;
  return { learner, skills: new Map([['algebra', skill]]), items };
}

/** The difference to what is stored after changes to its records. */
function compared(change: (field: string, value: Buffer) => Buffer): string | null {
  const states = threeAnswers();
  const { records, items } = dumpOf(states);
  const changed = (fields: Fields): Fields =>
    fields.map(([field, value]) => [field, change(`${field}`, Buffer.from(value))]);
  return differenceOf(states, { records: changed(records), items: [changed(items[0]), items[1]] });
}

const written = (value: Buffer, byte: number, at: number): Buffer => {
  value[at] = byte;
  return value;
};

test('of a learner whose records this version began, every figure is compared with what the rows give', () => {
  assert.equal(
    compared((_, value) => value),
    null,
  );
  const differs = (field: RegExp, at: number): string | null =>
    compared((name, value) => (field.test(name) ? written(value, 0x7f, at) : value));
  assert.equal(differs(/^L$/, 199), 'differs in its own record');
  assert.equal(differs(/^salgebra$/, 117), 'differs in skill algebra');
  assert.equal(differs(/^(?!L$|salgebra$)/, 2), 'differs in its items');
});

test('of a learner whose records an earlier version began, what it did not know is not compared', () => {
  const older = (field: string, value: Buffer): Buffer => {
    if (field === 'L') return value.subarray(0, 198);
    return field === 'salgebra' ? value.subarray(0, 117) : written(value, 0, 6);
  };
  assert.equal(compared(older), null);
  const worse = (field: string, value: Buffer): Buffer =>
    older(field, field === 'salgebra' ? written(value, 0x7f, 100) : value);
  assert.equal(compared(worse), 'differs in skill algebra');
});

test('of a learner whose rows follow on a snapshot of an earlier version, what that did not know is not compared', () => {
  const whole = threeAnswers();
  const partly = decodeLearner(encodeLearner(whole.learner).subarray(0, 198));
  assert.equal(differenceOf({ ...whole, learner: partly }, dumpOf(whole)), null);
});
