/** Results and reports of `npm run backtest` for made-up forecasts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ScoredCase } from '../../src/lab/backtest/forecasts.js';
import { computeResults } from '../../src/lab/backtest/results.js';
import { createRunInfo } from '../../src/lab/report/lab-report.js';
import { indices } from '../../src/lists.js';
import { formatBacktest, renderBacktest, serializeBacktest } from '../support/builders/backtest-reports.js';

const casesPerLearner = 5;

/** Five forecasts of each learner; the first `covered` of every 100 forecasts are inside the 80 % interval. */
const makeCases = (learners: number, covered: number, more: Partial<ScoredCase> = {}): ScoredCase[] =>
  indices(learners * casesPerLearner).map((i) => {
    // Spreads the outcomes of 100 forecasts over 20 learners.
    const isInside = ((i % casesPerLearner) * 20 + Math.floor(i / casesPerLearner)) % 100 < covered;
    return {
      ...{
        learner: Math.floor(i / casesPerLearner),
        history: 7,
        horizon: 30,
        span: 30,
        at: 0,
        answers: 20,
        right: 14,
      },
      ...{ observed: 0.7, inside: [isInside, isInside, true], width: 0.3, uncalibrated: null },
      ...{ pit: { from: 0.4, to: 0.6 }, fold: 1, trend: 'constant' as const },
      expected: { served: 0.7, no_change: 0.6, population: 0.5 },
      ...more,
    };
  });

async function reportsOf(scored: readonly ScoredCase[]) {
  const results = await computeResults(scored);
  const backtest = { file: 'log.csv', fold: 2, unit: 'days' as const, cutoffs: [], seconds: 1, results };
  const run = createRunInfo('npm run backtest -- log.csv');
  const [text, html] = [formatBacktest(backtest, run), () => renderBacktest(backtest, run)];
  const json = JSON.parse(serializeBacktest(backtest, run));
  return { text, html, json, headline: json.headline as string[] };
}

test('A band fails if its coverage is more than 4 points off, from 200 forecasts and 50 learners on', async () => {
  const cases: readonly [learners: number, covered: number, verdict: RegExp, fault: string | null][] = [
    [60, 76, /; 0 of 1 bands fail\.$/, null],
    [60, 70, /; 1 of 1 bands fail\.$/, 'too narrow'],
    [60, 90, /; 1 of 1 bands fail\.$/, 'too wide'],
    [49, 70, /; no band has enough forecasts and learners to be judged\.$/, null],
  ];
  for (const [learners, covered, verdict, fault] of cases) {
    const { headline, json, text } = await reportsOf(makeCases(learners, covered));
    assert.match(headline[0] ?? '', verdict);
    assert.deepEqual(
      [json.bands[0].fault?.replace('?', '') ?? null, json.bands[0].judged],
      [fault, learners >= 50],
    );
    const named = headline.some((line) =>
      line.startsWith('Failed bands at a horizon of 30 days, by earlier answers: 5 to 9 ('),
    );
    assert.equal(named, fault !== null);
    assert.ok(text.startsWith(headline.join('\n')));
    if (fault !== null) assert.ok(text.includes(`] ${fault}`), fault);
  }
  const few = makeCases(30, 70).slice(0, 199);
  assert.match((await reportsOf(few)).text, /\n {2}5 to 9 .*\*\n/);
});

test('A question mark marks a failed band whose confidence interval includes the level', async () => {
  // Whole learners are inside or outside, so that the interval is wide.
  const clustered = makeCases(60, 0).map((one) => ({
    ...one,
    inside: indices(3).map(() => one.learner % 4 > 0),
  }));
  const { json } = await reportsOf(clustered);
  assert.ok(json.bands[0].low < 0.8 && json.bands[0].high > 0.8);
  assert.deepEqual([json.bands[0].coverage_80, json.bands[0].fault], [0.75, 'too narrow?']);
});

test('Reports show expected and observed shares by past trend, and mark a clear bias', async () => {
  const expected = { served: 0.75, no_change: 0.6, population: 0.5 };
  const scored = [
    ...makeCases(60, 80, { trend: 'falling', expected }),
    ...makeCases(60, 80).map((one) => ({
      ...one,
      learner: 100 + one.learner,
      horizon: one.learner % 2 ? 7 : 90,
    })),
    ...makeCases(20, 80, { trend: 'rising', expected }).map((one) => ({
      ...one,
      learner: 200 + one.learner,
    })),
  ];
  const { headline, json, text, html } = await reportsOf(scored);
  const rows = json.trends.map(
    ({ trend, horizon, cases, learners, bias, rmse, fault }: ReturnType<typeof JSON.parse>) =>
      [trend, horizon, cases, learners, bias, rmse, fault].join(' '),
  );
  assert.deepEqual(rows, [
    'falling  300 60 0.05 0.05 too high',
    'falling 30 300 60 0.05 0.05 too high',
    'constant  300 60 0 0 ',
    'constant 7 150 30 0 0 ',
    'constant 90 150 30 0 0 ',
    'rising  100 20 0.05 0.05 ',
    'rising 30 100 20 0.05 0.05 ',
  ]);
  assert.equal(
    headline.at(-1),
    'Expected minus observed share, by past trend: falling, all horizons +0.050; falling, horizon 30 +0.050.',
  );
  assert.match(text, /\n {2}falling +all +300 +60 +0\.750 +0\.700 +\+0\.050 too high +0\.050 /);
  assert.match(html(), /<td class="off">\+0\.050 too high<\/td>/);
});

test('Reports compare intervals with those before recalibration, if forecasts were recalibrated', async () => {
  const plain = await reportsOf(makeCases(60, 80));
  for (const report of [plain.text, ...plain.headline])
    assert.doesNotMatch(report, /before recal|% BEFORE|% before/);
  const uncalibrated = { inside: [false, false, true], width: 0.2 };
  const { text, json, headline } = await reportsOf(
    makeCases(60, 80).map((one, i) => ({
      ...one,
      uncalibrated: i % 2 ? uncalibrated : { ...one, width: 0.2 },
    })),
  );
  assert.match(headline[0] ?? '', /; 0 of 1 bands fail \(before recalibration: 40 %, 1 failed\)\.$/);
  assert.match(
    text,
    /\n {2}INTERVAL .*MEAN WIDTH +80 % BEFORE +WIDTH BEFORE .*\n.*\n {2}80 % .* 0\.300 +0\.400 +0\.200 /,
  );
  assert.match(text, /\n {2}5 to 9 +30 +300 +60 .* 0\.300 +0\.400 +0\.200 /);
  assert.deepEqual([json.bands[0].uncalibrated_coverage_80, json.uncalibrated_width_80], [0.4, 0.2]);
});
