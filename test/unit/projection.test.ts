/** How one skill goes on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { forgettingRate, keptMastery, learningRate, outlookOf } from '../../src/domain/score/projection.js';
import { between } from '../support/arbitraries.js';

const anySkill = fc
  .record({
    mastery: between(0.001, 0.999),
    pInit: between(0.001, 0.999),
    learning: between(0.0001, 0.2),
    answersPerDay: fc.oneof(fc.constant(0), between(0.001, 50)),
    freshness: fc.oneof(fc.constantFrom(0, 1), between(0, 1)),
    correctDays: between(0, 20),
    grace: between(0, 1),
  })
  .map(({ mastery, pInit, learning, answersPerDay, freshness, correctDays, grace }) => ({
    mastery,
    weight: 1,
    kept: keptMastery(mastery, pInit, freshness),
    learn: learningRate(answersPerDay, learning),
    forget: forgettingRate(correctDays, freshness),
    grace,
  }));

test('one skill goes one way, and no further than where learning and forgetting balance', () => {
  fc.assert(
    fc.property(anySkill, fc.integer({ min: 0, max: 364 }), (skill, day) => {
      const outlook = outlookOf([skill]);
      const [now, next, end] = [day, day + 1, 3650].map((days) => outlook(days, days)) as [
        number,
        number,
        number,
      ];
      assert.ok([now, next, end].every(Number.isFinite));
      assert.ok(end >= 0 ? next >= now - 1e-12 : next <= now + 1e-12);
      assert.ok(Math.abs(next) <= Math.abs(end) + 1e-9);
    }),
  );
});

test('mastery a rounding error below its prior stays where it is without practice', () => {
  const skill = { mastery: 0.027999999999999997, weight: 1, kept: 0.028, learn: 0, forget: 0.02, grace: 0 };
  assert.equal(outlookOf([skill])(365, 365), 0);
});

test('without practice mastery above the prior halves towards it in a half-life, after the grace', () => {
  const skill = { mastery: 0.9, weight: 1, kept: 0.3, learn: 0, forget: forgettingRate(1, 0), grace: 0.5 };
  const toMastery = (change: number): number => 1 / (1 + Math.exp(-(Math.log(9) + change / 0.7)));
  assert.ok(Math.abs(toMastery(outlookOf([skill])(30.5, 30.5)) - 0.6) < 1e-9);
  assert.ok(Math.abs(outlookOf([skill])(0.5, 0.5)) < 1e-9);
});
