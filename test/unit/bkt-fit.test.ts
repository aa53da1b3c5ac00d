/** Estimation of the parameters of Bayesian Knowledge Tracing, for one skill and for a tenant. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AnswerLog, selectAllLearners, selectLearners } from '../../src/domain/base/answer-log.js';
import { type BktParameters, defaultParameters, fitBounds } from '../../src/domain/base/bkt-parameters.js';
import { dayMs } from '../../src/domain/base/common.js';
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
  type BktFit,
  type BktFitOptions,
  chooseFitOptions,
  fitTrees,
  isHeldOut,
} from '../../src/domain/fit/bkt/fit-trees.js';
import { compareHeldOutLoss, traceLog } from '../../src/domain/fit/bkt/trace-log.js';
import { canPublish } from '../../src/domain/fit/fit-parameters.js';
import {
  computeDifficultyShift,
  computeEffectiveMastery,
  computeMaxForget,
  pStar,
  traceAnswer,
} from '../../src/domain/tracing/bkt.js';
import { computeSum } from '../../src/lists.js';
import { answerLog, type LoggedAnswer, syntheticLog } from '../support/builders/answer-logs.js';
import { anyParameters } from '../support/builders/arbitraries.js';
import { fc, forAll } from '../support/builders/properties.js';
import { seeded } from '../support/builders/random.js';

const names = ['pInit', 'pLearn', 'pGuess', 'pSlip', 'pForget'] as const;
const priorRules: FitRules = { strengths: priorStrengths };
/** A prior that is too weak to matter. */
const freeRules: FitRules = {
  strengths: { pInit: 0.01, pLearn: 0.01, pGuess: 0.01, pSlip: 0.01, pForget: 0.01 },
};

const near = (actual: number, expected: number, tolerance: number, what = ''): void =>
  assert.ok(Math.abs(actual - expected) <= tolerance, `${what}: ${actual} is not ${expected}`);

/** Answers on one skill as a string of 0 and 1. */
const answersOf = (pattern: string): LoggedAnswer[] =>
  Array.from(pattern, (answer) => ({ skill: 0, correct: answer === '1' }));

const logOf = (patterns: readonly string[]): AnswerLog => answerLog(1, patterns.map(answersOf));

const treeOf = (log: AnswerLog, difficultyScale = 0): SkillTree =>
  buildSkillTree(
    growTrees(log, selectAllLearners(log), { withDifficulty: difficultyScale > 0 }),
    0,
    difficultyScale,
  );

const fit = (log: AnswerLog, rules: FitRules, start = defaultParameters, difficultyScale = 0) =>
  fitSkill(treeOf(log, difficultyScale), start, fitPriorMeans, rules);

/** Likelihood and expected visits of one sequence, as sums over every path of hidden states. */
function enumeratePaths(pattern: string, p: BktParameters): { likelihood: number; sums: Expectations } {
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
      if (states[t - 1]) sums[isKnown ? 'notForgotten' : 'forgotten'] += weight;
      else sums[isKnown ? 'learned' : 'notLearned'] += weight;
    }
  }
  return { likelihood, sums };
}

test('smoothBackward returns the expectations of a sum over all hidden paths', () => {
  const pattern = fc
    .array(fc.constantFrom('0', '1'), { minLength: 1, maxLength: 7 })
    .map((list) => list.join(''));
  // Nearer the extremes 1 - p loses digits over seven answers.
  const parameters = anyParameters.map((any) => ({
    ...any,
    pLearn: Math.min(0.6, any.pLearn),
    pGuess: Math.max(0.1, any.pGuess),
    pSlip: Math.max(0.05, any.pSlip),
  }));
  forAll(fc.array(pattern, { minLength: 1, maxLength: 8 }), parameters, (patterns, parameters) => {
    const tree = treeOf(logOf(patterns));
    const work = createWorkspace(tree.size);
    const logLikelihood = filterForward(tree, parameters, work, 0);
    const found = smoothBackward(tree, parameters, work);
    const exact = patterns.map((one) => enumeratePaths(one, parameters));
    const exactLog = exact.reduce((sum, { likelihood }) => sum + Math.log(likelihood), 0);
    near(logLikelihood, exactLog, 1e-9);
    for (const name of Object.keys(found) as (keyof Expectations)[]) {
      const expected = exact.reduce((sum, { likelihood, sums }) => sum + sums[name] / likelihood, 0);
      near(found[name], expected, 1e-9, name);
    }
  });
});

test('growTrees reads the first 60 attempts of the selected learners, without rapid answers', () => {
  const long = Array.from({ length: 70 }, (_, i) => ({ skill: 0, correct: true, seconds: i < 5 ? 0.5 : 20 }));
  const log = answerLog(1, [long, answersOf('101'), long]);
  const firstTwo = selectLearners(log, (learner) => learner < 2);
  const trees = growTrees(log, firstTwo, { rapidThresholds: [3] });
  assert.deepEqual([trees.learners[0], trees.observations[0]], [2, 60 + 3]);
});

test('filterForward continues from the decayed mastery after a pause of more than 30 days', () => {
  const at = [0, 0.1, 1.2, 50, 50.1, 80.09].map((days) => days * dayMs) as [number, number, number, number];
  const given = [true, true, false, true, false, true];
  const answers = given.map((correct, i) => ({ skill: 0, correct, at: at[i] as number }));
  const tree = treeOf(answerLog(1, [answers]));
  const { before, ...work } = createWorkspace(tree.size);
  filterForward(tree, defaultParameters, { ...work, before });
  const after = (index: number): number =>
    traceAnswer(defaultParameters, before[index] as number, given[index] as boolean).masteryAfter;
  const state = { mastery: after(2), attempts: 3, correctDays: 1, lastAttemptAt: at[2] };
  near(before[3] as number, computeEffectiveMastery(defaultParameters.pInit, state, at[3]), 1e-7);
  assert.ok((before[3] as number) < after(2));
  near(before[5] as number, after(4), 1e-9, 'a pause of less than 30 days');
  assert.equal(smoothBackward(tree, defaultParameters, { ...work, before }).starts, 1);
});

test('filterForward centres, scales and truncates difficulties as traceAnswer does', () => {
  const difficulties = [-3, 2.5, Number.NaN, 0.4, 3, -0.2];
  const given = [true, false, true, false, true, true];
  const answers = given.map((correct, i) => ({ skill: 0, correct, difficulty: difficulties[i] as number }));
  const mean = (-3 + 2.5 + 0.4 + 3 - 0.2) / 5;
  for (const scale of [0.25, 0.5, 1]) {
    const tree = treeOf(answerLog(1, [answers]), scale);
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

function assertWithinBounds(log: AnswerLog, start: BktParameters, scale: number): void {
  for (const rules of [priorRules, freeRules]) {
    const { parameters, objective } = fit(log, rules, start, scale);
    assert.ok(Number.isFinite(objective));
    assert.ok(pStar(parameters) <= 0.9 * parameters.pInit + 1e-12);
    assert.ok(parameters.pForget <= computeMaxForget(parameters, minReachableMastery));
    for (const name of names) {
      const { low, high } = fitBounds[name];
      // The limit of P* may require a pLearn below its lower bound.
      const least = name === 'pLearn' ? 0 : low;
      assert.ok(parameters[name] >= least && parameters[name] <= high, `${name} ${parameters[name]}`);
    }
  }
}

test('fitSkill keeps P*, pForget and all bounds for any log and any start', () => {
  forAll(anyLog, anyParameters, fc.constantFrom(0, 0.5, 1), assertWithinBounds);
  const long = ['1'.repeat(60), '0'.repeat(60)].map((pattern) => [pattern]);
  const equal = ['11111', '00000'].map((pattern) => Array(50).fill(pattern));
  for (const patterns of [['1'], ['0'], ...long, ...equal])
    assertWithinBounds(logOf(patterns), defaultParameters, 0);
});

test('fitSkill raises the penalised likelihood in every iteration', () => {
  const truth = { pInit: 0.4, pLearn: 0.12, pGuess: 0.28, pSlip: 0.08, pForget: 0.02 };
  const log = syntheticLog({ learners: 60, truth: [truth], seed: 5, difficultyScale: 0.5 });
  const far = { ...truth, pInit: 0.8 };
  const cases: [rules: FitRules, start: BktParameters, scale: number, leastGain: number][] = [
    [priorRules, far, 0, Number.MIN_VALUE],
    [freeRules, far, 0, Number.MIN_VALUE],
    [freeRules, far, 0.5, Number.MIN_VALUE],
    // The truncation of difficulties changes with the parameters: the best iteration is returned.
    [priorRules, truth, 0.5, 0],
  ];
  for (const [rules, start, scale, leastGain] of cases) {
    const after = (maxIterations: number): number =>
      fit(log, { ...rules, maxIterations, tolerance: 0 }, start, scale).objective;
    const objectives = Array.from({ length: 16 }, (_, iterations) => after(iterations));
    for (const [i, next] of objectives.slice(1).entries())
      assert.ok(next - (objectives[i] as number) >= leastGain, `${objectives}`);
  }
});

test('fitSkill finds the parameters of many synthetic learners, with and without difficulties', () => {
  const truth = { pInit: 0.35, pLearn: 0.12, pGuess: 0.28, pSlip: 0.08, pForget: 0.02 };
  for (const scale of [0, 0.75]) {
    const log = syntheticLog({
      learners: 4000,
      truth: [truth],
      // Only long sequences show forgetting.
      attempts: [10, 40],
      seed: 11,
      ...(scale > 0 && { difficultyScale: scale }),
    });
    const { parameters } = fit(log, { ...freeRules, tolerance: 1e-6 }, defaultParameters, scale);
    for (const name of names)
      near(parameters[name], truth[name], name === 'pForget' ? 0.008 : 0.02, `${name} at scale ${scale}`);
  }
});

const options: BktFitOptions = { strengths: priorStrengths, difficultyScale: 0 };

const fitBkt = (log: AnswerLog, fitted: BktFitOptions = options): Promise<BktFit> =>
  fitTrees(growTrees(log, selectAllLearners(log), { withDifficulty: fitted.difficultyScale > 0 }), fitted);

/** Random skills within the bounds of fits. */
function drawSkills(count: number, seed: number): BktParameters[] {
  const random = seeded(seed);
  const draw = (low: number, high: number): number => low + (high - low) * random();
  return Array.from({ length: count }, () => ({
    pInit: draw(0.15, 0.6),
    pLearn: draw(0.04, 0.15),
    pGuess: draw(0.2, 0.38),
    pSlip: draw(0.04, 0.14),
    pForget: draw(0.01, 0.03),
  }));
}

const modelOf = (parameters: readonly BktParameters[]) => ({
  skills: parameters.map((one) => ({ parameters: one, difficultyMean: 0 })),
  difficultyScale: 0,
});

/** Mean log loss of the skills: how much larger it is with the candidate. */
function compareLoss(log: AnswerLog, candidate: readonly BktParameters[], current: readonly BktParameters[]) {
  const compared = compareHeldOutLoss(log, selectAllLearners(log), modelOf(candidate), modelOf(current));
  const sum = compared.skills.reduce(
    (total, one) => total + (one.newLogLoss ?? 0) - (one.oldLogLoss ?? 0),
    0,
  );
  return sum / compared.skills.length;
}

test('fitTrees predicts new learners better than the defaults, and nearly as well as the truth', async () => {
  const truth = drawSkills(12, 1);
  const fresh = syntheticLog({ learners: 300, truth, seed: 2 });
  for (const [learners, fromTruth] of [
    [20, 0.02],
    [300, 0.004],
  ] as const) {
    const { skills } = await fitBkt(syntheticLog({ learners, truth, seed: 3 }));
    const fitted = skills.map(({ parameters }) => parameters);
    const distance = compareLoss(fresh, fitted, truth);
    assert.ok(distance < fromTruth, `${learners} learners: ${distance}`);
    const defaults = truth.map(() => defaultParameters);
    assert.ok(compareLoss(fresh, fitted, defaults) < 0, `${learners} learners`);
  }
});

test('fitTrees gives skills with few learners the mean of five fitted skills, else the defaults', async () => {
  const log = syntheticLog({ learners: 30, truth: drawSkills(7, 6), seed: 7 });
  /** Skill 0 has answers of the first 10 learners only, and skills above the limit have none. */
  const withFew = (limit: number): AnswerLog => {
    const skill = log.skill.map((one, index) =>
      one > limit || (one === 0 && index >= (log.starts[10] as number)) ? 1 : one,
    );
    return { ...log, skill };
  };
  const sourcesOf = (fitted: BktFit): string[] => fitted.skills.map(({ source }) => source);
  const six = await fitBkt(withFew(6));
  assert.deepEqual(sourcesOf(six), ['prior', ...Array(6).fill('fitted')]);
  const mean = six.skills.slice(1).reduce((sum, { parameters }) => sum + parameters.pInit, 0) / 6;
  near(six.prior.parameters.pInit, mean, 1e-12);
  assert.deepEqual(six.skills[0]?.parameters, six.prior.parameters);
  const three = await fitBkt(withFew(3));
  assert.deepEqual(three.means, fitPriorMeans);
  assert.deepEqual(sourcesOf(three), ['default', ...Array(3).fill('fitted'), ...Array(3).fill('default')]);
  assert.deepEqual(three.skills[6]?.parameters, defaultParameters);
});

test('fitTrees needs fewer iterations from a warm start, and an extra cold start replaces a bad one', async () => {
  const log = syntheticLog({ learners: 400, truth: drawSkills(6, 8), seed: 9 });
  const cold = await fitBkt(log);
  const warm = cold.skills.map(({ parameters }) => parameters);
  const iterations = ({ skills }: BktFit): number => skills.reduce((sum, skill) => sum + skill.iterations, 0);
  assert.ok(iterations(await fitBkt(log, { ...options, warm })) < iterations(cold));
  const bad = warm.map(() => ({ pInit: 0.9, pLearn: 0.005, pGuess: 0.02, pSlip: 0.2, pForget: 0 }));
  const fitFromBad = async (coldStart: boolean): Promise<BktParameters[]> => {
    const { skills } = await fitBkt(log, { ...options, warm: bad, coldStart });
    return skills.map(({ parameters }) => parameters);
  };
  assert.ok(compareLoss(log, await fitFromBad(true), await fitFromBad(false)) <= 1e-6);
});

test('chooseFitOptions keeps the strongest prior for few learners and weakens it for many', async () => {
  const easy = { pInit: 0.89, pLearn: 0.005, pGuess: 0.4, pSlip: 0.15, pForget: 0.03 };
  const hard = { pInit: 0.03, pLearn: 0.15, pGuess: 0.2, pSlip: 0.03, pForget: 0.01 };
  const truth = Array.from({ length: 30 }, (_, i) => (i % 2 === 0 ? easy : hard));
  const few = await chooseFitOptions(syntheticLog({ learners: 4, truth: drawSkills(8, 10), seed: 11 }));
  assert.deepEqual(few.strengths, priorStrengths);
  const many = await chooseFitOptions(syntheticLog({ learners: 60, truth, seed: 12, attempts: [2, 6] }));
  assert.ok(many.strengths.pInit < priorStrengths.pInit);
  assert.equal(many.difficultyScale, 0);
});

test('chooseFitOptions finds the scale of the supplied difficulties', async () => {
  for (const difficultyScale of [0, 0.5, 0.75]) {
    const log = syntheticLog({ learners: 200, truth: drawSkills(5, 13), seed: 14, difficultyScale });
    assert.equal((await chooseFitOptions(log)).difficultyScale, difficultyScale);
  }
});

test('canPublish rejects parameters that predict held-out answers worse', () => {
  const truth = drawSkills(3, 15);
  const log = syntheticLog({ learners: 200, truth, seed: 16 });
  const worse = [...truth.slice(0, 2), { pInit: 0.9, pLearn: 0.005, pGuess: 0.02, pSlip: 0.01, pForget: 0 }];
  const heldOut = selectLearners(log, isHeldOut);
  const { skills: compared, all } = compareHeldOutLoss(log, heldOut, modelOf(worse), modelOf(truth));
  assert.deepEqual(compared.map(canPublish), [true, true, false]);
  assert.equal(compared[0]?.newLogLoss, compared[0]?.oldLogLoss);
  let traced = 0;
  traceLog(log, heldOut, modelOf(truth), () => traced++);
  assert.equal(computeSum(compared.map(({ answers }) => answers)), traced);
  assert.equal(all.answers, traced);
  const { skills: none } = compareHeldOutLoss(log, new Uint8Array(200), modelOf(worse), modelOf(truth));
  assert.deepEqual(none[0], { answers: 0, oldLogLoss: null, newLogLoss: null });
  assert.deepEqual(none.map(canPublish), [true, true, true]);
});

test('traceLog predicts each answer from earlier answers only', () => {
  const truth = drawSkills(2, 17);
  const log = syntheticLog({ learners: 20, truth, seed: 18 });
  const predictAll = (of: AnswerLog): number[] => {
    const predicted: number[] = [];
    traceLog(of, selectAllLearners(of), modelOf(truth), (index, pCorrect) => {
      predicted[index] = pCorrect;
    });
    return predicted;
  };
  const expected = predictAll(log);
  forAll(fc.nat(log.skill.length - 1), (from) => {
    const changed = { ...log, correct: log.correct.map((y, index) => (index >= from ? 1 - y : y)) };
    assert.deepEqual(predictAll(changed).slice(0, from + 1), expected.slice(0, from + 1));
  });
});
