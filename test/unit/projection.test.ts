/** How one skill goes on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  computeForgettingRate,
  computeLearningRate,
  computeRetainedMastery,
  createAbilityProjection,
} from '../../src/domain/score/mastery-projection.js';
import { between } from '../support/builders/arbitraries.js';

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
    retained: computeRetainedMastery(mastery, pInit, freshness),
    learnRate: computeLearningRate(answersPerDay, learning),
    forgetRate: computeForgettingRate(correctDays, freshness),
    graceDays: grace,
  }));

test('one skill goes one way, and no further than where learning and forgetting balance', () => {
  fc.assert(
    fc.property(anySkill, fc.integer({ min: 0, max: 364 }), (skill, day) => {
      const outlook = createAbilityProjection([skill]);
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
  const skill = {
    mastery: 0.027999999999999997,
    weight: 1,
    retained: 0.028,
    learnRate: 0,
    forgetRate: 0.02,
    graceDays: 0,
  };
  assert.equal(createAbilityProjection([skill])(365, 365), 0);
});

test('without practice mastery above the prior halves towards it in a half-life, after the grace', () => {
  const skill = {
    mastery: 0.9,
    weight: 1,
    retained: 0.3,
    learnRate: 0,
    forgetRate: computeForgettingRate(1, 0),
    graceDays: 0.5,
  };
  const toMastery = (change: number): number => 1 / (1 + Math.exp(-(Math.log(9) + change / 0.7)));
  assert.ok(Math.abs(toMastery(createAbilityProjection([skill])(30.5, 30.5)) - 0.6) < 1e-9);
  assert.ok(Math.abs(createAbilityProjection([skill])(0.5, 0.5)) < 1e-9);
});
