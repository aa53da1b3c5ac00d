/** An answer's change of mastery, taken apart: what is shown adds up, and what does not follow is not shown. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type BktParameters,
  defaultParameters,
  difficultyConstants,
} from '../../src/domain/base/bkt-parameters.js';
import { round4 } from '../../src/domain/base/common.js';
import {
  type CountedAnswer,
  predictNextMastery,
  splitMasteryChange,
} from '../../src/domain/learner/explanation.js';
import {
  computeDifficultyShift,
  computeEffectiveMastery,
  traceAnswer,
} from '../../src/domain/tracing/bkt.js';

type StepParts = ReturnType<typeof splitMasteryChange>;

const dayMs = 86_400_000;

interface AnswerInput {
  readonly parameters: BktParameters;
  readonly isCorrect: boolean;
  readonly difficulty: number;
  readonly idleDays: number;
}

const parameters = fc
  .record({
    pInit: fc.double({ min: 0.01, max: 0.98, noNaN: true }),
    pLearn: fc.double({ min: 0.001, max: 0.9, noNaN: true }),
    pGuess: fc.double({ min: 0.01, max: 0.5, noNaN: true }),
    pSlip: fc.double({ min: 0.005, max: 0.5, noNaN: true }),
    pForget: fc.double({ min: 0, max: 0.1, noNaN: true }),
  })
  .filter(({ pGuess, pSlip }) => 1 - pSlip > pGuess + 0.05);

const answers = fc.array(
  fc.record<AnswerInput>({
    parameters,
    isCorrect: fc.boolean(),
    difficulty: fc.double({ min: -3, max: 3, noNaN: true }),
    idleDays: fc.double({ min: 0, max: 400, noNaN: true }),
  }),
  { minLength: 1, maxLength: 30 },
);

/** Counts answers one after the other, as rows tell it afterwards. */
function trace(list: readonly AnswerInput[]): CountedAnswer[] {
  let skill = { mastery: 0, attempts: 0, correctDays: 0, lastAttemptAt: 0 };
  return list.map(({ parameters, isCorrect, difficulty, idleDays }) => {
    const now = skill.lastAttemptAt + idleDays * dayMs;
    const masteryBefore = computeEffectiveMastery(parameters.pInit, skill, now);
    const shift = computeDifficultyShift(parameters, difficulty, difficultyConstants.scale);
    const { masteryAfter } = traceAnswer(parameters, masteryBefore, isCorrect, shift);
    const { attempts, correctDays } = skill;
    skill = {
      mastery: masteryAfter,
      attempts: attempts + 1,
      correctDays: correctDays + 1,
      lastAttemptAt: now,
    };
    return { isCorrect, parameters, difficultyShift: shift, masteryBefore, masteryAfter };
  });
}

/** Ten-thousandths as a whole number; fails where there are more decimals than four. */
function whole(shown: number | null): number {
  assert.ok(shown !== null);
  const tenThousandths = Math.round(shown * 1e4);
  assert.equal(tenThousandths / 1e4, shown);
  return tenThousandths;
}

const sumOf = ({ previous, forgetting, evidence, learning }: StepParts): number =>
  whole(previous) + whole(forgetting) + whole(evidence) + whole(learning);

test('the parts of every answer add up to what is shown, and each link to the next answer', () => {
  fc.assert(
    fc.property(answers, (list) => {
      let previous = (list[0] as (typeof list)[number]).parameters.pInit;
      let shown = round4(previous);
      for (const answer of trace(list)) {
        const parts = splitMasteryChange(answer, previous);
        assert.equal(sumOf(parts), whole(parts.after));
        assert.equal(parts.previous, shown);
        assert.ok(whole(parts.forgetting) <= 0);
        assert.ok(answer.isCorrect ? whole(parts.evidence) >= 0 : whole(parts.evidence) <= 0);
        previous = answer.masteryAfter;
        shown = parts.after;
      }
    }),
  );
});

const [first] = trace([{ parameters: defaultParameters, isCorrect: true, difficulty: 0, idleDays: 0 }]) as [
  CountedAnswer,
];

test('the first right answer under the defaults: the numbers of science by hand', () => {
  // Odds .3/.7 times .9/.2 are 1.928571, so .658537; plus a tenth of the rest, .692683.
  assert.deepEqual(splitMasteryChange(first, 0.3), {
    previous: 0.3,
    before: 0.3,
    posterior: 0.6585,
    after: 0.6927,
    forgetting: 0,
    evidence: 0.3585,
    learning: 0.0342,
  });
});

test('an answer that does not follow from its own figures is not explained', () => {
  for (const change of [
    { masteryAfter: first.masteryAfter + 1e-8 },
    { masteryAfter: 0.5 },
    { isCorrect: false },
    { difficultyShift: 0.1 },
    { parameters: { ...defaultParameters, pGuess: 0.25 } },
  ]) {
    const parts = splitMasteryChange({ ...first, ...change }, 0.3);
    assert.deepEqual([parts.posterior, parts.evidence, parts.learning], [null, null, null]);
    assert.equal(parts.forgetting, 0);
  }
  const near = splitMasteryChange({ ...first, masteryAfter: first.masteryAfter + 1e-10 }, 0.3);
  assert.ok(near.posterior !== null);
});

test('forgetting leads towards the prior and never past it', () => {
  const at = (masteryBefore: number, previous: number | null): StepParts => {
    const { masteryAfter } = traceAnswer(defaultParameters, masteryBefore, true);
    return splitMasteryChange({ ...first, masteryBefore, masteryAfter }, previous);
  };
  assert.equal(at(0.6, 0.9).forgetting, -0.3);
  assert.equal(at(0.3, 0.9).forgetting, -0.6);
  assert.equal(at(0.1, 0.1).forgetting, 0);
  for (const [before, previous] of [
    [0.29, 0.9],
    [0.91, 0.9],
    [0.2, 0.1],
    [0.09, 0.1],
    [0.5, null],
  ] as const) {
    const { forgetting, previous: shown, evidence } = at(before, previous);
    assert.deepEqual([forgetting, shown], [null, null], `${previous} to ${before}`);
    assert.ok(evidence !== null);
  }
});

test('learning holds what the guard and the bounds cut off', () => {
  const wrong = (masteryBefore: number) => {
    const { masteryAfter } = traceAnswer(defaultParameters, masteryBefore, false);
    return splitMasteryChange({ ...first, isCorrect: false, masteryBefore, masteryAfter }, masteryBefore);
  };
  const guarded = wrong(0.05);
  assert.equal(guarded.after, 0.05);
  assert.equal(sumOf(guarded), whole(guarded.after));
  const { masteryAfter } = traceAnswer(defaultParameters, 0.999, true);
  const bounded = splitMasteryChange({ ...first, masteryBefore: 0.999, masteryAfter }, 0.999);
  assert.deepEqual([bounded.after, bounded.learning], [0.999, -0.0008]);
});

test('the next answer: as the tracing itself would count it', () => {
  fc.assert(
    fc.property(parameters, fc.double({ min: 0.001, max: 0.999, noNaN: true }), (skill, mastery) => {
      const next = predictNextMastery(skill, mastery);
      assert.ok(next.ifWrong <= mastery && mastery <= next.ifCorrect);
      assert.equal(next.ifCorrect, traceAnswer(skill, mastery, true).masteryAfter);
    }),
  );
});
