import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Value } from 'typebox/value';
import { LearningEventResult } from '../../src/contracts/answers/events.js';
import { adviceCodes } from '../../src/domain/advice/answer-advice.js';
import { formatResult } from '../../workers/track/results.js';
import { fc, forAll } from '../support/builders/properties.js';

const tenThousandths = fc.integer({ min: 0, max: 10_000 }).map((x) => x / 10_000);
const figures = fc.record({
  masteryBefore: tenThousandths,
  masteryAfter: tenThousandths,
  attempts: fc.nat().map((more) => 1 + more),
  correct: fc.nat(),
  plateauDetected: fc.boolean(),
  advice: fc.option(fc.record({ code: fc.constantFrom(...adviceCodes), figures: fc.tuple(fc.nat(60_000)) })),
});

test('formatResult returns valid JSON of the response schema for any figures and skill', () => {
  forAll(figures, fc.string({ unit: 'binary' }), (values, skillId) => {
    const result: unknown = JSON.parse(formatResult(values, skillId));
    assert.ok(Value.Check(LearningEventResult, result), JSON.stringify(result));
    assert.equal(result.mastery_after, values.masteryAfter);
    assert.equal(result.total_attempts, values.attempts);
    assert.equal(result.plateau_detected, values.plateauDetected);
    assert.equal(result.recommendation === null, values.advice === null);
    assert.equal(result.recommendation_code, values.advice?.code);
  });
});
