import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { BktParameters } from '../../src/domain/base/bkt-parameters.js';
import type { Answer } from '../../src/domain/base/common.js';
import { normalCdf, normalQuantile } from '../../src/domain/base/normal-distribution.js';
import { traceAnswer } from '../../src/domain/tracing/bkt.js';
import { countAnswers } from '../support/builders/answers.js';

const probability = (low: number, high: number) => fc.double({ min: low, max: high, noNaN: true });
const mastery = probability(0, 1);
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

test('traceAnswer keeps mastery between .001 and .999, and a wrong answer never raises it', () => {
  fc.assert(
    fc.property(legalParameters, mastery, fc.boolean(), (parameters, mastery, isCorrect) => {
      const { masteryAfter, pCorrect } = traceAnswer(parameters, mastery, isCorrect);
      assert.ok(masteryAfter >= 0.001 && masteryAfter <= 0.999);
      assert.ok(pCorrect > 0 && pCorrect < 1);
      if (!isCorrect) assert.ok(masteryAfter <= Math.max(mastery, 0.001));
    }),
  );
});

test('traceAnswer returns a higher mastery for a higher mastery before the answer', () => {
  fc.assert(
    fc.property(legalParameters, mastery, mastery, fc.boolean(), (parameters, a, b, isCorrect) => {
      const after = (before: number) => traceAnswer(parameters, before, isCorrect).masteryAfter;
      assert.ok(after(Math.min(a, b)) <= after(Math.max(a, b)) + 1e-12);
    }),
  );
});

test('applyAnswer returns the same states, bit for bit, for the same answers', () => {
  fc.assert(fc.property(answers, (list) => assert.deepEqual(countAnswers(list), countAnswers(list))));
});

test('applyAnswer counts exactly, and the last answer of a skill never gets earlier', () => {
  fc.assert(
    fc.property(answers, (list) => {
      const { learner, skill } = countAnswers(list);
      assert.equal(learner.attempts, list.length);
      assert.equal(skill.correct, list.filter(({ isCorrect }) => isCorrect).length);
      assert.equal(skill.lastAttemptAt, Math.max(0, ...list.map(({ occurredAt }) => occurredAt)));
    }),
  );
});

test('normalQuantile inverts normalCdf', () => {
  fc.assert(
    fc.property(probability(1e-12, 1 - 1e-12), (p) => {
      assert.ok(Math.abs(normalCdf(normalQuantile(p)) - p) < 1e-12);
    }),
  );
  assert.ok(Math.abs(normalQuantile(0.9) - 1.2815515655446004) < 1e-14);
});
