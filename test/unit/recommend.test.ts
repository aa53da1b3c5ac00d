import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type Advice,
  adviceCodes,
  formatAdvice,
  selectAnswerAdvice,
} from '../../src/domain/advice/answer-advice.js';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { dayMs } from '../../src/domain/base/common.js';
import { newSkill, type SkillState } from '../../src/domain/tracing/learner-states.js';

const skill = (state: Partial<SkillState>): SkillState => ({ ...newSkill(defaultParameters), ...state });

/** Advice on an answer at the start of day 100, under a rapid threshold of 6.2 s. */
const advise = (before: SkillState, after: SkillState, masteryBefore = before.mastery): Advice | null =>
  selectAnswerAdvice(
    before,
    { skill: after, masteryBefore },
    { occurredAt: 100 * dayMs },
    { rapidSeconds: 6.2 },
  );

const calm = skill({ mastery: 0.9, attempts: 20, lastAttemptAt: 40 * dayMs });
const plateau = (attempts: number, run: number) => ({
  plateau: { attempts, sum: 3, timeSum: 0, squareSum: 1, run },
});
const over = { calibration: { answers: 10, biasTenths: 46, squaredHundredths: 300 } };
const under = { calibration: { answers: 10, biasTenths: -46, squaredHundredths: 300 } };
const rapid = { rapid: { answers: 9, recent: 0b11_1111, recentTimed: 20 } };
const mastered = { mastery: 0.97, ready: true };

const cases: readonly [what: string, before: SkillState, after: SkillState, advice: Advice][] = [
  ['a plateau', skill(plateau(13, 2)), skill(plateau(14, 3)), { code: 'PLATEAU', figures: [14] }],
  ['a late plateau', skill(plateau(59, 2)), skill(plateau(60, 3)), { code: 'PLATEAU', figures: [20] }],
  ['confidence ahead', calm, { ...calm, ...over }, { code: 'OVERCONFIDENT', figures: [46] }],
  ['confidence behind', calm, { ...calm, ...under }, { code: 'UNDERCONFIDENT', figures: [] }],
  ['rapid answers', calm, { ...calm, ...rapid }, { code: 'RAPID', figures: [7] }],
  ['mastery', calm, { ...calm, ...mastered }, { code: 'READY', figures: [] }],
];

for (const [what, before, after, advice] of cases) {
  test(`advice when it starts, and only then: ${what}`, () => {
    assert.deepEqual(advise(before, after), advice);
    assert.equal(advise(after, structuredClone(after)), null);
    assert.equal(advise(after, before), null);
  });
}

test('advice to review on the return to a strong skill that lost 30 % of its mastery', () => {
  assert.deepEqual(advise(calm, calm, 0.63), { code: 'REVIEW_DUE', figures: [60] });
  assert.equal(advise(calm, calm, 0.64), null);
  const weak = { ...calm, mastery: 0.79 };
  assert.equal(advise(weak, weak, 0.4), null);
  const old = { ...calm, lastAttemptAt: -1e6 * dayMs };
  assert.deepEqual(advise(old, old, 0.5)?.figures, [65_534]);
});

test('of several the most urgent', () => {
  const started = [plateau(14, 3), over, rapid];
  const told = started.map((_, i) => {
    const after = skill(Object.assign({ mastery: 0.5 }, ...started.slice(i)));
    return advise(calm, after, 0.5)?.code;
  });
  assert.deepEqual(told, ['PLATEAU', 'OVERCONFIDENT', 'RAPID']);
  const ready = { ...calm, ...mastered, ...under };
  assert.equal(advise(calm, ready, 0.5)?.code, 'REVIEW_DUE');
  assert.equal(advise(calm, ready)?.code, 'UNDERCONFIDENT');
});

const anyAdvice: fc.Arbitrary<Advice> = fc.record({
  code: fc.constantFrom(...adviceCodes),
  figures: fc.tuple(fc.integer({ min: 0, max: 65_534 })),
});

test('a text has at most 200 characters and ends well, whatever the skill id', () => {
  const id = fc.string({ unit: 'binary', maxLength: 300, size: 'max' });
  fc.assert(
    fc.property(anyAdvice, id, (advice, skillId) => {
      const text = formatAdvice(advice, skillId);
      assert.ok(text.length <= 200 && text.isWellFormed());
      assert.ok(text.endsWith('.'));
    }),
  );
});

test('a text holds the whole id where there is room, else its start and an ellipsis', () => {
  const review: Advice = { code: 'REVIEW_DUE', figures: [60] };
  assert.equal(
    formatAdvice(review, 'algebra'),
    'Review algebra: it was strong but had not been practised for 60 days.',
  );
  const room = 200 - formatAdvice(review, '').length;
  assert.ok(formatAdvice(review, 'x'.repeat(room)).startsWith(`Review ${'x'.repeat(room)}:`));
  assert.ok(formatAdvice(review, 'x'.repeat(room + 1)).startsWith(`Review ${'x'.repeat(room - 1)}…:`));
  assert.ok(
    formatAdvice(review, `${'x'.repeat(room - 2)}😀😀`).startsWith(`Review ${'x'.repeat(room - 2)}…:`),
  );
});
