import type { HorizonUnit } from '../../domain/prediction/accuracy-model.js';
import { groupBy } from '../../lists.js';
import { type Chart, chartFigure } from '../report/chart.js';
import { formatNumber, formatRange } from '../report/format.js';
import { barMark, computeDomain, diagonalMark, levelMark, logAxis, shareAxis } from '../report/marks.js';
import { chartGrid, section } from '../report/page.js';
import { intervalLevels, type ModelName, modelNames } from './forecasts.js';
import { type BacktestResults, type Band, type Estimate, listHorizons, pitBins } from './results.js';
import { formatEstimate, formatLoss, formatPercent, formatShare } from './tables.js';

export const modelTitles: Readonly<Record<ModelName, string>> = {
  served: 'Served forecast',
  no_change: 'No change',
  population: 'Population',
};

/** Repeats the values if there are more names. */
const zipNames = <Value>(names: readonly string[], values: readonly Value[]): Record<string, Value> =>
  Object.fromEntries(names.map((name, i) => [name, values[i % values.length] as Value]));

function bandChart(
  bands: readonly Band[],
  selectEstimates: (band: Band) => Readonly<Record<string, Estimate>>,
  { shown = formatShare, ...chart }: Omit<Chart, 'x'> & { readonly shown?: typeof formatShare },
): string {
  const first = Math.min(...bands.map(({ historyFrom }) => historyFrom));
  const last = Math.max(...bands.map(({ historyMiddle }) => historyMiddle * Math.SQRT2));
  const points = bands.flatMap((band) =>
    Object.entries(selectEstimates(band)).map(([series, estimate]) => ({
      ...{ series, x: band.historyMiddle, y: estimate.mean },
      // Losses have no bounds: they would overlap, because all models predict the same answers.
      ...(shown === formatShare && { low: estimate.low, high: estimate.high }),
      note: `${formatEstimate(estimate, shown)} after ${formatRange(band.historyFrom, band.historyTo)} answers (${formatNumber(band.cases)} forecasts for ${formatNumber(band.learners)} learners)`,
    })),
  );
  return chartFigure({ x: logAxis('earlier answers', [first, last]), points, ...chart });
}

const chartHorizons = (bands: readonly Band[], chart: (own: Band[], horizon: string) => string): string[] =>
  [...groupBy(bands, ({ horizon }) => horizon)].map(([horizon, own]) => chart(own, formatNumber(horizon)));

const levelNames = intervalLevels.map((level) => `${formatPercent(level)} interval`);

export function coverageSection(bands: readonly Band[], unit: HorizonUnit): string {
  const text =
    'Share of forecasts with the observed share inside the interval, by number of earlier answers. Dashed lines mark the levels of the intervals. Vertical lines are 95 % confidence intervals over learners. The last chart shows the width of the 80 % interval: narrower is better if the coverage equals the level.';
  const charts = chartHorizons(bands, (own, horizon) => {
    const lows = own.flatMap(({ coverage }) => coverage.map(({ low }) => low));
    return bandChart(own, ({ coverage }) => zipNames(levelNames, coverage), {
      title: `Coverage over ${horizon} ${unit}`,
      y: shareAxis('coverage', computeDomain([...lows, 1], [0, 1], 0.6)),
      series: zipNames(levelNames, ['c', 'a', 'b']),
      marks: [levelMark(intervalLevels)],
    });
  });
  const nameOf = (horizon: number): string => `${formatNumber(horizon)} ${unit}`;
  const widths = bands.map(({ width }) => width.high);
  const widthChart = bandChart(bands, ({ horizon, width }) => ({ [nameOf(horizon)]: width }), {
    title: 'Width of the 80 % interval',
    y: { label: 'mean width', grid: true, domain: computeDomain([0, ...widths], [0, 1], 0.2) },
    series: zipNames(listHorizons(bands).map(nameOf), ['a', 'b', 'c', 'd']),
  });
  return section('Coverage and width by band', text, chartGrid([...charts, widthChart]));
}

export function calibrationSection({ reliability, pit }: BacktestResults): string {
  const text =
    'Left: forecasts in ten groups of equal size by expected share, with the observed share of each group. On the dashed line, forecasts are correct on average. Right: histogram of the probability integral transform (PIT) in 20 bins. If forecasts are calibrated, all columns reach the dashed line. High columns at both ends mean that the intervals are too narrow. The uneven columns in the middle are expected: within the 50 % interval, the distribution passes through the expected share, which is below the median.';
  const points = reliability.map(({ expected, observed, cases }) => ({
    series: modelTitles.served,
    x: expected,
    y: observed,
    note: `expected ${formatShare(expected)}, observed ${formatShare(observed)}, ${formatNumber(cases)} forecasts`,
  }));
  const forecast = chartFigure({
    title: 'Expected and observed share',
    x: shareAxis('expected share of correct answers'),
    y: shareAxis('observed share of correct answers'),
    series: { [modelTitles.served]: 'a' },
    marks: [diagonalMark],
    points,
  });
  const columns = pit.map((value, bin) => ({
    from: bin / pitBins,
    to: (bin + 1) / pitBins,
    value: value * pitBins,
    note: `${formatPercent(bin / pitBins)} to ${formatPercent((bin + 1) / pitBins)}: share ${formatShare(value)} of the forecasts`,
  }));
  const place = chartFigure({
    title: 'Histogram of PIT values',
    x: shareAxis('forecast probability of a lower share (PIT)'),
    y: {
      domain: [0, Math.max(2, ...columns.map(({ value }) => value))],
      label: 'forecasts, relative to uniform',
    },
    marks: [barMark(columns), levelMark([1])],
  });
  return section('Calibration', text, chartGrid([forecast, place]));
}

export const lossCharts = (bands: readonly Band[], unit: HorizonUnit): string[] =>
  chartHorizons(bands, (own, horizon) => {
    const lossesOf = ({ models }: Band) => modelNames.map((name) => models[name].logLoss);
    const means = own.flatMap(lossesOf).map(({ mean }) => mean);
    return bandChart(own, (band) => zipNames(Object.values(modelTitles), lossesOf(band)), {
      title: `Log loss over ${horizon} ${unit}`,
      y: { domain: computeDomain(means, [0, 10], 0.1), label: 'log loss, nats', grid: true },
      series: zipNames(Object.values(modelTitles), ['a', 'b', 'd']),
      shown: formatLoss,
    });
  });
