/** The recommendation of a track response, and the texts of all advice. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { adviceTexts, locales, withNames } from '../../src/domain/advice/advice-texts.js';
import {
  type Advice,
  adviceCodes,
  formatAdvice,
  selectAnswerAdvice,
} from '../../src/domain/advice/answer-advice.js';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { dayMs } from '../../src/domain/base/common.js';
import { newSkill, type SkillState } from '../../src/domain/tracing/learner-states.js';
import { fc, forAll } from '../support/builders/properties.js';
import { over, rapid, under } from '../support/builders/study.js';

const skill = (state: Partial<SkillState>): SkillState => ({ ...newSkill(defaultParameters), ...state });

const start = { occurredAt: 100 * dayMs };

/** Advice on an answer at the start of day 100, with a rapid threshold of 6.2 s. */
const advise = (before: SkillState, after: SkillState, masteryBefore = before.mastery): Advice | null =>
  selectAnswerAdvice({ skills: [before] }, { skills: [after], masteriesBefore: [masteryBefore] }, start, {
    rapidSeconds: 6.2,
  });

const calm = skill({ mastery: 0.9, attempts: 20, lastAttemptAt: 40 * dayMs });
const plateau = (attempts: number, run: number) => ({
  plateau: { attempts, sum: 3, timeSum: 0, squareSum: 1, run },
});
const mastered = { mastery: 0.97, ready: true };

test('selectAnswerAdvice returns advice only on the answer that starts its condition', () => {
  const cases: readonly [before: SkillState, after: SkillState, advice: Advice][] = [
    [skill(plateau(13, 2)), skill(plateau(14, 3)), { skill: 0, code: 'PLATEAU', figures: [14] }],
    [skill(plateau(59, 2)), skill(plateau(60, 3)), { skill: 0, code: 'PLATEAU', figures: [20] }],
    [calm, { ...calm, ...over }, { skill: 0, code: 'OVERCONFIDENT', figures: [46] }],
    [calm, { ...calm, ...under }, { skill: 0, code: 'UNDERCONFIDENT', figures: [] }],
    [calm, { ...calm, ...rapid }, { skill: 0, code: 'RAPID', figures: [7] }],
    [calm, { ...calm, ...mastered }, { skill: 0, code: 'READY', figures: [] }],
  ];
  for (const [before, after, advice] of cases) {
    assert.deepEqual(advise(before, after), advice);
    assert.equal(advise(after, structuredClone(after)), null, advice.code);
    assert.equal(advise(after, before), null, advice.code);
  }
});

test('selectAnswerAdvice advises a review when a strong skill has lost 30 % of its mastery', () => {
  assert.deepEqual(advise(calm, calm, 0.63), { skill: 0, code: 'REVIEW_DUE', figures: [60] });
  assert.equal(advise(calm, calm, 0.64), null);
  const weak = { ...calm, mastery: 0.79 };
  assert.equal(advise(weak, weak, 0.4), null);
  const old = { ...calm, lastAttemptAt: -1e6 * dayMs };
  assert.deepEqual(advise(old, old, 0.5)?.figures, [65_534]);
});

test('selectAnswerAdvice returns the most urgent of several conditions', () => {
  const started = [plateau(14, 3), over, rapid];
  const codes = started.map((_, i) => {
    const after = skill(Object.assign({ mastery: 0.5 }, ...started.slice(i)));
    return advise(calm, after, 0.5)?.code;
  });
  assert.deepEqual(codes, ['PLATEAU', 'OVERCONFIDENT', 'RAPID']);
  const ready = { ...calm, ...mastered, ...under };
  assert.equal(advise(calm, ready, 0.5)?.code, 'REVIEW_DUE');
  assert.equal(advise(calm, ready)?.code, 'UNDERCONFIDENT');
});

test('formatAdvice returns a well-formed sentence of at most 200 characters for any skill id', () => {
  const anyAdvice: fc.Arbitrary<Advice> = fc.record({
    skill: fc.constant(0),
    code: fc.constantFrom(...adviceCodes),
    figures: fc.tuple(fc.integer({ min: 0, max: 65_534 })),
  });
  const id = fc.string({ unit: 'binary', maxLength: 300, size: 'max' });
  forAll(anyAdvice, id, (advice, skillId) => {
    const text = formatAdvice(advice, skillId);
    assert.ok(text.length <= 200 && text.isWellFormed() && text.endsWith('.'), text);
  });
});

test('formatAdvice cuts an id that is too long, between characters', () => {
  const review: Advice = { skill: 0, code: 'REVIEW_DUE', figures: [60] };
  const whole = 'Review algebra: it was strong but had not been practised for 60 days.';
  assert.equal(formatAdvice(review, 'algebra'), whole);
  const room = 200 - formatAdvice(review, '').length;
  const x = (count: number): string => 'x'.repeat(count);
  for (const [id, shown] of [
    [x(room), x(room)],
    [x(room + 1), `${x(room - 1)}…`],
    [`${x(room - 2)}😀😀`, `${x(room - 2)}…`],
  ] as const)
    assert.ok(formatAdvice(review, id).startsWith(`Review ${shown}:`), formatAdvice(review, id));
});

test('withNames shares the room between two names and gives the rest of a short one to the other', () => {
  const text = (a: string, b: string) => `${a} ${b}`;
  const name = fc.string({ unit: 'binary', maxLength: 300, size: 'max' });
  forAll(name, name, (first, second) => {
    const whole = withNames(text, first, second);
    assert.ok(whole.length <= 200 && whole.isWellFormed());
    if (first.length + second.length < 200) assert.equal(whole, text(first, second));
  });
  const [a, b] = ['a'.repeat(300), 'b'.repeat(300)];
  assert.equal(withNames(text, a, b), `${'a'.repeat(98)}… ${'b'.repeat(99)}…`);
  assert.equal(withNames(text, 'a', b), `a ${'b'.repeat(197)}…`);
  assert.equal(withNames(text, a, 'b'), `${'a'.repeat(197)}… b`);
});

test('Advice texts of every locale leave 60 characters to names, and fit without names', () => {
  const largest = 65_534;
  for (const locale of locales) {
    const { answer, study } = adviceTexts[locale];
    const named = [answer, study].flatMap((of) => [
      ...[of.PLATEAU('', largest), of.OVERCONFIDENT('', largest), of.RAPID('', largest)],
      ...[of.REVIEW_DUE('', largest), of.UNDERCONFIDENT(''), of.READY('', '')],
    ]);
    for (const isTop of [true, false])
      for (const points of [null, largest])
        named.push(study.WEAK_SKILL('', { section: 'rw', isTop, points }));
    for (const text of [...named, study.SLOW(''), study.EXPLORE('', 'rw')])
      assert.ok(text.length <= 140 && text.endsWith('.'), text);
    const goal = { targetScore: 1600, targetDate: '2026-06-01', neededRate: largest, isLost: true };
    const goals = (['at_risk', 'expired'] as const).map((status) => ({
      ...goal,
      status,
      gap: 1200,
    }));
    const sections = [study.NO_SECTION('math', 'rw'), study.NO_SECTION('rw', 'math')];
    for (const text of [...sections, ...goals.map(study.GOAL_GAP)])
      assert.ok(text.length <= 200 && text.endsWith('.'), text);
  }
});
