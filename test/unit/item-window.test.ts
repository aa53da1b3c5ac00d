import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  advanceWindow,
  findLiveTrace,
  type ItemRecord,
  newItemWindow,
} from '../../src/domain/tracing/learner-states.js';
import { newItemTrace } from '../../src/domain/tracing/traces.js';
import { upTo } from '../support/builders/arbitraries.js';

const leastRemembered = 128;

/** Answers items one after another; tells which ones were still remembered when they came again. */
function answerAll(items: readonly number[]) {
  const kept = new Map<number, ItemRecord>();
  let window = newItemWindow;
  const recalled = items.map((item, place) => {
    const found = kept.get(item);
    const before = findLiveTrace(window, found);
    window = advanceWindow(window, found);
    kept.set(item, { generation: window.generation, trace: { ...newItemTrace, at: place } });
    return before === null ? null : before.at;
  });
  return { kept, window, recalled };
}

/** Different items answered since the last answer on this one. */
function distinctSince(items: readonly number[], place: number): number {
  const last = items.slice(0, place).lastIndexOf(items[place] as number);
  return last < 0 ? Number.POSITIVE_INFINITY : new Set(items.slice(last + 1, place)).size;
}

test('at least the last 128 different items are remembered, with what was written last', () => {
  fc.assert(
    fc.property(upTo(1500, fc.integer({ min: 0, max: 400 })), (items) => {
      const { recalled } = answerAll(items);
      recalled.forEach((trace, place) => {
        if (trace !== null) assert.equal(trace, items.slice(0, place).lastIndexOf(items[place] as number));
        else assert.ok(distinctSince(items, place) >= leastRemembered);
      });
    }),
    { numRuns: 20 },
  );
});

test('never more than 256 items are remembered, 128 of them in the current generation', () => {
  const { kept, window } = answerAll(Array.from({ length: 2000 }, (_, i) => i));
  const remembered = [...kept.values()].filter((item) => findLiveTrace(window, item) !== null);
  assert.ok(remembered.length <= 2 * leastRemembered);
  assert.deepEqual(window, { generation: 15, size: 2000 - 15 * leastRemembered });
});
