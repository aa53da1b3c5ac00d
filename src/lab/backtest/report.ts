/** The backtest as text, as JSON, and as a page. */
import type { HorizonUnit } from '../../domain/prediction/accuracy-model.js';
import {
  barMark,
  chartFigure,
  diagonalMark,
  domainAround,
  levelMark,
  ratioAxis,
  shareAxis,
} from '../report/chart.js';
import { grouped, rangeText, roundedJson } from '../report/numbers.js';
import {
  type Cell,
  chartGrid,
  fewObservations,
  htmlPage,
  htmlTable,
  type Row,
  runText,
  section,
  textTable,
} from '../report/page.js';
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
  /** null: all. */
  readonly fold: number | null;
  readonly unit: HorizonUnit;
  readonly seconds: number;
  readonly results: BacktestResults;
}

export const backtestJson = ({ file, fold, unit, seconds, results: { all, bands } }: Backtest): string =>
  roundedJson({
    cases: all.cases,
    learners: all.learners,
    coverage: Object.fromEntries(levels.map((level, i) => [100 * level, all.coverage[i]?.mean])),
    bands: bands.map(bandJson),
    models: modelsJson(all),
    ...{ file, fold, unit },
    width_80: all.width.mean,
    bootstrap: { seed, resamples },
    seconds,
  });

const bandJson = (band: Band) => ({
  history_from: band.historyFrom,
  history_to: band.historyTo,
  horizon: band.horizon,
  cases: band.cases,
  learners: band.learners,
  coverage_80: band.coverage[1]?.mean,
  low: band.coverage[1]?.low,
  high: band.coverage[1]?.high,
  coverage_50: band.coverage[0]?.mean,
  coverage_95: band.coverage[2]?.mean,
  width_80: band.width.mean,
  models: modelsJson(band),
});

function modelsJson({ models }: Summary) {
  const losses = Object.entries(models).map(([name, { brier, logLoss, mae }]) => [
    name,
    { brier: brier.mean, log_loss: logLoss.mean, mae: mae.mean },
  ]);
  return Object.fromEntries(losses);
}

export function backtestText({ file, fold, unit, seconds, results: { all, bands } }: Backtest): string {
  const whose = fold === null ? 'every fold by models trained on the others' : `fold ${fold}`;
  return [
    `${file}: ${whose}, horizons in ${unit}, ${seconds.toFixed(1)} s`,
    `${grouped(all.cases)} forecasts for ${grouped(all.learners)} learners; intervals in brackets are 95 %, by ${grouped(resamples)} bootstrap samples of learners, seed ${seed}`,
    '',
    textTable(coverageHead, coverageRows(all, bands)),
    '',
    `Mean width of the 80 % interval: ${share(all.width.mean)}`,
    '',
    textTable(lossHead, lossRows(all)),
    '',
    textTable(bandHead(unit), bandRows(bands, [0.8])),
    '',
    bandText,
  ].join('\n');
}

const share = (value: number): string => value.toFixed(3);
const loss = (value: number): string => value.toFixed(4);
const percent = (value: number): string => `${Math.round(100 * value)} %`;
const withBounds = ({ mean, low, high }: Estimate, shown: typeof share): string =>
  `${shown(mean)} [${shown(low)}\u00a0${shown(high)}]`;

// ---- tables, of the text and of the page

/** Coverage this far from the level is accepted. */
const tolerance = 0.03;

/**
 * With the fault where coverage differs from its level by more than the tolerance, and by more than chance, for the
 * level lies outside the 95 % interval.
 */
function coverageCell({ cases, coverage }: Summary, i: number, bounds = true): Cell {
  const [estimate, level] = [coverage[i] as Estimate, levels[i] as number];
  const { mean, low, high } = estimate;
  const text = bounds ? withBounds(estimate, share) : share(mean);
  if (cases < fewObservations) return { text, look: 'few' };
  const isNarrow = high < level && mean < level - tolerance;
  const isWide = low > level && mean > level + tolerance;
  if (!isNarrow && !isWide) return { text };
  return { text: bounds ? `${text} too ${isNarrow ? 'narrow' : 'wide'}` : text, look: 'off' };
}

const coverageHead = ['Interval', 'Covers', 'Below', 'Above', 'Marked bands'];

function coverageRows(all: Summary, bands: readonly Band[]): Row[] {
  const judged = bands.filter(({ cases }) => cases >= fewObservations);
  return levels.map((level, i) => {
    const below = all.below[i] as number;
    const marked = judged.filter((band) => coverageCell(band, i).look === 'off').length;
    const above = 1 - (all.coverage[i] as Estimate).mean - below;
    return [
      percent(level),
      coverageCell(all, i),
      share(below),
      share(above),
      `${marked} of ${judged.length}`,
    ];
  });
}

const lossHead = ['Model', 'Brier', 'Log loss, nats', 'Mean absolute error'];

const lossRows = ({ models }: Summary, titleOf: Partial<typeof titles> = {}): Row[] =>
  modelNames.map((name) => [
    titleOf[name] ?? name,
    ...(['brier', 'logLoss', 'mae'] as const).map((figure): Cell => {
      const best = Math.min(...modelNames.map((other) => models[other][figure].mean));
      const estimate = models[name][figure];
      return { text: withBounds(estimate, loss), look: estimate.mean === best ? 'best' : undefined };
    }),
  ]);

const bandText =
  'Of the forecasts of each band: share inside the 50, 80 and 95 % intervals, mean width of the 80 % interval, and log loss of the served forecast and of the two others.';

const bandHead = (unit: HorizonUnit): string[] => [
  ...['Answers so far', unit === 'days' ? 'Days' : 'Answers', 'Forecasts', 'Learners'],
  ...['50 %', '80 %', '95 %', 'Width', 'Log loss', 'No change', 'Population'],
];

/** @param boundsOf levels whose coverage is shown with its bounds */
const bandRows = (bands: readonly Band[], boundsOf: readonly number[]): Row[] =>
  bands.map((band) => [
    rangeText(band.historyFrom, band.historyTo),
    grouped(band.horizon),
    grouped(band.cases),
    grouped(band.learners),
    ...levels.map((level, i) => coverageCell(band, i, boundsOf.includes(level))),
    share(band.width.mean),
    ...modelNames.map((name) => loss(band.models[name].logLoss.mean)),
  ]);

// ---- the page

const titles: Readonly<Record<ModelName, string>> = {
  served: 'Served forecast',
  no_change: 'No change',
  population: 'Population',
};

/** @param command that made it. @returns a whole HTML document */
export function backtestPage({ file, fold, unit, results }: Backtest, command: string): string {
  const { all, bands } = results;
  const about = `${grouped(all.cases)} forecasts of the share of right answers over the next ${unit}, for ${grouped(all.learners)} learners. Each forecast uses models that were trained on other learners, and the learner’s answers up to the moment. An interval holds what it says if it covers the observed share as often as its level; the others lie below or above it. Brackets are 95 % intervals over learners (bootstrap, ${grouped(resamples)} samples, seed ${seed}). A band of answers so far and horizon is marked where its coverage is more than ${100 * tolerance} points from the level, and by more than chance. Bands with fewer than ${fewObservations} forecasts, in grey italics, are not judged.`;
  const losses =
    'All losses are better the lower; each forecast counts once. No change takes the learner’s last 50 answers for what follows, population the share of right answers of all others. The charts show the mean log loss of single answers by answers so far.';
  const lossTable = htmlTable(lossHead, lossRows(all, titles));
  return htmlPage(`Backtest of ${file}${fold === null ? '' : `, fold ${fold}`}`, [
    runText(command),
    section('Coverage', about, htmlTable(coverageHead, coverageRows(all, bands))),
    coverageSection(bands, unit),
    calibrationSection(results),
    section('Losses', losses, lossTable, chartGrid(lossCharts(bands, unit))),
    section('Bands', bandText, htmlTable(bandHead(unit), bandRows(bands, levels), true)),
  ]);
}

const bandPoint = (series: string, band: Band, estimate: Estimate, shown: typeof share) => ({
  ...{ series, x: band.historyMiddle, y: estimate.mean, low: estimate.low, high: estimate.high },
  note: `${withBounds(estimate, shown)} after ${rangeText(band.historyFrom, band.historyTo)} answers, ${grouped(band.cases)} forecasts for ${grouped(band.learners)} learners`,
});

const historyAxis = (bands: readonly Band[]) =>
  ratioAxis('answers so far', [
    Math.min(...bands.map(({ historyFrom }) => historyFrom)),
    Math.max(...bands.map(({ historyMiddle }) => historyMiddle * Math.SQRT2)),
  ]);

/** A chart of the bands of each horizon. */
const byHorizon = (bands: readonly Band[], chart: (own: Band[], horizon: string) => string): string[] =>
  horizonsOf(bands).map((horizon) =>
    chart(
      bands.filter((band) => band.horizon === horizon),
      grouped(horizon),
    ),
  );

const levelNames = levels.map((level) => `${percent(level)} interval`);

function coverageSection(bands: readonly Band[], unit: HorizonUnit): string {
  const text =
    'Share of forecasts whose interval holds what was observed, by answers so far. Dashed lines are the levels. Lines through the dots are 95 % intervals over learners. The narrower the intervals, the more a forecast says.';
  const charts = byHorizon(bands, (own, horizon) => {
    const lows = own.flatMap(({ coverage }) => coverage.map(({ low }) => low));
    const points = own.flatMap((band) =>
      levelNames.map((name, i) => bandPoint(name, band, band.coverage[i] as Estimate, share)),
    );
    return chartFigure({
      title: `Coverage over ${horizon} ${unit}`,
      x: historyAxis(own),
      y: shareAxis('share of forecasts inside', domainAround([...lows, 1], [0, 1], 0.6)),
      series: seriesOf(levelNames, 'cab'),
      marks: [levelMark(levels)],
      points,
    });
  });
  return section('Coverage and sharpness by band', text, chartGrid([...charts, widthChart(bands, unit)]));
}

/** @param colors a letter each, again from the first where they are fewer than the names */
const seriesOf = (names: readonly string[], colors: string): Record<string, string> =>
  Object.fromEntries(names.map((name, i) => [name, colors[i % colors.length] as string]));

function widthChart(bands: readonly Band[], unit: HorizonUnit): string {
  const nameOf = (horizon: number): string => `${grouped(horizon)} ${unit}`;
  const widths = bands.map(({ width }) => width.high);
  return chartFigure({
    title: 'Width of the 80 % interval',
    x: historyAxis(bands),
    y: { label: 'mean width, as a share', grid: true, domain: domainAround([0, ...widths], [0, 1], 0.2) },
    series: seriesOf(horizonsOf(bands).map(nameOf), 'abcd'),
    points: bands.map((band) => bandPoint(nameOf(band.horizon), band, band.width, share)),
  });
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
    const points = own.flatMap((band) =>
      modelNames.map((name) => bandPoint(titles[name], band, band.models[name].logLoss, loss)),
    );
    const means = points.map(({ y }) => y);
    return chartFigure({
      title: `Log loss over ${horizon} ${unit}`,
      x: historyAxis(own),
      y: { domain: domainAround(means, [0, 10], 0.1), label: 'log loss, nats', grid: true },
      series: seriesOf(Object.values(titles), 'abd'),
      // Bounds of losses overlap, for all models are measured on the same answers.
      points: points.map(({ low, high, ...point }) => point),
    });
  });
