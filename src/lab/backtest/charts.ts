import type { HorizonUnit } from '../../domain/prediction/accuracy-model.js';
import { groupBy } from '../../lists.js';
import { type Chart, chartFigure } from '../report/chart.js';
import { barMark, diagonalMark, domainAround, levelMark, ratioAxis, shareAxis } from '../report/marks.js';
import { grouped, rangeText } from '../report/numbers.js';
import { chartGrid, section } from '../report/page.js';
import { levels, type ModelName, modelNames } from './forecasts.js';
import { type BacktestResults, type Band, type Estimate, horizonsOf, pitBins } from './results.js';
import { loss, percent, share, withBounds } from './tables.js';

export const titles: Readonly<Record<ModelName, string>> = {
  served: 'Served forecast',
  no_change: 'No change',
  population: 'Population',
};

/** Repeats the values if there are more names. */
const named = <Value>(names: readonly string[], values: readonly Value[]): Record<string, Value> =>
  Object.fromEntries(names.map((name, i) => [name, values[i % values.length] as Value]));

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
      // Bounds would overlap, because all models predict the same answers.
      ...(shown === share && { low: estimate.low, high: estimate.high }),
      note: `${withBounds(estimate, shown)} after ${rangeText(band.historyFrom, band.historyTo)} answers, ${grouped(band.cases)} forecasts for ${grouped(band.learners)} learners`,
    })),
  );
  return chartFigure({ x: ratioAxis('answers so far', [first, last]), points, ...chart });
}

const byHorizon = (bands: readonly Band[], chart: (own: Band[], horizon: string) => string): string[] =>
  [...groupBy(bands, ({ horizon }) => horizon)].map(([horizon, own]) => chart(own, grouped(horizon)));

const levelNames = levels.map((level) => `${percent(level)} interval`);

export function coverageSection(bands: readonly Band[], unit: HorizonUnit): string {
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

export function calibrationSection({ reliability, pit }: BacktestResults): string {
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

export const lossCharts = (bands: readonly Band[], unit: HorizonUnit): string[] =>
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
