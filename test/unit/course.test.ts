/** The course of a learner through skills and items, and the items that a learner is remembered with. */

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
import {
  advanceWindow,
  findLiveTrace,
  type ItemRecord,
  newItemWindow,
} from '../../src/domain/tracing/learner-states.js';
import {
  decodeItemPattern,
  encodeItemPattern,
  itemPatternCount,
  newItemTrace,
} from '../../src/domain/tracing/traces.js';
import { indices } from '../../src/lists.js';
import { hashItem } from '../../src/store/models/item-store.js';
import { upTo } from '../support/builders/arbitraries.js';
import { fc, forAll, forRuns } from '../support/builders/properties.js';

type Step = readonly [skill: number, item: number, isCorrect: boolean, wrongRun?: number];

const courseAfter = (...steps: readonly Step[]): Course =>
  steps.reduce<Course>(
    (course, [skill, item, isCorrect, wrongRun = 0], i) =>
      updateCourse(course, { skill, item }, isCorrect, i + 1, wrongRun, 0),
    newCourse,
  );

test('updateCourse keeps the last seven skills, newest first, each with its form', () => {
  const course = courseAfter([1, 0, true], [2, 0, false], [1, 0, true], [3, 0, true]);
  assert.deepEqual(course.skills, [3, 1, 2]);
  const twice = 0.15 + 0.3 * (0.5 - 0.15);
  const forms = course.forms.map((form) => Math.round(1e6 * form));
  assert.deepEqual(forms, [150_000, Math.round(1e6 * twice), -150_000]);
  const many = Array.from({ length: courseConstants.skills + 1 }, (_, i): Step => [i + 1, 0, true]);
  assert.deepEqual(courseAfter(...many).skills, [8, 7, 6, 5, 4, 3, 2]);
  const back = courseAfter(...many, [1, 0, true]);
  assert.deepEqual([back.skills[0], back.forms[0]], [1, Math.fround(0.15)], 'a dropped skill starts again');
});

test('findCourseSkill returns the latest other skill', () => {
  const found = (course: Course): number[] => [1, 2, 3].map((skill) => findCourseSkill(course, skill));
  assert.deepEqual(found(newCourse), [0, 0, 0]);
  assert.deepEqual(found(courseAfter([1, 0, true], [1, 0, false])), [0, 1, 1]);
  assert.deepEqual(found(courseAfter([1, 0, true], [2, 0, true], [3, 0, true])), [2, 1, 1]);
});

test('findPreviousItem returns the item of the last answer on another skill', () => {
  const course = courseAfter([1, 10, true], [2, 20, true], [2, 21, true]);
  assert.deepEqual([findPreviousItem(course, 2), findPreviousItem(course, 1)], [10, 21]);
  assert.equal(findPreviousItem(courseAfter([1, 10, true], [2, 0, true]), 1), 0, 'an answer without an item');
});

test('updateCourse separates first tries from retries and ignores answers without an item', () => {
  const start = courseAfter([1, 0, true]);
  assert.deepEqual([start.firstTries, start.retries, start.firstAbility], [0, 0, 0]);
  const first = courseAfter([1, 5, false]);
  assert.deepEqual([first.firstTries, first.retries], [1, 0]);
  assert.deepEqual([first.firstAbility, first.firstForm], [-0.4, -0.05].map(Math.fround));
  const retried = courseAfter([1, 5, false], [1, 5, true, 1]);
  assert.deepEqual([retried.firstTries, retried.retries, retried.firstAbility], [1, 1, first.firstAbility]);
  assert.deepEqual([retried.retryAbility, retried.retryForm], [0.3, 0.1].map(Math.fround));
});

test('encodeItemPattern numbers every pattern of the last four answers, and decodeItemPattern reads it', () => {
  const seen = new Set<number>();
  for (let answers = 1; answers <= 4; answers++)
    for (let wrongBits = 0; wrongBits < 1 << answers; wrongBits++)
      for (const isLatest of [false, true]) {
        const pattern = encodeItemPattern({ ...newItemTrace, right: answers, wrongBits }, isLatest);
        const wrong = [...wrongBits.toString(2)].filter((bit) => bit === '1').length;
        assert.deepEqual(decodeItemPattern(pattern), { answers, wrong });
        seen.add(pattern);
      }
  assert.deepEqual(seen, new Set(indices(itemPatternCount + 1).slice(1)));
  assert.equal(encodeItemPattern(newItemTrace, true), 0);
  const [four, nine] = [4, 9].map((right) =>
    encodeItemPattern({ ...newItemTrace, right, wrongBits: 5 }, true),
  );
  assert.equal(nine, four);
});

test('hashKey is never 0, equals the first bytes of hashItem, and findKeyIndex finds it', () => {
  forAll(fc.string({ maxLength: 40 }), fc.uniqueArray(fc.nat(60)), fc.nat(60), (id, keys, key) => {
    assert.ok(hashKey(id) > 0 && hashKey(id) < 2 ** 32);
    assert.equal(hashKey(id), hashItem(id).readUInt32LE(0) || 1);
    const sorted = keys.sort((a, b) => a - b);
    assert.equal(findKeyIndex(sorted, key), sorted.indexOf(key));
  });
});

/** Answers items one after the other. Each has the index of its last answer as far as it is remembered. */
function answerAll(items: readonly number[]) {
  const records = new Map<number, ItemRecord>();
  let window = newItemWindow;
  const recalled = items.map((item, index) => {
    const found = records.get(item);
    const before = findLiveTrace(window, found);
    window = advanceWindow(window, found);
    records.set(item, { generation: window.generation, trace: { ...newItemTrace, at: index } });
    return before?.at ?? null;
  });
  return { records, window, recalled };
}

test('The item window remembers at least the last 128 different items and at most 256', () => {
  forRuns(10, upTo(1500, fc.integer({ min: 0, max: 400 })), (items) => {
    const { recalled } = answerAll(items);
    for (const [index, at] of recalled.entries()) {
      const last = items.slice(0, index).lastIndexOf(items[index] as number);
      if (at !== null) assert.equal(at, last);
      else assert.ok(last < 0 || new Set(items.slice(last + 1, index)).size >= 128);
    }
  });
  const { records, window } = answerAll(Array.from({ length: 2000 }, (_, i) => i));
  const live = [...records.values()].filter((item) => findLiveTrace(window, item) !== null);
  assert.ok(live.length <= 256);
  assert.deepEqual(window, { generation: 15, size: 2000 - 15 * 128 });
});
