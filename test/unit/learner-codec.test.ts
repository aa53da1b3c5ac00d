import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import type { ReplayedStates } from '../../src/domain/history/replay.js';
import { newLearner, newSkill } from '../../src/domain/tracing/learner-states.js';
import { decodeFirstResult } from '../../src/store/learners/event-ids.js';
import { decodeItem, encodeItem } from '../../src/store/learners/item-codec.js';
import { decodeLearner, encodeLearner } from '../../src/store/learners/learner-codec.js';
import { dumpLearner, type HashFields } from '../../src/store/learners/learner-dump.js';
import { decodeSkill, encodeSkill } from '../../src/store/learners/skill-codec.js';
import { describeDifference } from '../../src/store/rebuild/learner-writes.js';
import { countAnswers } from '../support/builders/answers.js';
import { reportedConfidence, reportedSeconds, upTo } from '../support/builders/arbitraries.js';

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
    wrongBits: 15,
    otherSkillAnswers: 2 ** 28 - 1,
    at: 1_800_000_000,
  };
  assert.deepEqual(decodeItem(encodeItem(item)), item);
});

test('a skill takes one block of 128 bytes in Redis, 4 of them its own', () => {
  assert.ok(encodeSkill(newSkill(defaultParameters)).length <= 124);
});

test('a record of an unknown format is refused', () => {
  const record = encodeLearner(newLearner);
  record[0] = 2;
  assert.throws(() => decodeLearner(record), /format 2 is not known/);
  assert.throws(() => decodeSkill(record), /format 2 is not known/);
});

test('a record of another length is rejected', () => {
  const learner = encodeLearner(newLearner);
  const skill = encodeSkill(newSkill(defaultParameters));
  assert.throws(() => decodeLearner(learner.subarray(0, -1)), /record of 309 bytes is not known/);
  assert.throws(() => decodeSkill(Buffer.concat([skill, skill])), /record of 246 bytes is not known/);
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
      () => decodeFirstResult(Buffer.alloc(bytes)),
      /an event id's record of \d+ bytes is not known/,
    );
});

/** A learner of three answers as the rows give it. */
function threeAnswers(): ReplayedStates {
  const { learner, skill } = countAnswers([true, false, true].map((isCorrect) => ({ isCorrect })));
  const item = { right: 2, wrong: 1, wrongRun: 0, wrongBits: 0b010, otherSkillAnswers: 0, at: 9 };
  const items = [new Map([['i', item]]), new Map()] as const;
  return { learner, skills: new Map([['algebra', skill]]), items };
}

/** The difference to what is stored after changes to its records. */
function compared(change: (field: string, value: Buffer) => Buffer): string | null {
  const states = threeAnswers();
  const { records, items } = dumpLearner(states);
  const changed = (fields: HashFields): HashFields =>
    fields.map(([field, value]) => [field, change(`${field}`, Buffer.from(value))]);
  return describeDifference(states, { records: changed(records), items: [changed(items[0]), items[1]] });
}

const written = (value: Buffer, byte: number, at: number): Buffer => {
  value[at] = byte;
  return value;
};

test('every figure of a learner is compared with what the rows give', () => {
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
