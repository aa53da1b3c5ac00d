import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Value } from 'typebox/value';
import { LearningEventResult } from '../../src/contracts/answers/events.js';
import { adviceCodes } from '../../src/domain/advice/answer-advice.js';
import { formatResult } from '../../workers/track/results.js';

const tenThousandths = fc.integer({ min: 0, max: 10_000 }).map((x) => x / 10_000);
const figures = fc.record({
  masteryBefore: tenThousandths,
  masteryAfter: tenThousandths,
  attempts: fc.nat().map((more) => 1 + more),
  correct: fc.nat(),
  plateauDetected: fc.boolean(),
  advice: fc.option(fc.record({ code: fc.constantFrom(...adviceCodes), figures: fc.tuple(fc.nat(60_000)) })),
});

test('a result is JSON of its schema, whatever the figures and the skill are', () => {
  fc.assert(
    fc.property(figures, fc.string({ unit: 'binary' }), (told, skillId) => {
      const result: unknown = JSON.parse(formatResult(told, skillId));
      assert.ok(Value.Check(LearningEventResult, result), JSON.stringify(result));
      assert.equal(result.mastery_after, told.masteryAfter);
      assert.equal(result.total_attempts, told.attempts);
      assert.equal(result.plateau_detected, told.plateauDetected);
      assert.equal(result.recommendation === null, told.advice === null);
      assert.equal(result.recommendation_code, told.advice?.code);
    }),
  );
});
