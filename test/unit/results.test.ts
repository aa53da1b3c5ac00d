import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Value } from 'typebox/value';
import { LearningEventResult } from '../../src/contracts/answers/events.js';
import { adviceCodes } from '../../src/domain/advice/answer-advice.js';
import type { SkillResult } from '../../src/store/learners/event-ids.js';
import { formatResult } from '../../workers/track/results.js';
import { anyId } from '../support/builders/arbitraries.js';
import { fc, forAll } from '../support/builders/properties.js';

const tenThousandths = fc.integer({ min: 0, max: 10_000 }).map((x) => x / 10_000);
const skillResult = fc.record({
  masteryBefore: tenThousandths,
  masteryAfter: tenThousandths,
  attempts: fc.nat().map((more) => 1 + more),
  correct: fc.nat(),
  plateauDetected: fc.boolean(),
});
const figures = fc.uniqueArray(anyId, { minLength: 1, maxLength: 10 }).chain((skillIds) =>
  fc.record({
    skillIds: fc.constant(skillIds as [string, ...string[]]),
    skills: fc
      .array(skillResult, { minLength: skillIds.length, maxLength: skillIds.length })
      .map((skills) => skills as [SkillResult, ...SkillResult[]]),
    advice: fc.option(
      fc.record({
        skill: fc.nat(skillIds.length - 1),
        code: fc.constantFrom(...adviceCodes),
        figures: fc.tuple(fc.nat(60_000)),
      }),
    ),
  }),
);

test('formatResult returns valid JSON of the response schema for any figures and skills', () => {
  forAll(figures, fc.boolean(), (values, listsSkills) => {
    const result: unknown = JSON.parse(formatResult(values, listsSkills));
    assert.ok(Value.Check(LearningEventResult, result), JSON.stringify(result));
    const [first] = values.skills;
    assert.equal(result.mastery_after, first.masteryAfter);
    assert.equal(result.total_attempts, first.attempts);
    assert.equal(result.plateau_detected, first.plateauDetected);
    const listed = listsSkills ? values.skillIds : undefined;
    assert.deepEqual(
      result.skills?.map(({ skill_id }) => skill_id),
      listed,
    );
    for (const [i, skill] of (result.skills ?? []).entries())
      assert.equal(skill.mastery_after, values.skills[i]?.masteryAfter);
    assert.equal(result.recommendation === null, values.advice === null);
    assert.equal(result.recommendation_code, values.advice?.code);
  });
});
