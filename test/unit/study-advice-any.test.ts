/** What holds of the advice to any learner. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { withNames } from '../../src/domain/advice/advice-texts.js';
import { computePracticeGain, computeReviewGain } from '../../src/domain/advice/practice-gain.js';
import {
  buildStudyAdvice,
  type StudyAdvice,
  type StudyContext,
} from '../../src/domain/advice/study-advice.js';
import { dayMs } from '../../src/domain/base/common.js';
import { findPlacement } from '../../src/domain/catalogue/catalogue.js';
import { buildUnseenView } from '../../src/domain/learner/skill-view.js';
import type { SkillState } from '../../src/domain/tracing/learner-states.js';
import { between } from '../support/builders/arbitraries.js';
import { mastered, modelWith, now, practised, studyContext, viewsOf } from '../support/builders/study.js';

/** Few of them, so that learners and catalogues share some; names may be anything. */
const anyId = fc.oneof(
  fc.integer({ min: 0, max: 30 }).map((n) => `skill-${n}`),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 128, size: 'max' }),
);
const anyName = fc.option(fc.string({ unit: 'binary', minLength: 1, maxLength: 300, size: 'max' }));
const anySection = fc.constantFrom('math', 'rw', null);

const troubledState: fc.Arbitrary<SkillState> = fc
  .record({
    mastery: between(0.001, 0.999),
    attempts: fc.integer({ min: 1, max: 30 }),
    idleDays: fc.oneof(fc.constant(0), between(-1, 400)),
    correctDays: fc.integer({ min: 0, max: 9 }),
    run: fc.constantFrom(0, 0, 0, 3),
    bias: fc.constantFrom(0, 0, 46, -46),
    recent: fc.constantFrom(0, 0, 0b11_1111),
    timed: fc.integer({ min: 0, max: 20 }),
    seconds: between(1, 3600),
    slowness: between(-1.5, 1.5),
    accuracy: between(0, 1),
  })
  .map((any) => ({
    ...practised,
    mastery: any.mastery,
    attempts: any.attempts,
    lastAttemptAt: now - any.idleDays * dayMs,
    correctDays: any.correctDays,
    plateau: {
      ...practised.plateau,
      attempts: any.attempts,
      sum: 0.9 * Math.min(any.attempts, 8),
      run: any.run,
    },
    calibration: { answers: 10, biasTenths: any.bias, squaredHundredths: 300 },
    rapid: { answers: 9, recent: any.recent, recentTimed: 20 },
    pace: {
      timed: any.timed,
      timedCorrect: 0,
      seconds: any.timed * any.seconds,
      slowness: any.slowness,
      accuracy: any.accuracy,
    },
  }));

const calmState: fc.Arbitrary<SkillState> = fc
  .record({
    base: fc.constantFrom(practised, mastered),
    idleDays: fc.oneof(fc.constant(0), between(0, 2)),
    attempts: fc.integer({ min: 1, max: 9 }),
  })
  .map(({ base, idleDays, attempts }) => ({ ...base, lastAttemptAt: now - idleDays * dayMs, attempts }));

/** Of up to so many skills: short lists show what long ones leave out. */
const listed = <T>(one: fc.Arbitrary<T>): fc.Arbitrary<Record<string, T>> =>
  fc
    .constantFrom(1, 4, 40)
    .chain((maxKeys) => fc.dictionary(anyId, one, { maxKeys, size: 'max', noNullPrototype: true }));

const anyContext: fc.Arbitrary<StudyContext> = fc
  .record({
    states: fc.boolean().chain((calm) => listed(calm ? calmState : troubledState)),
    entries: listed(
      fc.record({ name: anyName, section: anySection, weight: fc.oneof(fc.constant(1), between(0.1, 10)) }),
    ),
    others: fc.nat({ max: 20 }),
    math: fc.nat({ max: 60 }),
    rw: fc.nat({ max: 60 }),
    goal: fc.record({
      targetScore: fc.integer({ min: 40, max: 160 }).map((tens) => 10 * tens),
      targetDate: fc.option(fc.constant('2026-06-01')),
      neededRate: fc.option(fc.constantFrom(1, 2, 5, 10, 20, 40)),
      isSet: fc.boolean(),
      onTrack: fc.boolean(),
      isLost: fc.boolean(),
    }),
  })
  .map(({ states, entries, others, math, rw, goal }) => {
    const model = modelWith(entries);
    const views = viewsOf(states, model);
    const knownSkills = new Set([...Object.keys(states), ...Object.keys(entries)]).size + others;
    return studyContext({ views, model, knownSkills, answers: { math, rw }, goal });
  });

test('at most five, one for each skill, in well-formed sentences of at most 200 characters', () => {
  fc.assert(
    fc.property(anyContext, (context) => {
      const advice = buildStudyAdvice(context);
      assert.ok(advice.length <= 5);
      const skills = advice.flatMap(({ skillId }) => skillId ?? []);
      assert.equal(new Set(skills).size, skills.length);
      for (const { text } of advice) {
        assert.ok(text.length <= 200 && text.isWellFormed() && text.endsWith('.'), text);
      }
    }),
  );
});

test('the same in whatever order the skills were read', () => {
  const shuffled = anyContext.chain((context) =>
    fc
      .shuffledSubarray([...context.views], { minLength: context.views.length })
      .map((views) => [context, { ...context, views }] as const),
  );
  fc.assert(
    fc.property(shuffled, ([context, other]) => {
      assert.deepEqual(buildStudyAdvice(other), buildStudyAdvice(context));
    }),
  );
});

test('no points are told of a section with fewer than 20 answers', () => {
  fc.assert(
    fc.property(anyContext, (context) => {
      const { measures, model } = context;
      for (const { code, skillId, text } of buildStudyAdvice(context)) {
        if (!/ points? per hour/.test(text)) continue;
        assert.ok(code === 'WEAK_SKILL' && skillId !== null);
        const { section } = findPlacement(model.catalogue, skillId);
        assert.ok(section === 'rw' || measures.math.answers >= 20);
        assert.ok(section === 'math' || measures.rw.answers >= 20);
        assert.match(text, /about ([2-9]|[1-9]\d+) points|about 1 point /);
      }
    }),
  );
});

/** Points per hour of following an advice, worked out from the states again. */
function gainOf({ views, model, measures }: StudyContext, { code, skillId }: StudyAdvice): number {
  if (skillId === null) return Number.POSITIVE_INFINITY;
  const view = views.find((one) => one.skillId === skillId);
  if (view === undefined) {
    assert.equal(code, 'EXPLORE');
    return computePracticeGain(buildUnseenView(skillId, model, now), measures);
  }
  return code === 'REVIEW_DUE' ? computeReviewGain(view, measures) : computePracticeGain(view, measures);
}

test('learner and goal first, then by gain per hour, ties by skill id; one to explore in each section', () => {
  fc.assert(
    fc.property(anyContext, (context) => {
      const advice = buildStudyAdvice(context);
      const codes = advice.map(({ code }) => code);
      for (const [i, next] of advice.slice(1).entries()) {
        const last = advice[i] as StudyAdvice;
        const fall = gainOf(context, last) - gainOf(context, next);
        assert.ok(fall > 0 || (next.skillId ?? '') > (last.skillId ?? '') || codes[i] === 'NO_SECTION');
      }
      assert.ok(!codes.slice(1).includes('NO_SECTION') && !codes.slice(2).includes('GOAL_GAP'));
      assert.ok(codes.filter((code) => code === 'READY').length <= 1);
      const explored = advice.flatMap(({ code, skillId }) =>
        code === 'EXPLORE' && skillId !== null ? findPlacement(context.model.catalogue, skillId).section : [],
      );
      assert.ok(!explored.includes(null) && new Set(explored).size === explored.length);
    }),
  );
});

test('two names share the room of a text, and a short one leaves its rest to the other', () => {
  const text = (a: string, b: string) => `${a} ${b}`;
  const name = fc.string({ unit: 'binary', maxLength: 300, size: 'max' });
  fc.assert(
    fc.property(name, name, (first, second) => {
      const whole = withNames(text, first, second);
      assert.ok(whole.length <= 200 && whole.isWellFormed());
      if (first.length + second.length < 200) assert.equal(whole, text(first, second));
    }),
  );
  assert.equal(withNames(text, 'a'.repeat(300), 'b'.repeat(300)), `${'a'.repeat(98)}… ${'b'.repeat(99)}…`);
  assert.equal(withNames(text, 'a', 'b'.repeat(300)), `a ${'b'.repeat(197)}…`);
  assert.equal(withNames(text, 'a'.repeat(300), 'b'), `${'a'.repeat(197)}… b`);
});
