/** Growth that practice earned, and forecasts of idle and returning learners. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { growthCases, pauseCases, runHistory } from '../../bench/movers/histories.js';
import { freshTenant } from '../../bench/movers/tenants.js';
import { mean } from '../../bench/results/spread.js';
import { createMembers } from '../../src/domain/base/answer-log.js';
import { fitGrowth } from '../../src/domain/fit/fit-growth.js';
import {
  computeExpectation,
  computeGrowth,
  newTrend,
  type Trend,
  updateTrend,
} from '../../src/domain/tracing/trend.js';
import { indices } from '../../src/lists.js';
import { seeded } from '../support/builders/random.js';

const seeds = 6;

/** Means over the seeds. */
function figuresOf(cases: typeof growthCases, name: string) {
  const found = cases.find((one) => one.name === name);
  assert.ok(found, name);
  const runs = indices(seeds).map((seed) => runHistory(freshTenant, found.history, seed + 1).figures);
  const meanOf = (figure: keyof (typeof runs)[number]): number => mean(runs.map((run) => run[figure]));
  return { gain: meanOf('total30') - meanOf('total'), total: meanOf('total'), meanOf };
}

test('Learners without progress are forecast to gain at most 15 points in 30 days, guessers at most 10', () => {
  for (const name of ['constant .60, 12 skills', 'drills one skill, .72', 'constant .85, 12 skills'])
    assert.ok(figuresOf(growthCases, name).gain <= 15, name);
  assert.ok(figuresOf(growthCases, 'guesses .25, 12 skills').gain <= 10);
});

test('Improving learners keep growing, and new learners have a factor near 1', () => {
  const improving = figuresOf(growthCases, 'improves .35 to .85');
  assert.ok(improving.gain >= 20, `${improving.gain}`);
  assert.ok(improving.meanOf('growth') > 1);
  assert.equal(figuresOf(growthCases, 'four answers, one correct').meanOf('growth'), 1);
});

test('The forecast of an idle learner falls, and ten answers after the return move it', () => {
  const of = (name: string) => figuresOf(pauseCases, name);
  const [before, idle] = [of('before the pause, .75'), of('stopped 45 days ago')];
  assert.ok(idle.total < before.total);
  assert.ok(idle.gain < 0);
  assert.ok(idle.meanOf('expectedShare') < before.meanOf('expectedShare') - 0.01);
  const [same, lower] = [of('10 answers later, .75'), of('10 answers later, .55')];
  assert.ok(same.meanOf('expectedShare') - lower.meanOf('expectedShare') >= 0.04);
  assert.ok(of('20 answers later, .55').meanOf('expectedShare') < 0.67);
});

const learning = 0.015;

/** @param chance of a right answer after n answers to the skill */
function replay(chance: (n: number) => number, answers: number, seed: number): Trend {
  const random = seeded(seed);
  let [trend, correct] = [newTrend as Trend, 0];
  for (let attempts = 0; attempts < answers; attempts++) {
    const isCorrect = random() < chance(attempts);
    const expectation = computeExpectation({ attempts, correct }, 0, learning);
    trend = updateTrend(trend, isCorrect, expectation, trend.share, false);
    correct += isCorrect ? 1 : 0;
  }
  return trend;
}

test('computeGrowth finds the achieved share of the projected growth', () => {
  // Wrong answers fall by exp(-learning) per answer, half as fast, or not at all.
  for (const [rate, low, high] of [
    [1, 0.7, 1.6],
    [0.5, 0.3, 1],
    [0, 0, 0.25],
  ] as const) {
    const chance = (n: number): number => 1 - 0.6 * Math.exp(-rate * learning * n);
    const growths = indices(40).map((seed) => computeGrowth(replay(chance, 80, seed + 1), 80, 1).practised);
    assert.ok(low < mean(growths) + 1e-9 && mean(growths) < high, `${rate}: ${mean(growths)}`);
  }
  assert.ok(
    Math.abs(computeGrowth(newTrend, 0, 0.55).practised - 0.5) < 1e-9,
    'the growth of the tenant without evidence',
  );
});

test('Random errors of few answers per skill do not look like growth', () => {
  const meanAchieved = (chance: number): number =>
    mean(
      indices(60).map((seed) => {
        const random = seeded(seed + 1);
        const correct = indices(40).map(() => 0);
        let trend: Trend = newTrend;
        for (let i = 0; i < 400; i++) {
          const [skill, attempts] = [i % 40, Math.floor(i / 40)];
          const isCorrect = random() < chance;
          const state = { attempts, correct: correct[skill] as number };
          trend = updateTrend(trend, isCorrect, computeExpectation(state, 0, learning), trend.share, false);
          if (isCorrect) correct[skill] = state.correct + 1;
        }
        return trend.achieved;
      }),
    );
  for (const chance of [0.25, 0.45, 0.75])
    assert.ok(Math.abs(meanAchieved(chance)) < 0.4, `${chance}: ${meanAchieved(chance)}`);
});

test('A guesser does not grow after a pause either', () => {
  const guessing = { ...newTrend, answers: 11, share: 0.22 };
  assert.deepEqual(computeGrowth(guessing, 170, 1), { practised: 0, unseen: 0 });
});

test('fitGrowth is near 0 for constant learners and near 1 without evidence', () => {
  const random = seeded(5);
  const logOf = (learners: number, answers: number) => {
    const count = learners * answers;
    return {
      starts: Uint32Array.from(indices(learners + 1), (i) => i * answers),
      skill: new Uint32Array(count),
      item: new Uint32Array(count),
      correct: Uint8Array.from(indices(count), () => (random() < 0.6 ? 1 : 0)),
      at: new Float64Array(count),
      seconds: new Float32Array(count).fill(Number.NaN),
      difficulty: new Float32Array(count).fill(Number.NaN),
      skills: 1,
      items: 0,
      members: createMembers(1),
    };
  };
  const fit = (learners: number, answers: number): number =>
    fitGrowth(logOf(learners, answers), new Uint8Array(learners).fill(1), [{ parameters: { pLearn: 0.1 } }]);
  assert.ok(fit(200, 80) < 0.2, `${fit(200, 80)}`);
  assert.equal(fit(10, 5), 1);
});
