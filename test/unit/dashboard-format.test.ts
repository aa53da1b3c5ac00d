/** Figures of the dashboard as text. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { masteryThresholds } from '../../src/domain/base/bkt-parameters.js';
import { formatCountTick, formatShareTick } from '../../src/lab/report/marks.js';
import {
  formatChance,
  formatDaysAgo,
  formatFinePoints,
  formatMastery,
  formatPercent,
  formatPercentRange,
  formatSkillAccuracy,
} from '../../src/pages/dashboard/base/format.js';
import { fc, forAll } from '../support/builders/properties.js';

test('formatPercent shows 0 % and 100 % only for exact values', () => {
  const texts = [0, 0.0001, 0.0049, 0.005, 0.5, 0.994, 0.995, 0.9999, 1, null].map(formatPercent);
  assert.deepEqual(texts, ['0 %', '<1 %', '<1 %', '1 %', '50 %', '99 %', '>99 %', '>99 %', '100 %', '–']);
  assert.equal(formatPercentRange(0.001, 0.999), '<1 to >99 %');
  assert.equal(formatPercentRange(0.3, null), '–');
});

test('formatMastery and formatSkillAccuracy never round a share up to the threshold of a mastered skill', () => {
  const { mastery, accuracy } = masteryThresholds;
  assert.deepEqual([0.9499, 0.946, 0.95, 0.3].map(formatMastery), ['94 %', '94 %', '95 %', '30 %']);
  assert.deepEqual([0.7499, 0.75, 0.751].map(formatSkillAccuracy), ['74 %', '75 %', '75 %']);
  assert.deepEqual([0.3, 0.599, 0.6].map(formatSkillAccuracy), ['30 %', '59 %', '60 %']);
  const readPercent = (text: string): number => Number(/\d+/.exec(text)?.[0]);
  const shares = fc.double({ min: 0, max: 1, noNaN: true });
  forAll(shares, (share) => {
    assert.equal(readPercent(formatMastery(share)) >= 100 * mastery, share >= mastery);
    assert.equal(readPercent(formatSkillAccuracy(share)) >= 100 * accuracy, share >= accuracy);
    assert.ok(Math.abs(readPercent(formatMastery(share)) - 100 * share) <= 1);
  });
});

test('formatChance rounds down and never claims certainty', () => {
  const texts = [0, 0.126, 0.29, 0.4999, 0.99, 1, null].map(formatChance);
  assert.deepEqual(texts, ['<1 %', '12 %', '29 %', '49 %', '99 %', '>99 %', '–']);
});

test('formatFinePoints shows small differences', () => {
  assert.deepEqual([-0.0023, 0.0004, 0.1].map(formatFinePoints), ['−0.2', '0', '+10']);
});

test('formatDaysAgo counts UTC days', (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-06-30T00:30:00Z') });
  const texts = ['2026-06-30T00:10:00Z', '2026-06-29T23:50:00Z', '2026-06-28T01:00:00Z'].map(formatDaysAgo);
  assert.deepEqual(texts, ['today', 'yesterday', '2 days ago']);
});

test('Labels of an axis do not repeat', () => {
  const fractions = [0, 0.005, 0.01, 0.015, 0.3];
  assert.deepEqual(fractions.map(formatShareTick), ['0%', '0.5%', '1%', '1.5%', '30%']);
  assert.deepEqual([1, 1.5, 2, 2.5].map(formatCountTick), ['1', '', '2', '']);
});
