import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { BktParameters } from '../../src/domain/base/bkt-parameters.js';
import type { Answer } from '../../src/domain/base/common.js';
import { normalCdf, normalQuantile } from '../../src/domain/base/normal-distribution.js';
import { traceAnswer } from '../../src/domain/tracing/bkt.js';
import { countAnswers } from '../support/builders/answers.js';

const probability = (low: number, high: number) => fc.double({ min: low, max: high, noNaN: true });
const legalParameters: fc.Arbitrary<BktParameters> = fc.record({
  pInit: probability(0.02, 0.9),
  pLearn: probability(0.005, 0.4),
  pGuess: probability(0.02, 0.45),
  pSlip: probability(0.01, 0.35),
  pForget: fc.double({ min: 0, max: 0.1, noNaN: true }),
});
const answers: fc.Arbitrary<Answer[]> = fc.array(
  fc.record({
    isCorrect: fc.boolean(),
    occurredAt: fc.integer({ min: 0, max: 4e12 }),
    questionDifficulty: fc.option(probability(-3, 3)),
    timeSpentSeconds: fc.option(fc.integer({ min: 0, max: 86_400 })),
    confidenceScore: fc.option(fc.integer({ min: 1, max: 5 })),
  }),
  { maxLength: 60 },
);

test('mastery stays in bounds, and no wrong answer raises it', () => {
  fc.assert(
    fc.property(legalParameters, probability(0, 1), fc.boolean(), (parameters, mastery, isCorrect) => {
      const { masteryAfter, pCorrect } = traceAnswer(parameters, mastery, isCorrect);
      assert.ok(masteryAfter >= 0.001 && masteryAfter <= 0.999);
      assert.ok(pCorrect > 0 && pCorrect < 1);
      if (!isCorrect) assert.ok(masteryAfter <= Math.max(mastery, 0.001));
    }),
  );
});

test('mastery after an answer grows with mastery before it', () => {
  fc.assert(
    fc.property(
      legalParameters,
      probability(0, 1),
      probability(0, 1),
      fc.boolean(),
      (parameters, a, b, isCorrect) => {
        const [low, high] = a < b ? [a, b] : [b, a];
        const after = (mastery: number) => traceAnswer(parameters, mastery, isCorrect).masteryAfter;
        assert.ok(after(low) <= after(high) + 1e-12);
      },
    ),
  );
});

test('a replay of the same answers gives the same states bit for bit', () => {
  fc.assert(fc.property(answers, (list) => assert.deepEqual(countAnswers(list), countAnswers(list))));
});

test('counts are exact and the clock of a skill never runs backwards', () => {
  fc.assert(
    fc.property(answers, (list) => {
      const { learner, skill } = countAnswers(list);
      assert.equal(learner.attempts, list.length);
      assert.equal(skill.correct, list.filter(({ isCorrect }) => isCorrect).length);
      assert.equal(skill.lastAttemptAt, Math.max(0, ...list.map(({ occurredAt }) => occurredAt)));
    }),
  );
});

test('the normal distribution and its quantile invert one another', () => {
  fc.assert(
    fc.property(probability(1e-12, 1 - 1e-12), (p) => {
      assert.ok(Math.abs(normalCdf(normalQuantile(p)) - p) < 1e-12);
    }),
  );
  assert.ok(Math.abs(normalQuantile(0.9) - 1.2815515655446004) < 1e-14);
});
