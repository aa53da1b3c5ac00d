/** Forecasts of the share of right answers, and the fit of their intervals. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeModel, encodeModel } from '../../src/contracts/models/stored-model.js';
import { type AnswerLog, selectAllLearners, selectLearners } from '../../src/domain/base/answer-log.js';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { dayMs, sigmoid } from '../../src/domain/base/common.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import {
  collectAccuracyCases,
  collectTracedCases,
  detectHorizonUnit,
  type TracedCase,
} from '../../src/domain/fit/accuracy/accuracy-cases.js';
import {
  fitAccuracy,
  fitAccuracyChecked,
  measureAccuracy,
  selectPastTimes,
} from '../../src/domain/fit/accuracy/fit-accuracy.js';
import {
  createFeatureStore,
  type FeatureStore,
  replayLearners,
} from '../../src/domain/fit/prediction/replay-log.js';
import {
  type AccuracyModel,
  computeAccuracyCdf,
  computeAccuracyInterval,
  forecastAccuracy,
  initialAccuracyModel,
} from '../../src/domain/prediction/accuracy-model.js';
import { type LearnerState, newLearner } from '../../src/domain/tracing/learner-states.js';
import { indices } from '../../src/lists.js';
import { answerLog, type LoggedAnswer } from '../support/builders/answer-logs.js';
import { countAnswers } from '../support/builders/answers.js';
import { between, ordered } from '../support/builders/arbitraries.js';
import { fc, forAll } from '../support/builders/properties.js';
import { createNormal, seeded } from '../support/builders/random.js';
import { isLongForm } from '../support/runner/long-form.js';

const begin = Date.UTC(2024, 0, 1);
const logDays = 300;
/** Learners begin within these days. */
const beginDays = 220;

/**
 * Standard deviations in logits after so many answers, of one day's form and of a day's lasting change. Beginners have good
 * and bad days; practised learners have none, but change lastingly.
 */
const formSd = (history: number): number => 1.1 / (1 + history / 25);
const changeSd = (history: number): number => (0.16 * history) / (history + 60);

function formLog({ learners, seed }: { learners: number; seed: number }): AnswerLog {
  const random = seeded(seed);
  const normal = createNormal(random);
  return answerLog(
    1,
    Array.from({ length: learners }, () => practise(random, normal)),
  );
}

/** A learner practises on some days until it stops, with a few answers in a row on each. */
function practise(random: () => number, normal: () => number): LoggedAnswer[] {
  const answers: LoggedAnswer[] = [];
  const [activity, answersPerDay, stops] = [0.15 + 0.5 * random(), 2 + 8 * random(), 0.002 + 0.03 * random()];
  let ability = 0.6 + 0.8 * normal();
  for (let day = Math.floor(beginDays * random()); day < logDays && random() > stops; day++) {
    if (answers.length > 0) ability += changeSd(answers.length) * normal();
    if (random() > activity) continue;
    const chance = sigmoid(ability + formSd(answers.length) * normal());
    const count = 1 + Math.floor(2 * answersPerDay * random());
    for (let i = 0; i < count; i++)
      answers.push({ skill: 0, correct: random() < chance, at: begin + day * dayMs + 20_000 * (1500 + i) });
  }
  return answers;
}

/** Answers without times. Each learner has one chance of a right answer, the given one or a random one. */
function steady(learners: number, answersEach: number, seed: number, fixed?: number): AnswerLog {
  const random = seeded(seed);
  const normal = createNormal(random);
  const all = Array.from({ length: learners }, () => {
    const chance = fixed ?? sigmoid(0.7 + 0.8 * normal());
    return indices(answersEach).map((): LoggedAnswer => ({ skill: 0, correct: random() < chance }));
  });
  return answerLog(1, all);
}

/** Features as a fit computes them, without knowledge of skills and items. */
function storeOf(log: AnswerLog): FeatureStore {
  const store = createFeatureStore(log);
  const offsets = { mean: 0, skills: new Float32Array(1), items: new Float32Array(1) };
  const skills = [{ parameters: defaultParameters, difficultyMean: 0 }];
  replayLearners(log, 0, log.starts.length - 1, { skills, difficultyScale: 0 }, offsets, store);
  return store;
}

const casesOf = (log: AnswerLog, isSelected = (_learner: number): boolean => true): TracedCase[] =>
  collectTracedCases(log, detectHorizonUnit(log), selectLearners(log, isSelected), storeOf(log));

const subjectAfter = (answers: readonly boolean[]): LearnerState =>
  countAnswers(answers.map((isCorrect) => ({ isCorrect }))).learner;

const fitted = fitAccuracy(casesOf(steady(100, 100, 1)), 'answers') ?? assert.fail('enough learners');
/** Every correction differs from its neighbours. */
const uneven: AccuracyModel = {
  ...fitted,
  surface: {
    ...fitted.surface,
    cells: fitted.surface.cells.map((cell, i) => ({
      factor: cell.factor * (1 + (i % 3)),
      below: cell.below.map((width) => width * (1 + (i % 5) / 2)),
      above: cell.above.map((width) => width * (1 + (i % 4) / 2)),
    })),
  },
};

const anyModel = fc.constantFrom(initialAccuracyModel, fitted, uneven);
const anyAnswers = fc.array(fc.boolean(), { maxLength: 60 });
const anyHorizon = between(0.1, 365);
const anyLevel = between(0.5, 0.99);
const anyCount = fc.integer({ min: 1, max: 2000 });
const pairOf = (one: fc.Arbitrary<number>) => fc.tuple(one, one).map(ordered);

test('computeAccuracyInterval contains the forecast, widens with the level and narrows with more answers', () => {
  const pairs = fc.tuple(pairOf(anyLevel), pairOf(anyCount));
  forAll(anyModel, anyAnswers, anyHorizon, pairs, (model, answers, horizon, [[less, more], [few, many]]) => {
    const forecast = forecastAccuracy(model, subjectAfter(answers), horizon);
    assert.ok(forecast.expected > 0 && forecast.expected < 1 && forecast.sd > 0 && forecast.sd < 1);
    const wide = computeAccuracyInterval(model, forecast, few, more);
    assert.ok(wide.low >= 0 && wide.low <= forecast.expected);
    assert.ok(wide.high <= 1 && wide.high >= forecast.expected);
    for (const inner of [
      computeAccuracyInterval(model, forecast, few, less),
      computeAccuracyInterval(model, forecast, many, more),
    ])
      assert.ok(inner.low >= wide.low && inner.high <= wide.high);
  });
});

test('computeAccuracyCdf is the distribution of the intervals', () => {
  forAll(anyModel, anyAnswers, anyLevel, anyCount, (model, answers, level, count) => {
    const forecast = forecastAccuracy(model, subjectAfter(answers), 30);
    const { low, high } = computeAccuracyInterval(model, forecast, count, level);
    const below = computeAccuracyCdf(model, forecast, count, low);
    const above = 1 - computeAccuracyCdf(model, forecast, count, high);
    // An interval cut off at 0 or 1 has the rest of its probability at that end.
    if (low > 1e-9) assert.ok(Math.abs(below - (1 - level) / 2) < 1e-6, `${below} below`);
    if (high < 1 - 1e-9) assert.ok(Math.abs(above - (1 - level) / 2) < 1e-6, `${above} above`);
  });
});

test('forecastAccuracy never falls after a right answer and never rises after a wrong one', () => {
  forAll(anyModel, anyAnswers, anyHorizon, (model, answers, horizon) => {
    const expected = (all: readonly boolean[]): number =>
      forecastAccuracy(model, subjectAfter(all), horizon).expected;
    const now = expected(answers);
    assert.ok(expected([...answers, true]) >= now - 1e-12);
    assert.ok(expected([...answers, false]) <= now + 1e-12);
  });
});

test('forecastAccuracy predicts the population mean for a learner without answers, with a larger sd', () => {
  const none = forecastAccuracy(fitted, newLearner, 50);
  assert.ok(Math.abs(none.expected - fitted.mean) < 0.03, `${none.expected}, mean ${fitted.mean}`);
  const many = forecastAccuracy(fitted, subjectAfter(Array.from({ length: 90 }, (_, i) => i % 3 > 0)), 50);
  assert.ok(many.sd < none.sd);
});

test('fitAccuracy predicts the share of held-out learners, and its 80 % intervals cover 80 %', () => {
  const log = steady(240, 140, 2);
  const known = casesOf(log, (learner) => learner < 120);
  const model = fitAccuracy(known, 'answers') ?? assert.fail();
  const cases = casesOf(log, (learner) => learner >= 120);
  const { coverage80 } = measureAccuracy(model, cases);
  assert.ok(Math.abs(coverage80 - 0.8) < 0.04, `coverage ${coverage80}`);
  const late = cases.filter(({ history }) => history >= 100);
  for (const one of late) {
    const share = one.trace.right / one.history;
    const { expected } = forecastAccuracy(model, one, one.horizon);
    assert.ok(Math.abs(expected - share) < 0.12, `expected ${expected} after a share of ${share}`);
  }
  const meanWidth = (some: readonly TracedCase[]): number =>
    some.reduce((sum, one) => {
      const forecast = forecastAccuracy(model, one, one.horizon);
      const { low, high } = computeAccuracyInterval(model, forecast, 1000, 0.8);
      return sum + high - low;
    }, 0) / some.length;
  const early = cases.filter(({ history }) => history <= 4);
  assert.ok(meanWidth(late) < 0.5 * meanWidth(early));
});

/** Beginners have good and bad days, experienced learners change slowly: widths depend on history and horizon. */
const changing = formLog({ learners: isLongForm ? 1000 : 400, seed: 4 });
/** Chance in the coverage of 500 held-out learners, or of 200. */
const chance = isLongForm ? 1 : Math.sqrt(1000 / 400);
const changingStore = storeOf(changing);
const changingCases = (before?: number): TracedCase[] =>
  collectTracedCases(changing, 'days', selectAllLearners(changing), changingStore, before);

test('fitAccuracy covers 80 % in every band of history and horizon', () => {
  const cases = changingCases();
  const known = cases.filter(({ learner }) => learner % 2 === 0);
  const others = cases.filter(({ learner }) => learner % 2 === 1);
  const model = fitAccuracy(known, 'days') ?? assert.fail();
  for (const horizon of [7, 30, 90])
    for (const [from, to] of [
      [1, 9],
      [10, 39],
      [40, 159],
      [160, Number.POSITIVE_INFINITY],
    ] as const) {
      const isInBand = (one: TracedCase): boolean =>
        one.horizon === horizon && one.history >= from && one.history <= to;
      const { coverage80 } = measureAccuracy(model, others.filter(isInBand));
      // A band has at least 80 learners: chance alone gives up to .05.
      assert.ok(Math.abs(coverage80 - 0.8) < 0.065 * chance, `from ${from}, ${horizon} days: ${coverage80}`);
    }
});

test('fitAccuracy covers 80 % of the cases that end after the fit', () => {
  const times = changing.at.toSorted();
  const cutoff = times[Math.floor(0.6 * times.length)] as number;
  const known = changingCases(cutoff);
  const pasts = selectPastTimes(known, 'days').map((at) => ({ at, cases: changingCases(at) }));
  assert.ok(pasts.length > 0 && pasts.every(({ at, cases }) => cases.every((one) => one.at < at)));
  const model = fitAccuracy(known, 'days', pasts) ?? assert.fail();
  const later = changingCases().filter(({ at }) => at >= cutoff);
  const { coverage80 } = measureAccuracy(model, later);
  assert.ok(Math.abs(coverage80 - 0.8) < 0.035 * chance, `coverage ${coverage80}`);
});

test('fitAccuracy is deterministic and returns a model that can be stored even if all answers are equal', () => {
  const cases = casesOf(steady(40, 60, 3));
  assert.deepEqual(fitAccuracy(cases, 'answers'), fitAccuracy(cases, 'answers'));
  for (const right of [0, 1]) {
    const accuracy = fitAccuracy(casesOf(steady(30, 60, 1, right)), 'answers') ?? assert.fail();
    const { expected } = forecastAccuracy(accuracy, subjectAfter(new Array(20).fill(right === 1)), 20);
    assert.ok(Math.abs(expected - right) < 0.1, `${expected}`);
    assert.deepEqual(decodeModel(encodeModel({ ...unfittedModel, accuracy })).accuracy, accuracy);
  }
});

const timed = (count: number, everyDays: number): LoggedAnswer[] =>
  indices(count).map((i) => ({ skill: 0, correct: i % 2 === 0, at: dayMs * (1 + i * everyDays) }));

test('collectAccuracyCases returns complete horizons of answers for a log without times', () => {
  const log = answerLog(1, [timed(121, 0)]);
  const cases = collectAccuracyCases(log, detectHorizonUnit(log));
  const first = { learner: 0, history: 1, horizon: 20, span: 20, at: dayMs, answers: 20, right: 10 };
  assert.deepEqual(cases[0], first);
  const after20 = cases.filter(({ history }) => history === 20).map(({ horizon }) => horizon);
  assert.deepEqual(after20, [20, 50, 100]);
  assert.ok(cases.every(({ horizon, answers }) => horizon === answers));
  assert.ok(cases.every(({ history, horizon }) => history + horizon <= 121));
});

test('collectAccuracyCases ends horizons of days with the log and skips cases with few answers', () => {
  const log = answerLog(1, [timed(50, 0.5), timed(5, 1), [{ skill: 0, correct: true, at: 0 }]]);
  const casesBefore = (before?: number) =>
    collectAccuracyCases(log, detectHorizonUnit(log), undefined, before);
  const after10 = (before?: number): string[] =>
    casesBefore(before)
      .filter(({ history }) => history === 10)
      .map((one) => `${one.horizon} ${one.span} ${one.answers}`);
  assert.deepEqual(after10(), ['7 7 14', '30 20 40', '90 20 40']);
  assert.ok(casesBefore().every((one) => one.learner === 0 && one.answers >= 10));
  // After 30 answers the log ends five days after the tenth.
  const thirtieth = dayMs * (1 + 14.6);
  assert.deepEqual(after10(thirtieth), ['7 7 14', '30 10 20', '90 10 20']);
  assert.ok(casesBefore(thirtieth).every(({ history, answers }) => history + answers <= 30));
});

test('collectAccuracyCases has no horizon before the end of the log if an answer arrives late', () => {
  const answers = timed(60, 0.5);
  const late = [...answers.slice(0, 30), ...answers.slice(50), ...answers.slice(30, 50)];
  const log = answerLog(1, [late]);
  const cases = collectAccuracyCases(log, 'days', undefined, dayMs * 20);
  assert.ok(cases.length > 0 && cases.every(({ span }) => span >= 0));
});

/** Fits on four of five learners and judges by the fifth. */
const fitChecked = (log: AnswerLog, current: AccuracyModel) =>
  fitAccuracyChecked(
    log,
    selectLearners(log, (learner) => learner % 5 > 0),
    selectLearners(log, (learner) => learner % 5 === 0),
    storeOf(log),
    current,
  );

test('fitAccuracyChecked publishes only a model that predicts held-out learners no worse', () => {
  const log = steady(100, 100, 4);
  const first = fitChecked(log, initialAccuracyModel);
  assert.deepEqual([first.report.published, first.report.reason], [true, '']);
  assert.deepEqual([first.model.learners, first.report.learners], [80, 20]);
  assert.ok(first.report.cases > 500);
  assert.ok((first.report.newLogLoss ?? 1) <= (first.report.oldLogLoss ?? 0) + 0.001);
  // The training learners change after 40 answers, the held-out ones do not.
  const correct = log.correct.map((c, i) => (Math.floor(i / 100) % 5 > 0 && i % 100 > 40 ? 1 - c : c));
  const second = fitChecked({ ...log, correct }, first.model);
  assert.deepEqual([second.report.published, second.report.reason], [false, 'held-out log loss is worse']);
  assert.deepEqual(second.model, first.model);
});

test('fitAccuracyChecked does not compare models of different units, and does not publish a fit of too few learners', () => {
  const other = fitChecked(steady(100, 100, 4), { ...fitted, unit: 'days' });
  assert.deepEqual([other.report.published, other.report.reason, other.report.oldLogLoss], [true, '', null]);
  assert.ok(other.model.unit === 'answers' && (other.report.newLogLoss ?? 1) < 0.7);
  const { model, report } = fitChecked(steady(15, 60, 5), initialAccuracyModel);
  assert.deepEqual(model, { ...initialAccuracyModel, unit: 'answers' });
  assert.equal(report.published, false);
  assert.match(report.reason, /too few/);
});
