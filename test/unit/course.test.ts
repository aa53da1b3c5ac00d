import assert from 'node:assert/strict';
import { test } from 'node:test';
import { courseConstants } from '../../src/domain/base/prediction-constants.js';
import { hashKey } from '../../src/domain/base/text-hash.js';
import { findKeyIndex } from '../../src/domain/prediction/related-terms.js';
import {
  type Course,
  findCourseSkill,
  findPreviousItem,
  newCourse,
  updateCourse,
} from '../../src/domain/tracing/course.js';
import { encodeItemPattern, itemPatternCount, newItemTrace } from '../../src/domain/tracing/traces.js';
import { hashItem } from '../../src/store/models/item-store.js';
import { fc } from '../support/builders/properties.js';

type Step = readonly [skill: number, item: number, isCorrect: boolean, wrongRun?: number];

const courseAfter = (...steps: readonly Step[]): Course =>
  steps.reduce<Course>(
    (course, [skill, item, isCorrect, wrongRun = 0], i) =>
      updateCourse(course, { skill, item }, isCorrect, i + 1, wrongRun, 0),
    newCourse,
  );

test('the skills answered last stand newest first, each once, with how they went', () => {
  const course = courseAfter([1, 0, true], [2, 0, false], [1, 0, true], [3, 0, true]);
  assert.deepEqual(course.skills, [3, 1, 2]);
  const twice = 0.15 + 0.3 * (0.5 - 0.15);
  assert.deepEqual(
    course.forms.map((form) => Math.round(1e6 * form)),
    [150_000, Math.round(1e6 * twice), -150_000],
  );
});

test('of many skills the last ones are kept, and one that comes back begins anew', () => {
  const many = Array.from({ length: courseConstants.skills + 1 }, (_, i): Step => [i + 1, 0, true]);
  const course = courseAfter(...many);
  assert.deepEqual(course.skills, [8, 7, 6, 5, 4, 3, 2]);
  const back = courseAfter(...many, [1, 0, true]);
  assert.deepEqual([back.skills[0], back.forms[0]], [1, Math.fround(0.15)]);
});

test('a course is the first skill, and for that skill the first other one', () => {
  const asked = (course: Course): number[] => [1, 2, 3].map((skill) => findCourseSkill(course, skill));
  assert.deepEqual(asked(newCourse), [0, 0, 0]);
  assert.deepEqual(asked(courseAfter([1, 0, true], [1, 0, false])), [0, 1, 1]);
  assert.deepEqual(asked(courseAfter([1, 0, true], [2, 0, true], [3, 0, true])), [2, 1, 1]);
});

test('the item before a skill is that of the last answer on another one', () => {
  const course = courseAfter([1, 10, true], [2, 20, true], [2, 21, true]);
  assert.deepEqual([findPreviousItem(course, 2), findPreviousItem(course, 1)], [10, 21]);
  assert.equal(findPreviousItem(courseAfter([1, 10, true], [2, 0, true]), 1), 0, 'it had no item');
});

test('first tries and retries of items go apart, and answers without an item into neither', () => {
  const start = courseAfter([1, 0, true]);
  assert.deepEqual([start.firstTries, start.retries, start.firstAbility], [0, 0, 0]);
  const first = courseAfter([1, 5, false]);
  assert.deepEqual([first.firstTries, first.retries], [1, 0]);
  assert.equal(first.firstAbility, Math.fround(-0.4));
  assert.equal(first.firstForm, Math.fround(-0.05));
  const retried = courseAfter([1, 5, false], [1, 5, true, 1]);
  assert.deepEqual([retried.firstTries, retried.retries, retried.firstAbility], [1, 1, first.firstAbility]);
  assert.equal(retried.retryAbility, Math.fround(0.3));
  assert.equal(retried.retryForm, Math.fround(0.1));
});

test('a right answer lowers no form and no ability, a wrong one raises none', () => {
  const step = fc.tuple(
    fc.integer({ min: 1, max: 9 }),
    fc.integer({ min: 0, max: 3 }),
    fc.boolean(),
    fc.integer({ min: 0, max: 3 }),
  );
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 40 }), (steps) => {
      const before = courseAfter(...steps.slice(0, -1));
      const [skill, , isCorrect] = steps.at(-1) as Step;
      const after = courseAfter(...steps);
      const sign = isCorrect ? 1 : -1;
      const place = before.skills.indexOf(skill);
      const form = place < 0 ? 0 : (before.forms[place] as number);
      assert.ok(sign * ((after.forms[0] as number) - form) >= 0);
      for (const figure of ['firstAbility', 'firstForm', 'retryAbility', 'retryForm'] as const)
        assert.ok(sign * (after[figure] - before[figure]) >= 0, figure);
    }),
  );
});

test('every pattern of up to four last answers has a number of its own', () => {
  const seen = new Set<number>();
  for (let answers = 1; answers <= 4; answers++)
    for (let wrongBits = 0; wrongBits < 1 << answers; wrongBits++)
      for (const isLatest of [false, true])
        seen.add(encodeItemPattern({ ...newItemTrace, right: answers, wrongBits }, isLatest));
  assert.deepEqual(
    [...seen].sort((a, b) => a - b),
    Array.from({ length: itemPatternCount }, (_, i) => i + 1),
  );
  assert.equal(encodeItemPattern(newItemTrace, true), 0);
  assert.equal(
    encodeItemPattern({ ...newItemTrace, right: 9, wrongBits: 5 }, true),
    encodeItemPattern({ ...newItemTrace, right: 4, wrongBits: 5 }, true),
  );
});

test('a key is never 0, and for an item it is how its hash begins', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 40 }), (id) => {
      assert.ok(hashKey(id) > 0 && hashKey(id) < 2 ** 32);
      assert.equal(hashKey(id), hashItem(id).readUInt32LE(0) || 1);
    }),
  );
});

test('a key is found where it is, and nowhere else', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(60)), fc.nat(60), (keys, key) => {
      const sorted = keys.sort((a, b) => a - b);
      assert.equal(findKeyIndex(sorted, key), sorted.indexOf(key));
    }),
  );
});
