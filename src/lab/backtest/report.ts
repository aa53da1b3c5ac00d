import { dateText } from '../../domain/base/common.js';
import type { HorizonUnit } from '../../domain/prediction/accuracy-model.js';
import { groupedBy } from '../../lists.js';
import { type Chart, chartFigure } from '../report/chart.js';
import { barMark, diagonalMark, domainAround, levelMark, ratioAxis, shareAxis } from '../report/marks.js';
import { grouped, jsonLine, rangeText } from '../report/numbers.js';
import {
  type Cell,
  chartGrid,
  fewObservations,
  htmlPage,
  htmlTable,
  type Row,
  section,
  tag,
  textTable,
  textTag,
} from '../report/page.js';
import { type Run, runList } from '../report/run.js';
import { levels, type ModelName, modelNames } from './forecasts.js';
import {
  type BacktestResults,
  type Band,
  type Estimate,
  horizonsOf,
  pitBins,
  resamples,
  type Summary,
  seed,
} from './results.js';

export interface Backtest {
  readonly file: string;
  /** Null: all. */
  readonly fold: number | null;
  readonly unit: HorizonUnit;
  /** Start of each window, Unix milliseconds; empty if the log has no times or is too short. */
  readonly cutoffs: readonly number[];
  readonly seconds: number;
  readonly results: BacktestResults;
}

export function backtestJson({ file, fold, unit, cutoffs, seconds, results }: Backtest): string {
  const { cases, learners, coverage, models, width } = results.all;
  const found = {
    ...{ cases, learners },
    coverage: Object.fromEntries(levels.map((level, i) => [100 * level, coverage[i]?.mean])),
    bands: results.bands.map(bandJson),
    models: lossesJson(models),
    ...{ file, fold, unit },
    cutoffs: cutoffs.map((time) => new Date(time).toISOString()),
    width80: width.mean,
    bootstrap: { seed, resamples },
    seconds,
  };
  return jsonLine(found, 6);
}

function bandJson({ historyFrom, historyTo, horizon, cases, learners, ...band }: Band) {
  const [half, { mean, low, high }, nearlyAll] = band.coverage;
  return {
    ...{ historyFrom, historyTo, horizon, cases, learners },
    ...{ coverage80: mean, low, high, coverage50: half.mean, coverage95: nearlyAll.mean },
    width80: band.width.mean,
    models: lossesJson(band.models),
  };
}

const lossesJson = (models: Summary['models']) =>
  Object.fromEntries(
    Object.entries(models).map(([name, { brier, logLoss, mae }]) => [
      name,
      { brier: brier.mean, logLoss: logLoss.mean, mae: mae.mean },
    ]),
  );

export function backtestText(backtest: Backtest): string {
  const { file, fold, unit, seconds, results } = backtest;
  const { all, bands } = results;
  const whose = fold === null ? 'every fold by models trained on the others' : `fold ${fold}`;
  const about = `${file}: ${whose}, horizons in ${unit}, ${seconds.toFixed(1)} s
Trained on ${trainedOn(backtest)}
${grouped(all.cases)} forecasts for ${grouped(all.learners)} learners; intervals in brackets are 95 %, by ${grouped(resamples)} bootstrap samples of learners, seed ${seed}`;
  return [
    about,
    textTable(coverageHead, coverageRows(all, bands)),
    `Mean width of the 80 % interval: ${share(all.width.mean)}`,
    textTable(lossHead, lossRows(all)),
    textTable(bandHead(unit), bandRows(bands, [0.8])),
    bandText,
  ].join('\n\n');
}

const share = (value: number): string => value.toFixed(3);
const loss = (value: number): string => value.toFixed(4);
const percent = (value: number): string => `${Math.round(100 * value)} %`;
const withBounds = ({ mean, low, high }: Estimate, shown: typeof share): string =>
  `${shown(mean)} [${shown(low)}\u00a0${shown(high)}]`;

const trainedOn = ({ cutoffs }: Backtest): string =>
  cutoffs.length === 0
    ? 'all answers of other learners: the log has no times, or is too short to learn from its beginning'
    : `what other learners had answered before ${cutoffs.map(dateText).join(', ')}: the moments from each of these days to the next`;

/**
 * Accepted distance of coverage from its level. With fewer learners, any distance is accepted if the 95 % interval contains the
 * level.
 */
const tolerance = 0.03;
const manyLearners = 500;

/** Null if the coverage is acceptable, or there are too few forecasts to judge. */
function faultOf({ cases, learners, coverage }: Summary, i: number): string | null {
  const [{ mean, low, high }, level] = [coverage[i] as Estimate, levels[i] as number];
  const mayBeChance = learners < manyLearners && low <= level && level <= high;
  if (cases < fewObservations || mayBeChance || Math.abs(mean - level) <= tolerance) return null;
  return mean < level ? 'too narrow' : 'too wide';
}

function coverageCell(summary: Summary, i: number, bounds = true): Cell {
  const estimate = summary.coverage[i] as Estimate;
  const text = bounds ? withBounds(estimate, share) : share(estimate.mean);
  const fault = faultOf(summary, i);
  if (fault !== null) return { text: `${text} ${fault}`, look: 'off' };
  return isFew(summary) ? { text, look: 'few' } : { text };
}

const isFew = ({ cases }: Summary): boolean => cases < fewObservations;

const coverageHead = ['Interval', 'Covers', 'Below', 'Above', 'Forecasts', 'Learners', 'Bands that fail'];

const coverageRows = (all: Summary, bands: readonly Band[]): Row[] =>
  levels.map((level, i) => {
    const below = all.below[i] as number;
    const above = 1 - (all.coverage[i] as Estimate).mean - below;
    return [
      ...[percent(level), coverageCell(all, i), share(below), share(above)],
      ...[grouped(all.cases), grouped(all.learners), failing(bands, i)],
    ];
  });

function failing(bands: readonly Band[], i: number): Cell {
  const judged = bands.filter((band) => !isFew(band));
  const failed = judged.filter((band) => faultOf(band, i) !== null).length;
  return { text: `${failed} of ${judged.length}`, look: failed > 0 ? 'off' : undefined };
}

const lossHead = ['Model', 'Brier', 'Log loss, nats', 'Mean absolute error', 'Forecasts', 'Learners'];

const lossRows = (all: Summary, nameOf = (name: ModelName): string => name): Row[] =>
  modelNames.map((name) => [
    nameOf(name),
    ...(['brier', 'logLoss', 'mae'] as const).map((figure): Cell => {
      const best = Math.min(...modelNames.map((other) => all.models[other][figure].mean));
      const estimate = all.models[name][figure];
      return { text: withBounds(estimate, loss), look: estimate.mean === best ? 'best' : undefined };
    }),
    ...[grouped(all.cases), grouped(all.learners)],
  ]);

const bandText =
  'Of the forecasts of each band: share inside the 50, 80 and 95 % intervals, mean width of the 80 % interval, and log loss of the served forecast and of the two others.';

const bandHead = (unit: HorizonUnit): string[] => [
  ...['Answers so far', unit === 'days' ? 'Days' : 'Answers', 'Forecasts', 'Learners'],
  ...['50 %', '80 %', '95 %', 'Width', 'Log loss', 'No change', 'Population'],
];

/** @param boundsOf levels whose coverage has bounds in its cell */
const bandRows = (bands: readonly Band[], boundsOf: readonly number[]): Row[] =>
  bands.map((band) => [
    rangeText(band.historyFrom, band.historyTo),
    grouped(band.horizon),
    grouped(band.cases),
    grouped(band.learners),
    ...levels.map((level, i) => coverageCell(band, i, boundsOf.includes(level))),
    ...[share(band.width.mean), ...modelNames.map((name) => loss(band.models[name].logLoss.mean))].map(
      (text): Cell => ({ text, look: isFew(band) ? 'few' : undefined }),
    ),
  ]);

const titles: Readonly<Record<ModelName, string>> = {
  served: 'Served forecast',
  no_change: 'No change',
  population: 'Population',
};

const leadStyle = `
.lead { display: grid; gap: 1.25rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr)); margin: 1.4rem 0; }
.lead > div { padding: .9rem 1rem; background: var(--panel); border: 1px solid var(--line); border-radius: .6rem; }
.lead p { margin: 0; color: var(--text); }
.lead .figure { font-size: 2.6rem; font-weight: 700; line-height: 1.2; font-variant-numeric: tabular-nums; }
.lead .off { color: var(--alert); font-weight: 700; }
`;

function leadTile({ all, bands }: BacktestResults, level: number, i: number): string {
  const { mean, low, high } = all.coverage[i] as Estimate;
  const points = (value: number): string => (100 * value).toFixed(1);
  const fault = faultOf(all, i);
  const passed = isFew(all) ? 'few forecasts, not judged' : 'Holds';
  const { text, look = '' } = failing(bands, i);
  const lines: readonly (readonly [text: string, look: string])[] = [
    [`The ${percent(level)} interval covers`, ''],
    [`${points(mean)} %`, fault === null ? 'figure' : 'figure off'],
    [fault === null ? passed : `Fails: ${fault}`, fault === null ? '' : 'off'],
    [`95 % interval over learners ${points(low)} to ${points(high)} %`, ''],
    [`${grouped(all.cases)} forecasts for ${grouped(all.learners)} learners`, ''],
    [`Bands that fail: ${text}`, look],
  ];
  return tag('div', {}, ...lines.map(([told, own]) => textTag('p', own === '' ? {} : { class: own }, told)));
}

const settingsOf = (backtest: Backtest): Readonly<Record<string, string>> => ({
  File: backtest.file,
  Fold:
    backtest.fold === null
      ? 'all in turn, each forecast by models trained on the others'
      : String(backtest.fold),
  'Trained on': trainedOn(backtest),
  Horizons: `${horizonsOf(backtest.results.bands).join(', ')} ${backtest.unit}`,
  Bootstrap: `${grouped(resamples)} samples of learners, seed ${seed}`,
});

export function backtestPage(backtest: Backtest, run: Run): string {
  const { file, fold, unit, results } = backtest;
  const { all, bands } = results;
  const about = `Forecasts of the share of right answers over the next ${unit}, from the learner’s answers up to the moment. An interval holds what it says if it covers the observed share as often as its level; the others lie below or above it. Brackets are 95 % intervals over learners. A band of answers so far and horizon fails where its coverage is more than ${100 * tolerance} points from the level; with fewer than ${manyLearners} learners only if by more than chance. What rests on fewer than ${fewObservations} forecasts is in grey italics and not judged.`;
  const losses =
    'All losses are better the lower; each forecast counts once. No change takes the learner’s last 50 answers for what follows, population the share of right answers of all others. The charts show the mean log loss of single answers by answers so far.';
  const lossTable = htmlTable(
    lossHead,
    lossRows(all, (name) => titles[name]),
    true,
  );
  return htmlPage(
    `Backtest of ${file}${fold === null ? '' : `, fold ${fold}`}`,
    [
      tag('div', { class: 'lead' }, ...levels.map((level, i) => leadTile(results, level, i))),
      runList(run, settingsOf(backtest)),
      section('Coverage', about, htmlTable(coverageHead, coverageRows(all, bands))),
      coverageSection(bands, unit),
      calibrationSection(results),
      section('Losses', losses, lossTable, chartGrid(lossCharts(bands, unit))),
      section('Bands', bandText, htmlTable(bandHead(unit), bandRows(bands, levels), true)),
    ],
    leadStyle,
  );
}

/** Repeats the values if there are fewer than names. */
const named = <Value>(names: readonly string[], values: readonly Value[]): Record<string, Value> =>
  Object.fromEntries(names.map((name, i) => [name, values[i % values.length] as Value]));

/** @param estimatesOf a band, by series */
function bandChart(
  bands: readonly Band[],
  estimatesOf: (band: Band) => Readonly<Record<string, Estimate>>,
  { shown = share, ...chart }: Omit<Chart, 'x'> & { readonly shown?: typeof share },
): string {
  const first = Math.min(...bands.map(({ historyFrom }) => historyFrom));
  const last = Math.max(...bands.map(({ historyMiddle }) => historyMiddle * Math.SQRT2));
  const points = bands.flatMap((band) =>
    Object.entries(estimatesOf(band)).map(([series, estimate]) => ({
      ...{ series, x: band.historyMiddle, y: estimate.mean },
      // Losses have no bounds: they overlap, because all models predict the same answers.
      ...(shown === share && { low: estimate.low, high: estimate.high }),
      note: `${withBounds(estimate, shown)} after ${rangeText(band.historyFrom, band.historyTo)} answers, ${grouped(band.cases)} forecasts for ${grouped(band.learners)} learners`,
    })),
  );
  return chartFigure({ x: ratioAxis('answers so far', [first, last]), points, ...chart });
}

const byHorizon = (bands: readonly Band[], chart: (own: Band[], horizon: string) => string): string[] =>
  [...groupedBy(bands, ({ horizon }) => horizon)].map(([horizon, own]) => chart(own, grouped(horizon)));

const levelNames = levels.map((level) => `${percent(level)} interval`);

function coverageSection(bands: readonly Band[], unit: HorizonUnit): string {
  const text =
    'Share of forecasts whose interval holds what was observed, by answers so far. Dashed lines are the levels. Lines through the dots are 95 % intervals over learners. The narrower the intervals, the more a forecast says.';
  const charts = byHorizon(bands, (own, horizon) => {
    const lows = own.flatMap(({ coverage }) => coverage.map(({ low }) => low));
    return bandChart(own, ({ coverage }) => named(levelNames, coverage), {
      title: `Coverage over ${horizon} ${unit}`,
      y: shareAxis('share of forecasts inside', domainAround([...lows, 1], [0, 1], 0.6)),
      series: named(levelNames, ['c', 'a', 'b']),
      marks: [levelMark(levels)],
    });
  });
  const nameOf = (horizon: number): string => `${grouped(horizon)} ${unit}`;
  const widths = bands.map(({ width }) => width.high);
  const widthChart = bandChart(bands, ({ horizon, width }) => ({ [nameOf(horizon)]: width }), {
    title: 'Width of the 80 % interval',
    y: { label: 'mean width, as a share', grid: true, domain: domainAround([0, ...widths], [0, 1], 0.2) },
    series: named(horizonsOf(bands).map(nameOf), ['a', 'b', 'c', 'd']),
  });
  return section('Coverage and sharpness by band', text, chartGrid([...charts, widthChart]));
}

function calibrationSection({ reliability, pit }: BacktestResults): string {
  const text =
    'Left: tenths of the forecasts by the expected share, against what was observed; on the dashed line forecasts are right on average. Right: how often the outcome fell into each twentieth of its forecast distribution. Where forecasts are calibrated all columns reach the dashed line; columns at both ends rise where intervals are too narrow. Inside the 50 % interval the distribution runs through the expected share, which lies below the median: hence a dent and a bump there.';
  const points = reliability.map(({ expected, observed, cases }) => ({
    series: titles.served,
    x: expected,
    y: observed,
    note: `expected ${share(expected)}, observed ${share(observed)}, ${grouped(cases)} forecasts`,
  }));
  const forecast = chartFigure({
    title: 'Forecast against observed',
    x: shareAxis('expected share of right answers'),
    y: shareAxis('observed share'),
    series: { [titles.served]: 'a' },
    marks: [diagonalMark],
    points,
  });
  const columns = pit.map((value, bin) => ({
    from: bin / pitBins,
    to: (bin + 1) / pitBins,
    value: value * pitBins,
    note: `${percent(bin / pitBins)} to ${percent((bin + 1) / pitBins)}: ${share(value)} of the forecasts`,
  }));
  const place = chartFigure({
    title: 'Place of the outcome in its forecast (PIT)',
    x: shareAxis('probability that the forecast gave to less'),
    y: { domain: [0, Math.max(2, ...columns.map(({ value }) => value))], label: 'forecasts, against even' },
    marks: [barMark(columns), levelMark([1])],
  });
  return section('Calibration', text, chartGrid([forecast, place]));
}

const lossCharts = (bands: readonly Band[], unit: HorizonUnit): string[] =>
  byHorizon(bands, (own, horizon) => {
    const lossesOf = ({ models }: Band) => modelNames.map((name) => models[name].logLoss);
    const means = own.flatMap(lossesOf).map(({ mean }) => mean);
    return bandChart(own, (band) => named(Object.values(titles), lossesOf(band)), {
      title: `Log loss over ${horizon} ${unit}`,
      y: { domain: domainAround(means, [0, 10], 0.1), label: 'log loss, nats', grid: true },
      series: named(Object.values(titles), ['a', 'b', 'd']),
      shown: loss,
    });
  });
