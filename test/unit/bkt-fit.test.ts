import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type AnswerLog, selectAllLearners, selectLearners } from '../../src/domain/base/answer-log.js';
import { type BktParameters, defaultParameters, fitBounds } from '../../src/domain/base/bkt-parameters.js';
import { fitPriorMeans, minReachableMastery, priorStrengths } from '../../src/domain/base/fit-constants.js';
import { growTrees } from '../../src/domain/fit/bkt/answer-trees.js';
import {
  buildSkillTree,
  createWorkspace,
  type Expectations,
  type FitRules,
  filterForward,
  fitSkill,
  type SkillTree,
  smoothBackward,
} from '../../src/domain/fit/bkt/expectation-maximization.js';
import {
  computeDifficultyShift,
  computeEffectiveMastery,
  computeMaxForget,
  pStar,
  traceAnswer,
} from '../../src/domain/tracing/bkt.js';
import { answerLog, type LoggedAnswer, syntheticLog } from '../support/builders/answer-logs.js';

const dayMs = 86_400_000;
const written: FitRules = { strengths: priorStrengths };
/** A pull of next to nothing, so that the data speak. */
const weak = { pInit: 0.01, pLearn: 0.01, pGuess: 0.01, pSlip: 0.01, pForget: 0.01 };
const free: FitRules = { strengths: weak };

const near = (actual: number, expected: number, tolerance: number, what = ''): void =>
  assert.ok(Math.abs(actual - expected) <= tolerance, `${what}: ${actual} is not ${expected}`);

/** Answers on one skill as a string of 0 and 1. */
const answers = (pattern: string): LoggedAnswer[] =>
  Array.from(pattern, (answer) => ({ skill: 0, correct: answer === '1' }));

const logOf = (patterns: readonly string[]): AnswerLog => answerLog(1, patterns.map(answers));

function treeOf(log: AnswerLog, difficultyScale = 0): SkillTree {
  return buildSkillTree(
    growTrees(log, selectAllLearners(log), { withDifficulty: difficultyScale > 0 }),
    0,
    difficultyScale,
  );
}

function fit(log: AnswerLog, rules: FitRules, start = defaultParameters, difficultyScale = 0) {
  const tree = treeOf(log, difficultyScale);
  return fitSkill(tree, start, fitPriorMeans, rules);
}

/** Expected visits of one sequence by summing over every path of hidden states, and its likelihood. */
function enumerate(pattern: string, p: BktParameters): { likelihood: number; sums: Expectations } {
  const sums = {
    ...{ starts: 0, startsKnown: 0, learned: 0, notLearned: 0, forgotten: 0, notForgotten: 0 },
    ...{ known: 0, knownRight: 0, unknown: 0, unknownRight: 0 },
  };
  let likelihood = 0;
  // Bit t of a path: mastered at attempt t.
  for (let path = 0; path < 2 ** pattern.length; path++) {
    const states = Array.from(pattern, (_, t) => ((path >> t) & 1) === 1);
    let weight = states[0] ? p.pInit : 1 - p.pInit;
    for (const [t, answer] of [...pattern].entries()) {
      const right = states[t] ? 1 - p.pSlip : p.pGuess;
      weight *= answer === '1' ? right : 1 - right;
      if (t === 0) continue;
      const stays = states[t - 1] ? 1 - p.pForget : p.pLearn;
      weight *= states[t] ? stays : 1 - stays;
    }
    likelihood += weight;
    sums.starts += weight;
    sums.startsKnown += states[0] ? weight : 0;
    for (const [t, isKnown] of states.entries()) {
      sums[isKnown ? 'known' : 'unknown'] += weight;
      if (pattern[t] === '1') sums[isKnown ? 'knownRight' : 'unknownRight'] += weight;
      if (t === 0) continue;
      const kinds = states[t - 1]
        ? (['notForgotten', 'forgotten'] as const)
        : (['learned', 'notLearned'] as const);
      sums[kinds[isKnown ? 0 : 1]] += weight;
    }
  }
  return { likelihood, sums };
}

const pattern = fc
  .array(fc.constantFrom('0', '1'), { minLength: 1, maxLength: 7 })
  .map((list) => list.join(''));
const probability = (min: number, max: number) => fc.double({ min, max, noNaN: true });
const anyParameters: fc.Arbitrary<BktParameters> = fc.record({
  pInit: probability(0.02, 0.98),
  pLearn: probability(0.01, 0.9),
  pGuess: probability(0.02, 0.5),
  pSlip: probability(0.01, 0.45),
  pForget: probability(0, 0.1),
});

/** Far enough from the extremes that 1 - p keeps its digits over seven answers. */
const mildParameters: fc.Arbitrary<BktParameters> = fc.record({
  pInit: probability(0.02, 0.98),
  pLearn: probability(0.01, 0.6),
  pGuess: probability(0.1, 0.5),
  pSlip: probability(0.05, 0.45),
  pForget: probability(0, 0.1),
});

test('the smoother expects what a sum over all hidden paths gives, shared nodes and all', () => {
  fc.assert(
    fc.property(fc.array(pattern, { minLength: 1, maxLength: 8 }), mildParameters, (patterns, parameters) => {
      const tree = treeOf(logOf(patterns));
      const work = createWorkspace(tree.size);
      const logLikelihood = filterForward(tree, parameters, work, 0);
      const found = smoothBackward(tree, parameters, work);
      const exact = patterns.map((one) => enumerate(one, parameters));
      near(
        logLikelihood,
        exact.reduce((sum, { likelihood }) => sum + Math.log(likelihood), 0),
        1e-9,
      );
      for (const name of Object.keys(found) as (keyof Expectations)[]) {
        const expected = exact.reduce((sum, { likelihood, sums }) => sum + sums[name] / likelihood, 0);
        near(found[name], expected, 1e-9, name);
      }
    }),
  );
});

test('a tree shares what learners have in common, and keeps all counts', () => {
  const log = logOf(['110', '11', '111', '0']);
  const trees = growTrees(log, selectAllLearners(log));
  assert.equal(trees.starts[1], 5);
  assert.deepEqual([...trees.parent.slice(0, 5)], [-1, 0, 1, 1, -1]);
  assert.deepEqual([...trees.through.slice(0, 5)], [3, 3, 1, 1, 1]);
  assert.deepEqual([...trees.ending.slice(0, 5)], [0, 1, 1, 1, 1]);
  assert.deepEqual([trees.learners[0], trees.observations[0]], [4, 9]);
});

test('a fit reads the first 60 attempts of the chosen learners, without rapid answers', () => {
  const long = Array.from({ length: 70 }, (_, i) => ({ skill: 0, correct: true, seconds: i < 5 ? 0.5 : 20 }));
  const untimed = answers('101');
  const log = answerLog(1, [long, untimed, long]);
  const firstTwo = selectLearners(log, (learner) => learner < 2);
  const trees = growTrees(log, firstTwo, { rapidThresholds: [3] });
  assert.equal(trees.observations[0], 60 + 3);
  assert.equal(trees.learners[0], 2);
});

test('after a pause of more than 30 days the filter goes on from the decayed mastery, as the served rule does', () => {
  const at = [0, 0.1, 1.2, 50, 50.1, 80.09].map((days) => days * dayMs);
  const given = [true, true, false, true, false, true];
  const tree = treeOf(
    answerLog(1, [given.map((correct, i) => ({ skill: 0, correct, at: at[i] as number }))]),
  );
  const work = createWorkspace(tree.size);
  filterForward(tree, defaultParameters, work);
  const last = traceAnswer(defaultParameters, work.before[2] as number, false).masteryAfter;
  const state = { mastery: last, attempts: 3, correctDays: 1, lastAttemptAt: at[2] as number };
  near(
    work.before[3] as number,
    computeEffectiveMastery(defaultParameters.pInit, state, at[3] as number),
    1e-7,
  );
  assert.ok((work.before[3] as number) < last);
  // A pause of less than 30 days is none to a fit. The new part is no first attempt of its own.
  near(
    work.before[5] as number,
    traceAnswer(defaultParameters, work.before[4] as number, false).masteryAfter,
    1e-9,
  );
  assert.equal(smoothBackward(tree, defaultParameters, work).starts, 1);
});

test('with difficulty the filter is the served rule: centred, scaled and truncated alike', () => {
  const difficulties = [-3, 2.5, Number.NaN, 0.4, 3, -0.2];
  const given = [true, false, true, false, true, true];
  const log = answerLog(1, [
    given.map((correct, i) => ({ skill: 0, correct, difficulty: difficulties[i] as number })),
  ]);
  const mean = (-3 + 2.5 + 0.4 + 3 - 0.2) / 5;
  for (const scale of [0.25, 0.5, 1]) {
    const tree = treeOf(log, scale);
    const work = createWorkspace(tree.size);
    filterForward(tree, defaultParameters, work);
    let mastery = defaultParameters.pInit;
    for (const [i, b] of difficulties.entries()) {
      near(work.before[i] as number, mastery, 1e-6);
      const shift = Number.isNaN(b) ? 0 : computeDifficultyShift(defaultParameters, b - mean, scale);
      mastery = traceAnswer(defaultParameters, mastery, given[i] as boolean, shift, false).masteryAfter;
    }
  }
});

const anyLog: fc.Arbitrary<AnswerLog> = fc
  .array(
    fc.array(
      fc.record({
        skill: fc.constant(0),
        correct: fc.boolean(),
        at: fc.constantFrom(0, 10, 100, 1000).map((days) => days * dayMs),
        difficulty: fc.constantFrom(Number.NaN, -3, -1, 0, 2, 3),
      }),
      { minLength: 1, maxLength: 12 },
    ),
    { minLength: 1, maxLength: 30 },
  )
  .map((learners) => answerLog(1, learners));

const degenerate = [
  ['1'],
  ['0'],
  ['1'.repeat(60)],
  ['0'.repeat(60)],
  Array(50).fill('11111'),
  Array(50).fill('00000'),
];

function holds(log: AnswerLog, rules: FitRules, start: BktParameters, scale: number): void {
  const { parameters, objective } = fit(log, rules, start, scale);
  assert.ok(Number.isFinite(objective));
  assert.ok(pStar(parameters) <= 0.9 * parameters.pInit + 1e-12);
  assert.ok(parameters.pForget <= computeMaxForget(parameters, minReachableMastery));
  for (const name of ['pInit', 'pLearn', 'pGuess', 'pSlip', 'pForget'] as const) {
    const { low, high } = fitBounds[name];
    // Learning may have to be below its bound: P* comes first.
    const least = name === 'pLearn' ? 0 : low;
    assert.ok(parameters[name] >= least && parameters[name] <= high, `${name} ${parameters[name]}`);
  }
}

test('constraints hold on any log, from any start', () => {
  fc.assert(
    fc.property(anyLog, anyParameters, fc.constantFrom(0, 0.5, 1), (log, start, scale) => {
      holds(log, written, start, scale);
      holds(log, free, start, scale);
    }),
  );
  for (const patterns of degenerate)
    for (const rules of [written, free]) holds(logOf(patterns), rules, defaultParameters, 0);
});

test('every iteration raises the penalised likelihood', () => {
  const truth = { pInit: 0.4, pLearn: 0.12, pGuess: 0.28, pSlip: 0.08, pForget: 0.02 };
  const log = syntheticLog({ learners: 60, truth: [truth], seed: 5, difficultyScale: 0.5 });
  const start = { ...truth, pInit: 0.8 };
  const cases: [FitRules, scale: number][] = [
    [written, 0],
    [free, 0],
    [free, 0.5],
  ];
  for (const [rules, scale] of cases) {
    const after = (maxIterations: number) =>
      fit(log, { ...rules, maxIterations, tolerance: 0 }, start, scale).objective;
    for (let iteration = 1; iteration <= 15; iteration++) assert.ok(after(iteration) > after(iteration - 1));
  }
});

test('where the truncation of difficulty moves with the parameters, the best fit is kept', () => {
  const truth = { pInit: 0.4, pLearn: 0.12, pGuess: 0.28, pSlip: 0.08, pForget: 0.02 };
  const log = syntheticLog({ learners: 60, truth: [truth], seed: 5, difficultyScale: 0.5 });
  const after = (maxIterations: number) =>
    fit(log, { ...written, maxIterations, tolerance: 0 }, truth, 0.5).objective;
  for (let iteration = 1; iteration <= 15; iteration++) assert.ok(after(iteration) >= after(iteration - 1));
});

test('parameters come back from many synthetic learners, with difficulty too', () => {
  const truth = { pInit: 0.35, pLearn: 0.12, pGuess: 0.28, pSlip: 0.08, pForget: 0.02 };
  for (const scale of [0, 0.75]) {
    const log = syntheticLog({
      learners: 4000,
      truth: [truth],
      // Forgetting shows in long runs of answers only.
      attempts: [10, 40],
      seed: 11,
      ...(scale > 0 && { difficultyScale: scale }),
    });
    const { parameters } = fit(log, { ...free, tolerance: 1e-6 }, defaultParameters, scale);
    for (const name of ['pInit', 'pLearn', 'pGuess', 'pSlip', 'pForget'] as const)
      near(parameters[name], truth[name], name === 'pForget' ? 0.008 : 0.02, name);
  }
});

test('a skill with few learners stays near the prior, one with many leaves it', () => {
  const truth = { pInit: 0.8, pLearn: 0.05, pGuess: 0.35, pSlip: 0.12, pForget: 0.02 };
  const pull = (learners: number): number =>
    Math.abs(
      fit(syntheticLog({ learners, truth: [truth], seed: 3 }), written).parameters.pInit -
        fitPriorMeans.pInit,
    );
  const [few, some, many] = [pull(2), pull(40), pull(1000)] as const;
  assert.ok(few < 0.06 && few < some && some < many && many > 0.35, `${few}, ${some}, ${many}`);
});
