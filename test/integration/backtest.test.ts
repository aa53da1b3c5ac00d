import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { localRunner } from '../../src/domain/fit/fit-stages.js';
import { forecastFold } from '../../src/lab/backtest/forecasts.js';
import { bootstrapIntervals, resamples } from '../../src/lab/backtest/results.js';
import { planWindows, selectAnswersBefore, unboundedWindow } from '../../src/lab/backtest/windows.js';
import { trainModels } from '../../src/lab/evaluate/train.js';
import { csvOf, type MadeColumn, makeAnswers } from '../support/builders/answer-file.js';
import { runCommand } from '../support/commands/command.js';
import { assertSelfContained, fileOf, lineOf, splitOf } from '../support/commands/log-commands.js';
import { assertLegible } from '../support/pages/legible.js';
import { referenceFile } from '../support/runner/reference.js';
import { tempDir } from '../support/temp.js';

const limit = { timeout: 600_000 };

const backtest = (...args: string[]) => runCommand('backtest', {}, ...args);

const answers = makeAnswers(60, 70);
const timed: readonly MadeColumn[] = ['user_id', 'skill_id', 'correct', 'item_id', 'ts', 'order', 'fold'];
const untimed: readonly MadeColumn[] = ['user_id', 'skill_id', 'correct'];

interface BandLine {
  readonly history_from: number;
  readonly history_to: number | null;
  readonly horizon: number;
  readonly cases: number;
  readonly learners: number;
  readonly coverage_80: number;
  readonly low: number;
  readonly high: number;
}

function assertBands(bands: readonly BandLine[], cases: number): void {
  assert.equal(
    bands.reduce((sum, band) => sum + band.cases, 0),
    cases,
  );
  for (const band of bands) {
    const names = [
      'history_from',
      'history_to',
      'horizon',
      'cases',
      'learners',
      'coverage_80',
      'low',
      'high',
    ];
    assert.deepEqual(Object.keys(band).slice(0, 8), names);
    assert.ok(band.history_to === null || band.history_to >= band.history_from);
    assert.ok(band.low >= 0 && band.low <= band.coverage_80 + 1e-9);
    assert.ok(band.high <= 1 && band.high >= band.coverage_80 - 1e-9);
    assert.ok(band.learners > 0 && band.learners <= band.cases);
  }
}

test('times: horizons in days, one JSON object, and a page that needs nothing else', limit, async (t) => {
  const hostile = answers.map((answer) => ({ ...answer, skill: `<script>${answer.skill}` }));
  const file = await fileOf(t, gzipSync(csvOf(hostile, timed)), '<script>answers');
  const page = join(await tempDir(t), 'page.html');
  const ended = await backtest(file, '--json', '--report', page);
  const found = lineOf(ended);
  assert.equal(ended.err, '');
  assert.deepEqual(Object.keys(found).slice(0, 5), ['cases', 'learners', 'coverage', 'bands', 'models']);
  assert.deepEqual([found.learners, found.unit, found.fold], [60, 'days', null]);
  assert.deepEqual(Object.keys(found.coverage), ['50', '80', '95']);
  assert.ok(Math.abs(found.coverage['80'] - 0.8) < 0.06, `covers ${found.coverage['80']}`);
  assert.deepEqual([...new Set(found.bands.map(({ horizon }: BandLine) => horizon))], [7, 30, 90]);
  assertBands(found.bands, found.cases);
  assert.deepEqual(Object.keys(found.models), ['served', 'no_change', 'population']);
  for (const [model, losses] of Object.entries<Record<string, number>>(found.models)) {
    assert.deepEqual(Object.keys(losses), ['brier', 'log_loss', 'mae'], model);
    for (const [name, loss] of Object.entries(losses)) {
      assert.ok(loss > 0 && found.models.served[name] <= loss, `${model} ${name} ${loss}`);
    }
  }
  // Coverage and loss by horizon, width, reliability, PIT.
  const html = readFileSync(page, 'utf8');
  assertSelfContained(html, 9);
  const beginning = html.slice(html.indexOf('</h1>'), html.indexOf('<h2>'));
  for (const told of [
    /The 80 % interval covers<\/p><p class="figure[^>]*>\d\d\.\d %/,
    /Bands that fail: \d+ of \d+/,
  ])
    assert.match(beginning, told, 'what matters most comes first');
  assert.deepEqual(found.cutoffs, [], 'a week is too short to learn from its beginning');
  for (const setting of ['all in turn', '7, 30, 90 days', '1,000 samples of learners, seed 20260101'])
    assert.ok(beginning.includes(setting), setting);
  await assertLegible(t, page, /^Backtest of /);
});

test(
  'no times: horizons in answers, each complete, the same in every run; text for people',
  limit,
  async (t) => {
    const file = await fileOf(t, csvOf(answers, untimed));
    const first = lineOf(await backtest(file, '--json', '--threads', '1'));
    const { seconds: _, ...second } = lineOf(await backtest(file, '--json', '--threads', '2'));
    assert.equal(first.unit, 'answers');
    assert.deepEqual({ ...second, seconds: first.seconds }, first, 'whatever the threads');
    assert.deepEqual(first.cutoffs, []);
    assert.deepEqual([...new Set(first.bands.map(({ horizon }: BandLine) => horizon))], [20, 50]);
    assertBands(first.bands, first.cases);
    const ended = await backtest(file);
    assert.deepEqual([ended.code, ended.err], [0, '']);
    assert.match(ended.out, /every fold by models trained on the others, horizons in answers/);
    assert.match(ended.out, /\n {2}80 % +0\.\d{3} +\[0\.\d{3} 0\.\d{3}\]/);
    assert.match(ended.out, /\n {2}served +0\.\d{4}/);
    assert.match(ended.out, /\n {2}40 to 79 +20 +[\d,]+ +60 /);
  },
);

test('--fold forecasts only the learners of the fold', limit, async (t) => {
  const file = await fileOf(t, csvOf(answers, timed));
  const found = lineOf(await backtest(file, '--json', '--fold', '3'));
  assert.deepEqual([found.learners, found.fold], [12, 3]);
});

test(
  'a file with all learners in one fold: folds by hash, as without any, unless one is asked for',
  limit,
  async (t) => {
    const columns = timed.filter((name) => name !== 'fold');
    const inOne = makeAnswers(40, 40).map((answer) => ({ ...answer, fold: 7 }));
    const file = await fileOf(t, csvOf(inOne, timed));
    const ended = await backtest(file, '--json');
    assert.equal(ended.err, 'Every learner is in fold 7: folds are 1 to 5 by a hash of user_id instead\n');
    const { seconds: _, ...found } = lineOf(ended);
    const { seconds, ...byHash } = lineOf(await backtest(await fileOf(t, csvOf(inOne, columns)), '--json'));
    assert.ok(seconds > 0 && found.learners === 40);
    assert.deepEqual(found, byHash);
    const { code, out, err } = await backtest(file, '--fold', '7');
    assert.deepEqual([code, out], [1, '']);
    assert.match(err, /Every learner is in fold 7, so that nobody is left to train on/);
  },
);

test('the bootstrap gives the same bounds in every run, and signals their turn between samples', async () => {
  const learners = Array.from({ length: 30 }, (_, i) => Float64Array.of(1 + (i % 3), i % 7, 0.5 * i));
  let turns = 0;
  let isDone = false;
  const others = async (): Promise<void> => {
    for (; !isDone; turns++) await nextTurn();
  };
  const watching = others();
  const found = await bootstrapIntervals(learners);
  isDone = true;
  await watching;
  assert.ok(turns >= resamples, `${turns} turns`);
  assert.deepEqual(found, [
    { low: 1, high: 1 },
    { low: 1.0317460317460319, high: 1.8867924528301887 },
    { low: 2.7983870967741935, high: 4.61864406779661 },
  ]);
});

test('few learners are forecast with the figures from before a fit', limit, async (t) => {
  const few = await fileOf(t, csvOf(makeAnswers(10, 70), untimed));
  const found = lineOf(await backtest(few, '--json'));
  assert.deepEqual([found.learners, found.unit], [10, 'answers']);
});

test(
  'what cannot be forecast is said in a line or two, with nothing on standard output',
  limit,
  async (t) => {
    const file = await fileOf(t, csvOf(makeAnswers(40, 8), timed));
    const one = await fileOf(t, csvOf(answers.slice(0, 70), timed));
    const page = join(await tempDir(t), 'missing', 'page.html');
    const cases: readonly (readonly [readonly string[], RegExp])[] = [
      [[], /exactly one FILE/],
      [[`${file}.missing`], /cannot be read/],
      [[file], /No learner has enough answers/],
      [[file, '--fold', '9'], /No learner is in fold 9; there are learners in 1, 2, 3, 4, 5/],
      [[file, '--fold', 'one'], /--fold "one": an integer/],
      [[one], /nobody is left to train on/],
      [[file, '--report', page], /--report .* cannot be written/],
      [[file, '--unknown'], /--unknown/],
    ];
    for (const [args, expected] of cases) {
      const { code, out, err } = await backtest(...args);
      assert.deepEqual([code, out], [1, ''], args.join(' '));
      assert.match(err, expected);
      assert.ok(err.trim().split('\n').length <= 2, err);
    }
    assert.ok(!existsSync(page));
  },
);

test('--help tells the options and what the figures mean', limit, async () => {
  const { code, out, err } = await backtest('--help');
  assert.deepEqual([code, err], [0, '']);
  for (const word of ['--fold', '--report', 'no_change', 'coverage', '7, 30, 90 days', 'seed']) {
    assert.ok(out.includes(word), word);
  }
});

test('no forecast knows an answer inside its horizon, or one of another test learner', limit, async () => {
  const before = splitOf(answers, timed);
  const served = (await trainModels(before.training, localRunner)).models.served;
  const forecasts = forecastFold(before, served, 1, unboundedWindow);
  for (const known of [3, 20, 40]) {
    // The first learner is of fold 1, and so first in the test log.
    const future = splitOf(
      answers.map((answer, i) =>
        answer.fold !== 1 || (answer.user === 'u0' && i < known)
          ? answer
          : { ...answer, correct: answer.correct === 1 ? 0 : 1 },
      ),
      timed,
    );
    const { served } = (await trainModels(future.training, localRunner)).models;
    const again = forecastFold(future, served, 1, unboundedWindow);
    const own = forecasts.filter(({ learner, history }) => learner === 0 && history <= known);
    assert.ok(own.length > 3);
    for (const [i, { history, horizon, expected, width }] of own.entries()) {
      assert.deepEqual({ ...again[i], history, horizon, expected, width }, again[i]);
    }
    assert.notDeepEqual(again, forecasts);
  }
});

/** The same answers ten times as far apart. */
const spread = answers.map((answer) => ({ ...answer, ts: 1_500_000_000 + 10 * (answer.ts - 1_700_000_000) }));

test('no model knows an answer after its window began, and every moment from the first window on is in one', () => {
  const before = splitOf(spread, timed);
  const windows = planWindows(before);
  for (const [some, columns] of [
    [answers, timed],
    [spread, untimed],
  ] as const)
    assert.deepEqual(planWindows(splitOf(some, columns)), [unboundedWindow]);
  assert.equal(selectAnswersBefore(before.training, unboundedWindow), before.training);
  for (const [i, window] of windows.entries()) {
    assert.equal(window.to, windows[i + 1]?.from ?? Number.POSITIVE_INFINITY);
    const turned = spread.map((answer) =>
      1000 * answer.ts >= window.from
        ? { ...answer, correct: answer.correct === 1 ? (0 as const) : (1 as const) }
        : answer,
    );
    const known = selectAnswersBefore(before.training, window);
    assert.deepEqual(selectAnswersBefore(splitOf(turned, timed).training, window), known);
    assert.ok(known.at.every((time) => time < window.from));
    const earlier = before.training.at.filter((time) => time < window.from);
    assert.equal(known.correct.length, earlier.length);
  }
  assert.equal(windows.length, 3);
});

test('times over months: every forecast by what was answered before it', limit, async (t) => {
  const found = lineOf(await backtest(await fileOf(t, csvOf(spread, timed)), '--json'));
  assert.deepEqual([found.learners, found.unit, found.cutoffs.length], [60, 'days', 3]);
  assertBands(found.bands, found.cases);
  assert.deepEqual(found.cutoffs, found.cutoffs.toSorted());
  assert.ok(found.models.served.log_loss < found.models.population.log_loss);
});

for (const name of ['algebra05.csv.gz', 'assist2009.csv.gz']) {
  const path = referenceFile(name);
  test(`forecasts on ${name} hold what they promise`, { ...limit, skip: path === null }, async () => {
    const { bands, models, coverage, unit } = lineOf(await backtest(path ?? '', '--json'));
    for (const { history_from, horizon, learners, ...band } of bands.filter(
      (one: BandLine) => one.learners >= 500,
    ))
      for (const [level, covers] of [
        [0.5, band.coverage_50],
        [0.8, band.coverage_80],
        [0.95, band.coverage_95],
      ] as const)
        assert.ok(Math.abs(covers - level) <= 0.03, `after ${history_from}, over ${horizon}: ${covers}`);
    // A class of a hundred goes through a course together: what comes next is new to all of them.
    const slack = unit === 'days' ? 0.05 : 0.02;
    for (const [level, share] of Object.entries<number>(coverage)) {
      assert.ok(Math.abs(share - Number(level) / 100) < slack, `${level} % interval covers ${share}`);
    }
    for (const figure of ['brier', 'log_loss', 'mae']) {
      const better = Math.min(models.no_change[figure], models.population[figure]);
      assert.ok(models.served[figure] <= better, `${figure} ${models.served[figure]}, baseline ${better}`);
    }
  });
}
