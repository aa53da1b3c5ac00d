/** Explanations: the parts of a change of mastery, and the sentences of the terms of a prediction. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultParameters, difficultyConstants } from '../../src/domain/base/bkt-parameters.js';
import { dayMs, round4 } from '../../src/domain/base/common.js';
import {
  type CountedAnswer,
  predictNextMastery,
  splitMasteryChange,
} from '../../src/domain/learner/explanation.js';
import {
  features,
  findColumn,
  patternColumn,
  rowWidth,
  runColumn,
  streakColumn,
} from '../../src/domain/prediction/features.js';
import type { Term } from '../../src/domain/prediction/prediction-model.js';
import { formatTerm } from '../../src/domain/prediction/term-texts.js';
import {
  computeDifficultyShift,
  computeEffectiveMastery,
  traceAnswer,
  traceQuestion,
} from '../../src/domain/tracing/bkt.js';
import { encodeItemPattern, newItemTrace } from '../../src/domain/tracing/traces.js';
import { anyParameters, between } from '../support/builders/arbitraries.js';
import { fc, forAll } from '../support/builders/properties.js';

type StepParts = ReturnType<typeof splitMasteryChange>;

const anyAnswer = fc.record({
  parameters: anyParameters,
  isCorrect: fc.boolean(),
  difficulty: between(-3, 3),
  idleDays: between(0, 400),
  others: fc.array(fc.record({ parameters: anyParameters, mastery: between(0.001, 0.999) }), {
    maxLength: 3,
  }),
});
type TracedAnswer = typeof anyAnswer extends fc.Arbitrary<infer One> ? One : never;

function traceAll(list: readonly TracedAnswer[]): CountedAnswer[] {
  let skill = { mastery: 0, attempts: 0, correctDays: 0, lastAttemptAt: 0 };
  return list.map(({ parameters, isCorrect, difficulty, idleDays, others }, i) => {
    const now = skill.lastAttemptAt + idleDays * dayMs;
    const masteryBefore = computeEffectiveMastery(parameters.pInit, skill, now);
    const shift = computeDifficultyShift(parameters, difficulty, difficultyConstants.scale);
    const [{ masteryAfter }] = traceQuestion(
      [{ parameters, mastery: masteryBefore }, ...others],
      isCorrect,
      shift,
    );
    skill = { mastery: masteryAfter, attempts: i + 1, correctDays: i + 1, lastAttemptAt: now };
    return { isCorrect, parameters, difficultyShift: shift, masteryBefore, masteryAfter, others };
  });
}

/** A value in ten-thousandths. Fails if it has more than four decimals. */
function tenThousandths(value: number | null): number {
  assert.ok(value !== null);
  const whole = Math.round(value * 1e4);
  assert.equal(whole / 1e4, value);
  return whole;
}

const sumOf = ({ previous, forgetting, evidence, learning }: StepParts): number =>
  [previous, forgetting, evidence, learning].reduce<number>((sum, part) => sum + tenThousandths(part), 0);

test('splitMasteryChange returns parts that add up and start where the previous answer ended', () => {
  forAll(fc.array(anyAnswer, { minLength: 1, maxLength: 30 }), (list) => {
    let previous = (list[0] as TracedAnswer).parameters.pInit;
    let shown = round4(previous);
    for (const answer of traceAll(list)) {
      const parts = splitMasteryChange(answer, previous);
      assert.equal(sumOf(parts), tenThousandths(parts.after));
      assert.equal(parts.previous, shown);
      assert.ok(tenThousandths(parts.forgetting) <= 0);
      const evidence = tenThousandths(parts.evidence);
      assert.ok(answer.isCorrect ? evidence >= 0 : evidence <= 0);
      previous = answer.masteryAfter;
      shown = parts.after;
    }
  });
});

const firstRight = { parameters: defaultParameters, isCorrect: true, difficulty: 0, idleDays: 0, others: [] };
const [first] = traceAll([firstRight]) as [CountedAnswer];

test('splitMasteryChange gives the parts of the first right answer under the defaults', () => {
  // The odds .3/.7 times .9/.2 are 1.928571, a posterior of .658537. Learning adds a tenth of the rest: .692683.
  assert.deepEqual(splitMasteryChange(first, 0.3), {
    ...{ previous: 0.3, before: 0.3, posterior: 0.6585, after: 0.6927 },
    ...{ forgetting: 0, evidence: 0.3585, learning: 0.0342 },
  });
});

test('splitMasteryChange blames a wrong answer less on a strong skill next to a weak one', () => {
  const split = (mastery: number, others: CountedAnswer['others']) => {
    const skills = [{ parameters: defaultParameters, mastery }, ...others] as const;
    const [{ masteryAfter }] = traceQuestion(skills, false);
    const answer = { ...first, isCorrect: false, masteryBefore: mastery, masteryAfter, others };
    return splitMasteryChange(answer, mastery).evidence ?? assert.fail('not reproduced');
  };
  const weak = { parameters: defaultParameters, mastery: 0.1 };
  assert.ok(split(0.9, [weak]) > split(0.9, []), 'a strong skill loses less next to a weak one');
});

test('splitMasteryChange returns null for parts that do not follow from the stored answer', () => {
  for (const change of [
    { masteryAfter: first.masteryAfter + 1e-8 },
    { isCorrect: false },
    { difficultyShift: 0.1 },
    { parameters: { ...defaultParameters, pGuess: 0.25 } },
  ]) {
    const { posterior, evidence, learning, forgetting } = splitMasteryChange({ ...first, ...change }, 0.3);
    assert.deepEqual([posterior, evidence, learning, forgetting], [null, null, null, 0]);
  }
  const near = splitMasteryChange({ ...first, masteryAfter: first.masteryAfter + 1e-10 }, 0.3);
  assert.ok(near.posterior !== null);
});

test('splitMasteryChange accepts forgetting towards the prior only', () => {
  const cases: readonly [before: number, previous: number | null, forgetting: number | null][] = [
    [0.6, 0.9, -0.3],
    [0.3, 0.9, -0.6],
    [0.1, 0.1, 0],
    [0.29, 0.9, null],
    [0.91, 0.9, null],
    [0.2, 0.1, null],
    [0.09, 0.1, null],
    [0.5, null, null],
  ];
  for (const [masteryBefore, previous, forgetting] of cases) {
    const { masteryAfter } = traceAnswer(defaultParameters, masteryBefore, true);
    const parts = splitMasteryChange({ ...first, masteryBefore, masteryAfter }, previous);
    assert.equal(parts.forgetting, forgetting, `${previous} to ${masteryBefore}`);
    assert.equal(parts.previous === null, forgetting === null);
    assert.ok(parts.evidence !== null);
  }
});

test('splitMasteryChange adds the effect of the guard and of the bounds to learning', () => {
  const split = (masteryBefore: number, isCorrect: boolean): StepParts => {
    const { masteryAfter } = traceAnswer(defaultParameters, masteryBefore, isCorrect);
    return splitMasteryChange({ ...first, isCorrect, masteryBefore, masteryAfter }, masteryBefore);
  };
  const guarded = split(0.05, false);
  assert.deepEqual([guarded.after, sumOf(guarded)], [0.05, 500]);
  const bounded = split(0.999, true);
  assert.deepEqual([bounded.after, bounded.learning], [0.999, -0.0008]);
});

test('predictNextMastery returns what traceAnswer would return', () => {
  forAll(anyParameters, between(0.001, 0.999), (skill, mastery) => {
    const next = predictNextMastery(skill, mastery);
    assert.ok(next.ifWrong <= mastery && mastery <= next.ifCorrect);
    assert.equal(next.ifCorrect, traceAnswer(skill, mastery, true).masteryAfter);
  });
});

const columns = new Map<string, number>([
  ...features.map(({ name }) => [name, findColumn(name)] as const),
  ...Object.entries({ itemRun: runColumn, streak: streakColumn, itemPattern: patternColumn }),
]);

test('formatTerm writes the value of a term and its direction in words', () => {
  const minutes = (count: number): number => Math.log1p(count);
  const pattern = (right: number, wrong: number, wrongBits: number, isLatest: boolean): number =>
    encodeItemPattern({ ...newItemTrace, right, wrong, wrongBits }, isLatest);
  const raised: readonly [name: Term['name'], value: number, text: string][] = [
    ['bkt', Math.log(3), 'Mastery of this skill alone predicts about 75% correct answers'],
    ['streak', 5, 'The last 5 or more answers on this skill were correct'],
    ['itemPattern', pattern(3, 2, 0b0100, true), 'Of the last 4 answers to this question, 3 were correct'],
    ['wrongAnswers', Math.fround(Math.log1p(12_345)), 'Across all skills, 12345 answers were incorrect'],
    ['timeSinceRight', minutes(0.5), 'The last correct answer on any skill was less than a minute ago'],
    ['timeSinceRightOnSkill', minutes(1), 'The last correct answer on this skill was 1 minute ago'],
    ['itemTime', minutes(300), 'This question was last answered 5 hours ago'],
    ['itemTimeIfRight', minutes(3 * 1440), 'The last answer to this question was correct, 3 days ago'],
    ['lastRightByTime', 1 / (1 + minutes(10)), 'The last answer on this skill was correct, 10 minutes ago'],
    [
      'lastRightByAnswers',
      1 / 3,
      'The last answer on this skill was correct, followed by 2 answers on other skills',
    ],
  ];
  const textOf = (name: Term['name'], logits: number, value = 0): string => {
    const row = new Float64Array(rowWidth);
    const column = columns.get(name);
    if (column !== undefined) row[column] = value;
    return formatTerm({ name, logits }, row);
  };
  for (const [name, value, text] of raised)
    assert.equal(textOf(name, 0.00005, value), `${text}: this raises the chance.`);
  const start = 'The baseline, which is the same for all learners, is below 50%';
  assert.equal(textOf('base', -0.2), `${start}: this lowers the chance.`);
  const before =
    /^After the previous skills and their results, .* less often correct than usual: this hardly changes the chance\.$/;
  assert.match(textOf('practisedBefore', 0), before);
});
