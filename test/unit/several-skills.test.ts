/** Questions that need several skills: mastery, features, counts and advice. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Advice, selectAnswerAdvice } from '../../src/domain/advice/answer-advice.js';
import { computeConditions } from '../../src/domain/answer/answer-conditions.js';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { clamp, mapNonEmpty, type NonEmpty } from '../../src/domain/base/common.js';
import { findQuestionPlacement } from '../../src/domain/catalogue/catalogue.js';
import { resolveQuestionModel, unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import {
  predictCorrect,
  predictSkills,
  type SkillMastery,
  shiftGuessSlip,
  traceAnswer,
  traceQuestion,
} from '../../src/domain/tracing/bkt.js';
import { combineIds, hashQuestionKeys } from '../../src/domain/tracing/course.js';
import { newSkill, type SkillState } from '../../src/domain/tracing/learner-states.js';
import { combineSkills, newSkillTrace, type SkillRecord } from '../../src/domain/tracing/traces.js';
import { createLearner } from '../support/builders/answers.js';
import {
  anyAnswer,
  anyParameters,
  between,
  listOf,
  rounding,
  upTo,
} from '../support/builders/arbitraries.js';
import { fc, forAll, forRuns } from '../support/builders/properties.js';
import { modelWith, over, rapid } from '../support/builders/study.js';

const anySkill: fc.Arbitrary<SkillMastery> = fc.record({
  parameters: anyParameters,
  mastery: between(0, 1),
});
const anySkills = listOf(anySkill);
const anyShift = fc.oneof(fc.constant(0), between(-1, 1));
const inBounds = (mastery: number): number => clamp(mastery, 0.001, 0.999);

test('traceQuestion returns the bits of traceAnswer for one skill', () => {
  forRuns(2000, anySkill, fc.boolean(), anyShift, (skill, isCorrect, shift) => {
    const { parameters, mastery } = skill;
    assert.deepEqual(traceQuestion([skill], isCorrect, shift), [
      traceAnswer(parameters, mastery, isCorrect, shift),
    ]);
    const predicted = predictCorrect(mastery, shiftGuessSlip(parameters, shift));
    assert.equal(predictSkills([skill], shift), predicted);
  });
});

test('traceQuestion never lowers a skill after a right answer, and never raises one after a wrong answer', () => {
  forRuns(2000, listOf(anySkill, 10), fc.boolean(), anyShift, (skills, isCorrect, shift) => {
    for (const [i, { masteryAfter, posterior }] of traceQuestion(skills, isCorrect, shift).entries()) {
      const before = inBounds(skills[i]?.mastery as number);
      assert.ok(isCorrect ? masteryAfter >= before : masteryAfter <= before, `skill ${i}: ${masteryAfter}`);
      assert.ok(isCorrect ? posterior >= before - rounding : posterior <= before + rounding);
    }
  });
});

/** Posterior of each skill from the joint probabilities of all combinations of mastered skills. */
function computePosteriors(skills: NonEmpty<SkillMastery>, isCorrect: boolean, shift: number): number[] {
  const sums = skills.map(() => 0);
  let total = 0;
  for (let mastered = 0; mastered < 2 ** skills.length; mastered++) {
    let [prior, success] = [1, 1];
    for (const [i, { parameters, mastery }] of skills.entries()) {
      const { pGuess, pSlip } = shiftGuessSlip(parameters, shift);
      const isMastered = (mastered >> i) % 2 === 1;
      prior *= isMastered ? inBounds(mastery) : 1 - inBounds(mastery);
      success *= isMastered ? 1 - pSlip : pGuess;
    }
    const joint = prior * (isCorrect ? success : 1 - success);
    total += joint;
    for (let i = 0; i < skills.length; i++) if ((mastered >> i) % 2 === 1) sums[i] = (sums[i] ?? 0) + joint;
  }
  return sums.map((sum) => sum / total);
}

test('traceQuestion returns the exact posterior of each skill', () => {
  forRuns(2000, anySkills, fc.boolean(), anyShift, (skills, isCorrect, shift) => {
    const expected = computePosteriors(skills, isCorrect, shift);
    for (const [i, { posterior }] of traceQuestion(skills, isCorrect, shift).entries())
      assert.ok(Math.abs(posterior - (expected[i] as number)) < 1e-9, `${posterior}, not ${expected[i]}`);
  });
});

test('traceQuestion does not depend on the order of the skills', () => {
  forAll(listOf(anySkill, 6, 2), fc.boolean(), fc.nat(), (skills, isCorrect, turn) => {
    const first = turn % skills.length;
    const turned = [...skills.slice(first), ...skills.slice(0, first)] as [SkillMastery, ...SkillMastery[]];
    const steps = traceQuestion(skills, isCorrect);
    for (const [i, { masteryAfter }] of traceQuestion(turned, isCorrect).entries()) {
      const same = steps[(i + first) % skills.length]?.masteryAfter as number;
      assert.ok(Math.abs(masteryAfter - same) <= rounding);
    }
    assert.ok(Math.abs(predictSkills(skills, 0) - predictSkills(turned, 0)) <= rounding);
  });
});

test('A wrong answer costs a strong skill little if the other skill is weak', () => {
  const trace = (masteries: NonEmpty<number>): number[] =>
    traceQuestion(
      mapNonEmpty(masteries, (mastery) => ({ parameters: defaultParameters, mastery })),
      false,
    ).map(({ masteryAfter }) => masteryAfter);
  const [alone = 0] = trace([0.95]);
  const [strong = 0, weak = 0] = trace([0.95, 0.1]);
  assert.ok(0.95 - alone > 0.2, `${alone}`);
  assert.ok(0.95 - strong < 0.02, `${strong}`);
  assert.ok(weak <= 0.1);
  const [asStrong = 0] = trace([0.95, 0.95]);
  assert.ok(alone < asStrong && asStrong < strong, 'two strong skills share the blame');
});

test('The blame of a skill falls as another skill gets weaker, and the credit of a right answer is the same', () => {
  forAll(anySkill, anySkill, between(0, 1), fc.boolean(), (skill, other, mastery, isCorrect) => {
    const [low, high] = [Math.min(mastery, other.mastery), Math.max(mastery, other.mastery)];
    const trace = (otherMastery: number) =>
      traceQuestion([skill, { ...other, mastery: otherMastery }], isCorrect)[0].posterior;
    const alone = traceQuestion([skill], isCorrect)[0].posterior;
    if (isCorrect) assert.ok(Math.abs(trace(low) - alone) <= rounding);
    else assert.ok(trace(low) >= trace(high) - rounding && trace(high) >= alone - rounding);
  });
});

const anyRecord: fc.Arbitrary<SkillRecord> = fc
  .record({ attempts: fc.nat(500), share: between(0, 1), lastAnswerNumber: fc.nat(5000), run: fc.nat(9) })
  .chain(({ attempts, share, lastAnswerNumber, run }) =>
    fc.record({
      attempts: fc.constant(attempts),
      correct: fc.constant(Math.floor(share * attempts)),
      trace: fc.record(
        {
          residual: between(-2, 2),
          lastAnswerNumber: fc.constant(lastAnswerNumber),
          lastRightNumber: fc.constant(Math.max(0, lastAnswerNumber - run)),
          lastRightAt: fc.nat(2 ** 31),
          streak: fc.integer({ min: -5, max: 5 }),
        },
        { noNullPrototype: true },
      ),
    }),
  )
  .map((record) => ({ ...record }));

test('combineSkills returns the record of one skill, and of equal skills their record', () => {
  forAll(anyRecord, fc.integer({ min: 2, max: 10 }), (record, count) => {
    assert.equal(combineSkills([record]), record);
    const combined = combineSkills([record, ...new Array<SkillRecord>(count - 1).fill(record)]);
    const { residual } = combined.trace;
    assert.ok(Math.abs(residual - record.trace.residual) <= rounding);
    assert.deepEqual({ ...combined, trace: { ...combined.trace, residual: record.trace.residual } }, record);
  });
});

test('combineSkills returns values between those of the skills, in any order', () => {
  forAll(listOf(anyRecord, 10), (records) => {
    const combined = combineSkills(records);
    const reversed = combineSkills(records.toReversed() as [SkillRecord, ...SkillRecord[]]);
    assert.ok(Number.isInteger(combined.attempts) && Number.isInteger(combined.correct));
    assert.ok(combined.correct <= combined.attempts);
    const figures = ({ attempts, correct, trace }: SkillRecord) => ({ attempts, correct, ...trace });
    for (const [name, value] of Object.entries(figures(combined))) {
      const all = records.map((record) => figures(record)[name as keyof typeof newSkillTrace]);
      const slack = name === 'residual' ? rounding : 0;
      assert.ok(value >= Math.min(...all) - slack && value <= Math.max(...all) + slack, name);
      assert.ok(Math.abs(value - figures(reversed)[name as keyof typeof newSkillTrace]) <= slack, name);
    }
  });
  assert.deepEqual(combineSkills([newSkill(defaultParameters), newSkill(defaultParameters)]), {
    ...{ attempts: 0, correct: 0, trace: newSkillTrace },
  });
});

test('A combination of skills has the same key in any order, and another one than its skills', () => {
  assert.equal(combineIds(['b', 'a', 'c']), combineIds(['c', 'b', 'a']));
  const keyOf = (...ids: [string, ...string[]]) => hashQuestionKeys(ids, 'item').skill;
  assert.equal(keyOf('a', 'b'), keyOf('b', 'a'));
  assert.equal(new Set([keyOf('a'), keyOf('b'), keyOf('a', 'b'), keyOf('a b'), keyOf('ab')]).size, 5);
});

const asked = listOf(fc.constantFrom('a', 'b', 'c', 'd', 'e'), 5).map(
  (ids) => [...new Set(ids)] as [string, ...string[]],
);

test('An answer counts once for the learner, and once for each of its skills', () => {
  forAll(upTo(40, fc.tuple(asked, fc.constantFrom(null, 'i', 'j'), anyAnswer)), (answers) => {
    const learner = createLearner();
    const counts = new Map<string, number>();
    const items = new Set<string>();
    for (const [ids, itemId, answer] of answers) {
      learner.answer(ids, itemId, answer);
      for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1);
      if (itemId !== null) items.add(itemId);
    }
    const { attempts, trace } = learner.state();
    assert.deepEqual([attempts, trace.right + trace.wrong], [answers.length, answers.length]);
    assert.deepEqual(new Map([...learner.skills].map(([id, state]) => [id, state.attempts])), counts);
    assert.equal(learner.state().items.size, items.size);
  });
});

test('A learner has the same states if the skills of each question are in another order', () => {
  forRuns(50, upTo(20, fc.tuple(asked, anyAnswer)), (answers) => {
    const [one, other] = [createLearner(), createLearner()];
    for (const [ids, answer] of answers) {
      one.answer(ids, null, answer);
      other.answer(ids.toReversed() as [string, ...string[]], null, answer);
    }
    assert.equal(one.state().attempts, other.state().attempts);
    assert.deepEqual(one.state().trace.course.skills, other.state().trace.course.skills);
    for (const [id, { mastery, trace }] of one.skills) {
      assert.ok(Math.abs(mastery - (other.skills.get(id)?.mastery ?? 0)) < 1e-9, id);
      assert.equal(trace.streak, other.skills.get(id)?.trace.streak);
    }
  });
});

test('resolveQuestionModel returns the terms of a fitted combination, else the mean of its skills', () => {
  const skill = resolveQuestionModel(unfittedModel, ['a']).skills[0];
  const term = (value: number) => ({
    ...{ difficultyMean: value, abilityOffset: 2 * value, related: skill.related },
    ...{ terms: skill.terms.map((_, i) => value + i), times: { ...skill.times, answers: 10 * value } },
  });
  const fitted = {
    ...unfittedModel,
    skills: new Map([1, 2].map((value) => [`s${value}`, { ...skill, ...term(value) }])),
    combinations: new Map([[combineIds(['s1', 'other']), term(7)]]),
  };
  const { combined: mean } = resolveQuestionModel(fitted, ['s1', 's2']);
  assert.deepEqual([mean.difficultyMean, mean.abilityOffset, mean.times.answers], [1.5, 3, 20]);
  assert.deepEqual(
    mean.terms,
    skill.terms.map((_, i) => 1.5 + i),
  );
  const { combined: own, skills } = resolveQuestionModel(fitted, ['other', 's1']);
  assert.deepEqual([own.difficultyMean, skills.length], [7, 2]);
  assert.deepEqual(own.terms, term(7).terms);
});

test('A question has the section that all its skills have, and the weight of the first', () => {
  const { catalogue } = modelWith({
    ...{ a: { section: 'math', weight: 2 }, b: { section: 'math', weight: 3 } },
    c: { section: 'rw', weight: 4 },
  });
  const placementOf = (...ids: [string, ...string[]]) => {
    const { section, weight } = findQuestionPlacement(catalogue, ids);
    return [section, weight];
  };
  assert.deepEqual(placementOf('a', 'b'), ['math', 2]);
  assert.deepEqual(placementOf('b', 'a', 'c'), [null, 3]);
  assert.deepEqual(
    [placementOf('c', 'unset'), placementOf('unset')],
    [
      [null, 4],
      [null, 1],
    ],
  );
});

test('computeConditions limits the shift for the difficulty to that of every skill', () => {
  forAll(anyParameters, anyParameters, between(-3, 3), (one, other, questionDifficulty) => {
    const model = modelWith({ a: { parameters: one }, b: { parameters: other } });
    const learner = createLearner(model);
    const shiftOf = (...ids: [string, ...string[]]): number => {
      const question = { occurredAt: 0, questionDifficulty };
      return computeConditions(model, ids, null, learner.statesOf(ids, null), question).difficultyShift;
    };
    const least = Math.min(Math.abs(shiftOf('a')), Math.abs(shiftOf('b')));
    assert.equal(Math.abs(shiftOf('a', 'b')), least);
    assert.equal(shiftOf('b', 'a'), shiftOf('a', 'b'));
  });
});

const skillWith = (state: Partial<SkillState>): SkillState => ({ ...newSkill(defaultParameters), ...state });

test('selectAnswerAdvice names the skill whose condition is most urgent, the first of equal ones', () => {
  const calm = skillWith({ mastery: 0.9, attempts: 20 });
  const adviseAll = (after: NonEmpty<SkillState>): Advice | null => {
    const before = mapNonEmpty(after, () => calm);
    const masteriesBefore = mapNonEmpty(after, () => 0.9);
    const answer = { occurredAt: 0 };
    return selectAnswerAdvice({ skills: before }, { skills: after, masteriesBefore }, answer, {
      rapidSeconds: 6,
    });
  };
  const [isRapid, isOver] = [
    { ...calm, ...rapid },
    { ...calm, ...over },
  ];
  assert.equal(adviseAll([calm, calm, calm]), null);
  assert.deepEqual([adviseAll([calm, isRapid])?.skill, adviseAll([calm, isRapid])?.code], [1, 'RAPID']);
  assert.deepEqual(
    [adviseAll([isRapid, calm, isOver])?.skill, adviseAll([isRapid, calm, isOver])?.code],
    [2, 'OVERCONFIDENT'],
  );
  assert.equal(adviseAll([isRapid, isRapid])?.skill, 0);
});
