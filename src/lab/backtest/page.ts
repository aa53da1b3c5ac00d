/** The backtest as a page for people. */
import type { HorizonUnit } from '../../domain/prediction/accuracy-model.js';
import {
  barMark,
  type ChartPoint,
  chartFigure,
  colorsOf,
  diagonalMark,
  domainAround,
  levelMark,
  ratioAxis,
  type Series,
  seriesMarks,
  shareAxis,
} from '../report/chart.js';
import { grouped, rangeText } from '../report/numbers.js';
import {
  type Cell,
  chartGrid,
  fewObservations,
  htmlPage,
  htmlTable,
  runText,
  section,
} from '../report/page.js';
import { resamples, seed } from './bootstrap.js';
import { levels, type ModelName, modelNames } from './forecasts.js';
import { type BacktestResults, type Band, type Estimate, pitBins, type Summary } from './results.js';

/** What the page says beside the results. */
export interface BacktestFacts {
  readonly file: string;
  /** null: all. */
  readonly fold: number | null;
  readonly unit: HorizonUnit;
  /** The command line that made it. */
  readonly command: string;
  readonly results: BacktestResults;
}

const titles: Readonly<Record<ModelName, string>> = {
  served: 'Served forecast',
  no_change: 'No change',
  population: 'Population',
};

const modelSeries: Series = { [titles.served]: 'a', [titles.no_change]: 'b', [titles.population]: 'd' };

const share = (value: number): string => value.toFixed(3);
const loss = (value: number): string => value.toFixed(4);
const percent = (value: number): string => `${Math.round(100 * value)} %`;
const withBounds = ({ mean, low, high }: Estimate, shown: (value: number) => string): string =>
  `${shown(mean)} [${shown(low)},\u00a0${shown(high)}]`;

/** @returns a whole HTML document */
export function backtestPage({ file, fold, unit, command, results }: BacktestFacts): string {
  const { all, bands } = results;
  return htmlPage(`Backtest of ${file}${fold === null ? '' : `, fold ${fold}`}`, [
    runText(command),
    headlineSection(all, bands, unit),
    coverageSection(bands, unit),
    calibrationSection(results),
    lossSection(all, bands, unit),
    bandSection(bands, unit),
  ]);
}

/** Coverage this far from the level is accepted. */
const tolerance = 0.03;

/**
 * How coverage differs from its level: by more than the tolerance, and by more than chance, for the level lies outside
 * the 95 % interval; null where it does not.
 */
const fault = ({ mean, low, high }: Estimate, level: number): 'too narrow' | 'too wide' | null => {
  if (high < level && mean < level - tolerance) return 'too narrow';
  return low > level && mean > level + tolerance ? 'too wide' : null;
};

function coverageCell({ cases, coverage }: Summary, i: number): Cell {
  const estimate = coverage[i] as Estimate;
  const text = withBounds(estimate, share);
  if (cases < fewObservations) return { text, look: 'few' };
  const found = fault(estimate, levels[i] as number);
  return found === null ? { text } : { text: `${text} ${found}`, look: 'off' };
}

/** Marked bands of those with forecasts enough. */
function marked(bands: readonly Band[], i: number): string {
  const judged = bands.filter(({ cases }) => cases >= fewObservations);
  return `${judged.filter((band) => coverageCell(band, i).look === 'off').length} of ${judged.length}`;
}

function headlineSection(all: Summary, bands: readonly Band[], unit: HorizonUnit): string {
  const text = `${grouped(all.cases)} forecasts of the share of right answers over the next ${unit}, for ${grouped(all.learners)} learners. Each forecast uses models that were trained on other learners, and the learner’s answers up to the moment. An interval holds what it says if it covers the observed share as often as its level. Brackets are 95 % intervals over learners (bootstrap, ${grouped(resamples)} samples, seed ${seed}). A band of answers so far and horizon is marked where its coverage is more than ${100 * tolerance} points from the level, and by more than chance. Bands with fewer than ${fewObservations} forecasts, in grey italics, are not judged.`;
  const rows = levels.map((level, i): (Cell | string)[] => {
    const estimate = all.coverage[i] as Estimate;
    const below = all.below[i] as number;
    return [
      `${percent(level)} interval`,
      coverageCell(all, i),
      share(below),
      share(1 - estimate.mean - below),
      marked(bands, i),
    ];
  });
  const head = ['', 'Covers', 'Observed below it', 'Observed above it', 'Marked bands'];
  return section('Coverage', text, htmlTable(head, rows));
}

const historyText = ({ historyFrom, historyTo }: Band): string => rangeText(historyFrom, historyTo);

const historyAxis = (bands: readonly Band[]) =>
  ratioAxis('answers so far', [
    Math.min(...bands.map(({ historyFrom }) => historyFrom)),
    Math.max(...bands.map(({ historyMiddle }) => historyMiddle * Math.SQRT2)),
  ]);

const bandPoint = (
  series: string,
  band: Band,
  estimate: Estimate,
  shown: (value: number) => string,
): ChartPoint => ({
  series,
  x: band.historyMiddle,
  y: estimate.mean,
  low: estimate.low,
  high: estimate.high,
  note: `${withBounds(estimate, shown)} after ${historyText(band)} answers, ${grouped(band.cases)} forecasts for ${grouped(band.learners)} learners`,
});

const horizonsOf = (bands: readonly Band[]): number[] => [...new Set(bands.map(({ horizon }) => horizon))];

/** A chart of the bands of each horizon. */
const byHorizon = (
  bands: readonly Band[],
  chart: (own: readonly Band[], horizon: number) => string,
): string[] =>
  horizonsOf(bands).map((horizon) =>
    chart(
      bands.filter((band) => band.horizon === horizon),
      horizon,
    ),
  );

const levelSeries: Series = { '50 % interval': 'c', '80 % interval': 'a', '95 % interval': 'b' };

function coverageSection(bands: readonly Band[], unit: HorizonUnit): string {
  const text =
    'Share of forecasts whose interval holds what was observed, by answers so far. Dashed lines are the levels. Lines through the dots are 95 % intervals over learners. The narrower the intervals, the more a forecast says.';
  const chart = (own: readonly Band[], horizon: number): string => {
    const lows = own.flatMap(({ coverage }) => coverage.map(({ low }) => low));
    return chartFigure({
      title: `Coverage over ${grouped(horizon)} ${unit}`,
      x: historyAxis(own),
      y: shareAxis('share of forecasts inside', domainAround([...lows, 1], [0, 1], 0.6)),
      color: colorsOf(levelSeries),
      marks: [
        levelMark(levels),
        ...seriesMarks(
          levels.flatMap((level, i) =>
            own.map((band) =>
              bandPoint(`${percent(level)} interval`, band, band.coverage[i] as Estimate, share),
            ),
          ),
        ),
      ],
    });
  };
  const charts = [...byHorizon(bands, chart), widthChart(bands, unit)];
  return section('Coverage and sharpness by band', text, chartGrid(charts));
}

function widthChart(bands: readonly Band[], unit: HorizonUnit): string {
  const colors = ['a', 'b', 'c', 'd'] as const;
  const nameOf = (horizon: number): string => `${grouped(horizon)} ${unit}`;
  const widths = bands.map(({ width }) => width.high);
  return chartFigure({
    title: 'Width of the 80 % interval',
    x: historyAxis(bands),
    y: { label: 'mean width, as a share', grid: true, domain: domainAround([0, ...widths], [0, 1], 0.2) },
    color: colorsOf(
      Object.fromEntries(horizonsOf(bands).map((horizon, i) => [nameOf(horizon), colors[i % 4] ?? 'a'])),
    ),
    marks: seriesMarks(bands.map((band) => bandPoint(nameOf(band.horizon), band, band.width, share))),
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
    color: colorsOf({ [titles.served]: 'a' }),
    marks: [diagonalMark, ...seriesMarks(points)],
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

function lossSection(all: Summary, bands: readonly Band[], unit: HorizonUnit): string {
  const text =
    'All losses are better the lower; each forecast counts once. No change takes the learner’s last 50 answers for what follows, population the share of right answers of all others. The charts show the mean log loss of single answers by answers so far.';
  const figures = ['brier', 'logLoss', 'mae'] as const;
  const rows = modelNames.map((name) => [
    titles[name],
    ...figures.map((figure): Cell => {
      const best = Math.min(...modelNames.map((other) => all.models[other][figure].mean));
      const estimate = all.models[name][figure];
      return { text: withBounds(estimate, loss), look: estimate.mean === best ? 'best' : undefined };
    }),
  ]);
  const table = htmlTable(['Model', 'Brier', 'Log loss, nats', 'Mean absolute error'], rows);
  const chart = (own: readonly Band[], horizon: number): string => {
    const means = own.flatMap(({ models }) => modelNames.map((name) => models[name].logLoss.mean));
    return chartFigure({
      title: `Log loss over ${grouped(horizon)} ${unit}`,
      x: historyAxis(own),
      y: { domain: domainAround(means, [0, 10], 0.1), label: 'log loss, nats', grid: true },
      color: colorsOf(modelSeries),
      marks: seriesMarks(
        modelNames.flatMap((name) =>
          own.map((band) => {
            const { low, high, ...point } = bandPoint(titles[name], band, band.models[name].logLoss, loss);
            return point;
          }),
        ),
      ),
    });
  };
  return section('Losses', text, table, chartGrid(byHorizon(bands, chart)));
}

function bandSection(bands: readonly Band[], unit: HorizonUnit): string {
  const rows = bands.map((band): (Cell | string)[] => [
    historyText(band),
    grouped(band.horizon),
    grouped(band.cases),
    grouped(band.learners),
    ...levels.map((_, i) => coverageCell(band, i)),
    share(band.width.mean),
    ...modelNames.map((name) => loss(band.models[name].logLoss.mean)),
  ]);
  const head = [
    'Answers so far',
    `Horizon, ${unit}`,
    'Forecasts',
    'Learners',
    ...levels.map((level) => `${percent(level)} interval covers`),
    'Width of 80 %',
    'Log loss, served',
    'no change',
    'population',
  ];
  return section('Bands', 'Coverage, width of the 80 % interval and log loss.', htmlTable(head, rows, true));
}
