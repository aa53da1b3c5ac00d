/** Status of a goal: limits, and hysteresis. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDay } from '../../src/domain/base/calendar.js';
import { computeGoalStatus, type GoalStatus, goalStatuses } from '../../src/domain/score/goal.js';
import { between } from '../support/builders/arbitraries.js';
import { fc, forAll } from '../support/builders/properties.js';

const today = '2026-06-01';

const statusOf = (
  status: GoalStatus | null,
  { total = 1100, chance = 0.5, date = null as string | null } = {},
): GoalStatus =>
  computeGoalStatus({ targetScore: 1200, targetDate: date, status }, total, chance, parseDay(today));

test('computeGoalStatus depends on the score, the date, the probability and the previous status', () => {
  const cases: readonly [GoalStatus | null, Parameters<typeof statusOf>[1], GoalStatus][] = [
    [null, { chance: 0.5 }, 'on_track'],
    [null, { chance: 0.49 }, 'at_risk'],
    [null, { chance: 0.14 }, 'unlikely'],
    ['on_track', { chance: 0.4 }, 'on_track'],
    ['on_track', { chance: 0.39 }, 'at_risk'],
    ['at_risk', { chance: 0.59 }, 'at_risk'],
    ['at_risk', { chance: 0.6 }, 'on_track'],
    ['at_risk', { chance: 0.14 }, 'unlikely'],
    ['unlikely', { chance: 0.24 }, 'unlikely'],
    ['unlikely', { chance: 0.25 }, 'at_risk'],
    ['unlikely', { chance: 0.6 }, 'on_track'],
    [null, { total: 1200 }, 'reached'],
    ['reached', { total: 1180 }, 'reached'],
    ['reached', { total: 1170 }, 'on_track'],
    ['on_track', { total: 1190 }, 'on_track'],
    ['on_track', { date: '2026-05-31' }, 'expired'],
    ['reached', { total: 1170, date: '2026-05-31' }, 'expired'],
    [null, { total: 1200, date: '2026-05-31' }, 'reached'],
    ['on_track', { date: today }, 'on_track'],
  ];
  for (const [previous, change, expected] of cases)
    assert.equal(statusOf(previous, change), expected, `${previous} ${JSON.stringify(change)}`);
});

test('computeGoalStatus does not return to an earlier status while the forecast varies little', () => {
  const days = fc.array(fc.tuple(fc.constantFrom(0, 10, 20), between(0, 0.09)), { minLength: 2 });
  const start = fc.constantFrom<GoalStatus | null>(null, ...goalStatuses);
  forAll(start, fc.integer({ min: 110, max: 130 }), between(0, 0.91), days, (first, tens, chance, list) => {
    const seen = [first];
    for (const [points, more] of list) {
      const previous = seen.at(-1) ?? null;
      const figures = { total: 10 * tens + points, chance: chance + more };
      const next = statusOf(previous, figures);
      assert.equal(statusOf(next, figures), next, 'a repeated forecast has the same status');
      if (next !== previous) assert.ok(!seen.includes(next), `${seen} ${next}`);
      if (next !== previous) seen.push(next);
    }
  });
});
