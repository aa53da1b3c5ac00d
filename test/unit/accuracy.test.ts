import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeModel, encodeModel } from '../../src/contracts/models/stored-model.js';
import { selectAllLearners, selectLearners } from '../../src/domain/base/answer-log.js';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { sigmoid } from '../../src/domain/base/common.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { collectAccuracyCases, detectHorizonUnit } from '../../src/domain/fit/accuracy/accuracy-cases.js';
import {
  fitAccuracy,
  fitAccuracyChecked,
  measureAccuracy,
  selectPastTimes,
} from '../../src/domain/fit/accuracy/fit-accuracy.js';
import { createFeatureStore, replayLearners } from '../../src/domain/fit/prediction/replay-log.js';
import {
  type AccuracyModel,
  computeAccuracyCdf,
  computeAccuracyInterval,
  forecastAccuracy,
  historyBands,
  initialAccuracyModel,
  isInBand,
} from '../../src/domain/prediction/accuracy-model.js';
import { rowWidth } from '../../src/domain/prediction/features.js';
import { newLearner } from '../../src/domain/tracing/learner-states.js';
import { answerLog, type LoggedAnswer } from '../support/builders/answer-logs.js';
import { formLog } from '../support/builders/forms.js';
import { seeded } from '../support/builders/random.js';
import { steadyLog, subjectAfter, tracedCases } from '../support/builders/shares.js';

const dayMs = 86_400_000;

/** Learners differ by an sd of .8 logits around a share of two thirds. */
function steadyChance(random: () => number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return sigmoid(0.7 + 0.8 * normal);
}

const steady = (learners: number, answersEach: number, seed: number) =>
  steadyLog({ learners, answersEach, chance: steadyChance, random: seeded(seed) });

function casesOf(log: ReturnType<typeof steady>, takes: (learner: number) => boolean = () => true) {
  return tracedCases(log, collectAccuracyCases(log, detectHorizonUnit(log), selectLearners(log, takes)));
}

const fitted = fitAccuracy(casesOf(steady(150, 120, 1)), 'answers') ?? assert.fail('enough learners');
const models: AccuracyModel[] = [initialAccuracyModel, fitted];

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
models.push(uneven);

const anyAnswers = fc.array(fc.boolean(), { maxLength: 60 });
const anyHorizon = fc.double({ min: 0.1, max: 365, noNaN: true });
const anyLevel = fc.double({ min: 0.5, max: 0.99, noNaN: true });
const anyCount = fc.integer({ min: 1, max: 2000 });

test('intervals: inside 0 to 1, around the forecast, wider by level, narrower with more answers', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...models),
      anyAnswers,
      anyHorizon,
      fc.tuple(anyLevel, anyLevel),
      fc.tuple(anyCount, anyCount),
      (model, answers, horizon, levels, counts) => {
        const forecast = forecastAccuracy(model, subjectAfter(answers), horizon);
        assert.ok(forecast.expected > 0 && forecast.expected < 1 && forecast.sd > 0 && forecast.sd < 1);
        const [less, more] = levels.toSorted((a, b) => a - b) as [number, number];
        const [few, many] = counts.toSorted((a, b) => a - b) as [number, number];
        const wide = computeAccuracyInterval(model, forecast, few, more);
        assert.ok(wide.low >= 0 && wide.low <= forecast.expected);
        assert.ok(wide.high <= 1 && wide.high >= forecast.expected);
        for (const inner of [
          computeAccuracyInterval(model, forecast, few, less),
          computeAccuracyInterval(model, forecast, many, more),
        ]) {
          assert.ok(inner.low >= wide.low && inner.high <= wide.high);
        }
      },
    ),
  );
});

test('the distribution is that of the intervals', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...models),
      anyAnswers,
      anyLevel,
      anyCount,
      (model, answers, level, count) => {
        const forecast = forecastAccuracy(model, subjectAfter(answers), 30);
        const { low, high } = computeAccuracyInterval(model, forecast, count, level);
        const below = computeAccuracyCdf(model, forecast, count, low);
        const above = 1 - computeAccuracyCdf(model, forecast, count, high);
        // Where 0 or 1 cuts an interval, what lies beyond is on the bound.
        if (low > 1e-9) assert.ok(Math.abs(below - (1 - level) / 2) < 1e-6, `${below} below`);
        if (high < 1 - 1e-9) assert.ok(Math.abs(above - (1 - level) / 2) < 1e-6, `${above} above`);
      },
    ),
  );
});

test('a right answer never lowers the forecast, a wrong one never raises it', () => {
  fc.assert(
    fc.property(fc.constantFrom(...models), anyAnswers, anyHorizon, (model, answers, horizon) => {
      const expected = (all: readonly boolean[]): number =>
        forecastAccuracy(model, subjectAfter(all), horizon).expected;
      const now = expected(answers);
      assert.ok(expected([...answers, true]) >= now - 1e-12);
      assert.ok(expected([...answers, false]) <= now + 1e-12);
    }),
  );
});

test('a learner without answers is forecast as the population, less surely than one with many', () => {
  const none = forecastAccuracy(fitted, newLearner, 50);
  assert.ok(Math.abs(none.expected - fitted.mean) < 0.03, `${none.expected} of ${fitted.mean}`);
  const many = forecastAccuracy(fitted, subjectAfter(Array.from({ length: 90 }, (_, i) => i % 3 > 0)), 50);
  assert.ok(many.sd < none.sd);
});

test('a fit finds a known truth: what was answered so far, the more of it the surer, and it covers other learners', () => {
  const log = steady(300, 160, 2);
  const model =
    fitAccuracy(
      casesOf(log, (learner) => learner < 150),
      'answers',
    ) ?? assert.fail();
  const cases = casesOf(log, (learner) => learner >= 150);
  const found = measureAccuracy(model, cases);
  assert.ok(Math.abs(found.coverage80 - 0.8) < 0.04, `covers ${found.coverage80}`);
  // With hundreds of answers the truth is nearly known: the share so far, hardly drawn to the mean.
  const late = cases.filter(({ history }) => history >= 100);
  for (const { trace, trend, horizon } of late) {
    const share = trace.right / (trace.right + trace.wrong);
    const { expected } = forecastAccuracy(model, { trace, trend }, horizon);
    assert.ok(Math.abs(expected - share) < 0.12, `${expected} after ${share}`);
  }
  const [first, last] = [cases.filter(({ history }) => history <= 4), late].map((some) => {
    const widths = some.map((one) => {
      const { low, high } = computeAccuracyInterval(
        model,
        forecastAccuracy(model, one, one.horizon),
        1000,
        0.8,
      );
      return high - low;
    });
    return widths.reduce((sum, width) => sum + width, 0) / widths.length;
  }) as [number, number];
  assert.ok(last < 0.5 * first, `${last} late, ${first} early`);
});

/** Novices have good and bad days, the practised change for good: what the horizon does depends on the history. */
const changing = formLog('interaction', { learners: 1000, seed: 4 });
const changingCases = (before?: number) =>
  tracedCases(changing, collectAccuracyCases(changing, 'days', selectAllLearners(changing), before));

test('intervals cover in every band of history and horizon, whatever these do to each other', () => {
  const cases = changingCases();
  const model = fitAccuracy(
    cases.filter(({ learner }) => learner % 2 === 0),
    'days',
  );
  for (const horizon of [7, 30, 90])
    for (const [from, to] of [
      [1, 9],
      [10, 39],
      [40, 159],
      [160, Number.POSITIVE_INFINITY],
    ] as const) {
      const own = cases.filter(
        (one) => one.learner % 2 === 1 && one.horizon === horizon && one.history >= from && one.history <= to,
      );
      const { coverage80 } = measureAccuracy(model ?? assert.fail(), own);
      // Some two hundred learners, chance alone makes .03.
      assert.ok(Math.abs(coverage80 - 0.8) < 0.065, `after ${from}, over ${horizon} days: ${coverage80}`);
    }
});

test('intervals of a fit cover what comes after it', () => {
  const times = changing.at.toSorted();
  const cutoff = times[Math.floor(0.6 * times.length)] as number;
  const known = changingCases(cutoff);
  const pasts = selectPastTimes(known, 'days').map((at) => ({ at, cases: changingCases(at) }));
  assert.ok(pasts.length > 0 && pasts.every(({ at, cases }) => cases.every((one) => one.at < at)));
  const model = fitAccuracy(known, 'days', pasts) ?? assert.fail();
  const { coverage80 } = measureAccuracy(
    model,
    changingCases().filter(({ at }) => at >= cutoff),
  );
  assert.ok(Math.abs(coverage80 - 0.8) < 0.035, `covers ${coverage80}`);
});

test('the same cases give the same figures, and answers that are all alike give figures that can be stored', () => {
  const cases = casesOf(steady(40, 60, 3));
  assert.deepEqual(fitAccuracy(cases, 'answers'), fitAccuracy(cases, 'answers'));
  for (const right of [0, 1]) {
    const log = steadyLog({ learners: 30, answersEach: 60, chance: () => right, random: seeded(1) });
    const accuracy = fitAccuracy(casesOf(log), 'answers') ?? assert.fail();
    const { expected } = forecastAccuracy(accuracy, subjectAfter(new Array(20).fill(right === 1)), 20);
    assert.ok(Math.abs(expected - right) < 0.1, `${expected}`);
    assert.deepEqual(decodeModel(encodeModel({ ...unfittedModel, accuracy })).accuracy, accuracy);
  }
});

test('cases in answers: the next so many, complete; in days: what was answered until then, if enough', () => {
  const timed = (count: number, everyDays: number): LoggedAnswer[] =>
    Array.from({ length: count }, (_, i) => ({
      skill: 0,
      correct: i % 2 === 0,
      at: dayMs * (1 + i * everyDays),
    }));
  const untimed = answerLog(1, [timed(121, 0).map((answer) => ({ ...answer, at: 0 }))]);
  const answers = collectAccuracyCases(untimed, detectHorizonUnit(untimed));
  assert.deepEqual(answers[0], {
    ...{ learner: 0, history: 1, horizon: 20, span: 20, at: 0, answers: 20, right: 10 },
  });
  assert.deepEqual(
    answers.filter(({ history }) => history === 20).map((one) => [one.horizon, one.answers]),
    [
      [20, 20],
      [50, 50],
      [100, 100],
    ],
  );
  assert.ok(answers.every(({ history, horizon }) => history + horizon <= 121));
  const daily = answerLog(1, [timed(50, 0.5), timed(5, 1), [{ skill: 0, correct: true, at: 0 }]]);
  const days = collectAccuracyCases(daily, detectHorizonUnit(daily));
  assert.deepEqual(
    days
      .filter(({ history }) => history === 10)
      .map((one) => [one.learner, one.horizon, one.span, one.answers]),
    [
      [0, 7, 7, 14],
      [0, 30, 20, 40],
      [0, 90, 20, 40],
    ],
    'a horizon ends with the log',
  );
  // As it was after 30 answers, the horizons of ten ended five days later.
  const earlier = collectAccuracyCases(daily, 'days', undefined, dayMs * (1 + 14.6));
  assert.deepEqual(
    earlier.filter(({ history }) => history === 10).map((one) => [one.horizon, one.span, one.answers]),
    [
      [7, 7, 14],
      [30, 10, 20],
      [90, 10, 20],
    ],
  );
  assert.ok(earlier.every(({ history, answers }) => history + answers <= 30));
  assert.ok(days.every((one) => one.learner === 0 && one.answers >= 10));
});

test('every history is in exactly one band, which stands inside itself', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5000 }), (history) => {
      assert.equal(historyBands.filter((band) => isInBand(band, history)).length, 1);
    }),
  );
  for (const { from, to, middle } of historyBands) assert.ok(from < middle && middle < to);
});

/** The features of a log as a fit has them; nothing is known of skills and items. */
function storeOf(log: ReturnType<typeof steady>) {
  const store = createFeatureStore(log);
  const offsets = { mean: 0, skills: new Float32Array(1), items: new Float32Array(1) };
  const model = {
    skills: [{ parameters: defaultParameters, difficultyMean: 0 }],
    difficultyScale: 0,
  };
  replayLearners(log, 0, log.starts.length - 1, model, offsets, store);
  assert.equal(store.rows.length, rowWidth * log.correct.length);
  return store;
}

/** Fitted on four of five learners and judged by the fifth. */
const fitJudged = (log: ReturnType<typeof steady>, inForce: AccuracyModel) =>
  fitAccuracyChecked(
    log,
    selectLearners(log, (learner) => learner % 5 > 0),
    selectLearners(log, (learner) => learner % 5 === 0),
    storeOf(log),
    inForce,
  );

test('a fit is published where held-out learners are forecast no worse, else what is in force stays', () => {
  const log = steady(100, 100, 4);
  const first = fitJudged(log, initialAccuracyModel);
  assert.deepEqual([first.report.published, first.report.reason], [true, '']);
  assert.equal(first.model.learners, 80);
  assert.ok(first.report.learners === 20 && first.report.cases > 500);
  assert.ok((first.report.newLogLoss ?? 1) <= (first.report.oldLogLoss ?? 0) + 0.001);
  // Those who train turn after 40 answers; the held-out ones stay as they were.
  const turned = {
    ...log,
    correct: log.correct.map((c, i) => (Math.floor(i / 100) % 5 > 0 && i % 100 > 40 ? 1 - c : c)),
  };
  const second = fitJudged(turned, first.model);
  assert.deepEqual([second.report.published, second.report.reason], [false, 'held-out log loss is worse']);
  assert.deepEqual(second.model, first.model);
});

test('figures in another unit than those in force are published, though nothing can be compared', () => {
  const log = steady(100, 100, 4);
  const inForce: AccuracyModel = { ...fitted, unit: 'days' };
  const { model, report } = fitJudged(log, inForce);
  assert.deepEqual([report.published, report.reason, report.oldLogLoss], [true, '', null]);
  assert.ok(model.unit === 'answers' && (report.newLogLoss ?? 1) < 0.7);
});

test('too few learners: the figures from before a fit, in the unit of the log', () => {
  const log = steady(15, 60, 5);
  const { model, report } = fitJudged(log, initialAccuracyModel);
  assert.deepEqual(model, { ...initialAccuracyModel, unit: 'answers' });
  assert.equal(report.published, false);
  assert.match(report.reason, /too few/);
});
