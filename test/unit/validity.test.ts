/** Checks of served mastery against later answers, in `npm run evaluate`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkAnswers, type ServedAnswer } from '../../src/lab/evaluate/validity.js';
import { indices } from '../../src/lists.js';

interface PairOptions {
  readonly learner?: string;
  readonly skill?: number;
  readonly isMastered?: boolean;
  readonly predicted?: number;
}

/** One learner's answers on one skill, as 1 and 0, with a constant mastery or the given ones. */
function pairOf(
  outcomes: string,
  mastery: number,
  { learner = 'a', skill = 1, isMastered = false, predicted = 0.5 }: PairOptions = {},
  masteries: readonly number[] = [],
) {
  const after = (i: number): number => masteries[i] ?? mastery;
  return [...outcomes].map(
    (outcome, i): ServedAnswer => ({
      ...{ learner, right: Number(outcome), predicted },
      skills: [
        {
          ...{ skill: `${skill}`, isMastered },
          ...{ masteryBefore: i === 0 ? 0.4 : after(i - 1), masteryAfter: after(i) },
        },
      ],
    }),
  );
}

const validityOf = (answers: readonly ServedAnswer[]) => checkAnswers(answers).validity;

test('checkAnswers counts pairs with a mastery that contradicts the last ten answers', () => {
  const cases: readonly [outcomes: string, mastery: number, contradictions: number][] = [
    ['1111000100', 0.7, 0],
    ['1110000100', 0.7, 1],
    // Three of the last four are right.
    ['1000000111', 0.7, 0],
    ['1110000100', 0.69, 0],
    ['1111111110', 0.59, 1],
    ['1111111100', 0.59, 0],
    ['1111111110', 0.6, 0],
    // Earlier answers do not count.
    ['00000000001111111110', 0.5, 1],
    // Nine answers are too few.
    ['111111111', 0.1, 0],
  ];
  for (const [outcomes, mastery, expected] of cases)
    assert.equal(validityOf(pairOf(outcomes, mastery)).contradictions, expected, `${outcomes} ${mastery}`);
});

test('checkAnswers counts mastered pairs with at most six of the last ten answers right', () => {
  const answers = ['1111110000', '1111111000'].flatMap((outcomes, skill) =>
    pairOf(outcomes, 0.96, { isMastered: true, skill }),
  );
  const { pairs, masteredAt60 } = validityOf([...answers, ...pairOf('0000000000', 0.1, { skill: 2 })]);
  assert.deepEqual([pairs, masteredAt60], [3, 1]);
});

test('checkAnswers counts changes of mastery by more than .5 from the sixth answer on', () => {
  const masteries = [0.95, 0.2, 0.8, 0.2, 0.8, 0.2, 0.75, 0.25];
  const { jumps, settledAnswers } = validityOf(pairOf('11111111', 0, {}, masteries));
  assert.deepEqual([jumps, settledAnswers], [2, 3], 'changes of .6, .55 and .5');
});

test('checkAnswers measures accuracy over five answers after mastery, with learners as clusters', () => {
  const reached = [0.5, 0.95, 0.5];
  const two = ['a', 'b'].flatMap((learner) =>
    pairOf(learner === 'a' ? '01111110000' : '01101000000', 0.5, { learner }, reached),
  );
  const found = validityOf(two);
  assert.deepEqual([found.masteredThenAnswers, found.masteredThenAccuracy], [10, 0.7]);
  // Residuals of the learners are 1.5 and -1.5 right answers: the margin is 1.96 sqrt(2 * 4.5) / 10.
  assert.ok(Math.abs((found.masteredThenLow ?? 0) - (0.7 - 0.588)) < 1e-9, `${found.masteredThenLow}`);
  assert.equal(found.masteredThenHigh, 1, 'a share is at most 1');
  const one = validityOf(pairOf('0111', 0.5, {}, reached));
  assert.deepEqual([one.masteredThenAnswers, one.masteredThenAccuracy, one.masteredThenLow], [2, 1, null]);
});

test('checkAnswers gives shares of pairs an interval over learners, also without any case', () => {
  const pairsOf = (learner: string, contradicted: number, pairs: number) =>
    indices(pairs).flatMap((skill) =>
      pairOf('1111111110', skill < contradicted ? 0.5 : 0.8, { learner, skill }),
    );
  const intervalOf = (...counts: [contradicted: number, pairs: number][]) =>
    validityOf(counts.flatMap(([contradicted, pairs], i) => pairsOf(`${i}`, contradicted, pairs))).intervals
      .contradictions ?? [];
  const near = (found: readonly number[], expected: readonly number[]) =>
    assert.deepEqual(
      found.map((value) => value.toFixed(4)),
      expected.map((value) => value.toFixed(4)),
    );
  // Wilson's interval of 0 of 20 and 10 of 20.
  near(intervalOf([0, 10], [0, 10]), [0, 0.1611]);
  near(intervalOf([5, 10], [5, 10]), [0.2993, 0.7007]);
  // All or no pairs of a learner: the design effect is 10 * 4 / 3, so 40 pairs count as 3.
  near(intervalOf([10, 10], [0, 10], [10, 10], [0, 10]), [0.1253, 0.8747]);
  assert.deepEqual(intervalOf([5, 10]), [], 'one learner');
});

test('checkAnswers measures accuracy before mastery from the sixth answer on, and returns null without answers', () => {
  const masteries = [...indices(7).map(() => 0.5), 0.95];
  const { unmasteredThenAccuracy } = validityOf(pairOf('000001011111', 0.5, {}, masteries));
  assert.equal(unmasteredThenAccuracy, 2 / 3);
  assert.equal(validityOf(pairOf('11111', 0.5)).unmasteredThenAccuracy, null);
  const { validity, movers } = checkAnswers([]);
  assert.deepEqual([validity.masteredThenAccuracy, movers.biasRising, movers.longRms], [null, null, null]);
});

test('checkAnswers groups all answers by tenths of the mastery before them', () => {
  const { byMastery } = validityOf(pairOf('011', 0.95));
  const full = byMastery.filter(({ answers }) => answers > 0);
  const rows = full.map(
    ({ low, answers, predicted, correct }) => `${low} ${answers} ${predicted} ${correct}`,
  );
  assert.deepEqual(rows, ['0.4 1 0.4 0', '0.9 2 0.95 1']);
});

test('checkAnswers measures the bias of rising and falling learners over their last 50 answers', () => {
  const learnerOf = (learner: string, first: number, last: number, between = 0) => {
    const half = (right: number): string => '1'.repeat(right) + '0'.repeat(50 - right);
    return pairOf(half(first) + '0'.repeat(between) + half(last), 0.5, { learner, predicted: 0.6 });
  };
  const { movers } = checkAnswers([
    ...learnerOf('rises', 20, 30),
    ...learnerOf('falls', 40, 30, 50),
    ...learnerOf('stays', 40, 31, 50),
    ...learnerOf('short', 0, 50).slice(1),
  ]);
  assert.deepEqual([movers.learners, movers.rising, movers.falling, movers.longLearners], [3, 1, 1, 2]);
  const near = (value: number | null, expected: number) =>
    assert.ok(Math.abs((value ?? 9) - expected) < 1e-9, `${value}`);
  near(movers.biasRising, 0);
  near(movers.biasFalling, 0);
  near(movers.longRms, 0.02 / Math.SQRT2);
  assert.equal(movers.intervals.biasFalling, null, 'too few learners');
  const many = indices(10).flatMap((i) => learnerOf(`${i}`, 40, i % 2 ? 20 : 30));
  const [low, high] = checkAnswers(many).movers.intervals.biasFalling ?? [];
  // Biases of 0 and .2: the variance of their mean is .01 / 9.
  near(low ?? null, 0.1 - 1.96 * Math.sqrt(0.01 / 9));
  near(high ?? null, 0.1 + 1.96 * Math.sqrt(0.01 / 9));
});

test('checkAnswers counts an answer with several skills for each of them, and once for the learner', () => {
  const [one, other] = [1, 2].map((skill) => pairOf('1111111110'.repeat(10), 0.5, { skill }));
  const both = one?.map((answer, i) => ({
    ...answer,
    skills: [...answer.skills, ...(other?.[i]?.skills ?? [])],
  }));
  const { validity, movers } = checkAnswers(both ?? []);
  assert.deepEqual([validity.pairs, validity.contradictions, movers.learners], [2, 2, 1]);
});
