/** The backtest as a page for people. */
import type { HorizonUnit } from '../../domain/prediction/accuracy-model.js';
import { type ChartPoint, type ChartSeries, chartFigure, type SeriesStyle } from '../report/chart.js';
import { grouped, rangeText } from '../report/numbers.js';
import { type Cell, chartGrid, htmlPage, htmlTable, section } from '../report/page.js';
import { domainAround } from '../report/scale.js';
import { resamples, seed } from './bootstrap.js';
import { levels, type ModelName, modelNames } from './forecasts.js';
import { type BacktestResults, type Band, type Estimate, pitBins, type Summary } from './results.js';

/** What the page tells beside the results. */
export interface BacktestFacts {
  readonly file: string;
  /** null: all. */
  readonly fold: number | null;
  readonly unit: HorizonUnit;
  readonly results: BacktestResults;
}

const titles: Readonly<Record<ModelName, string>> = {
  served: 'Served forecast',
  no_change: 'No change',
  population: 'Population',
};

const styles: Readonly<Record<ModelName, SeriesStyle>> = { served: 'a', no_change: 'b', population: 'd' };
const levelStyles: readonly SeriesStyle[] = ['c', 'a', 'b'];

/** @returns a whole HTML document */
export function backtestPage({ file, fold, unit, results }: BacktestFacts): string {
  const { all, bands } = results;
  return htmlPage(`Backtest of ${file}${fold === null ? '' : `, fold ${fold}`}`, [
    figuresSection(all, unit),
    coverageSection(bands, unit),
    calibrationSection(results),
    lossSection(bands, unit),
    tableSection(bands, unit),
  ]);
}

const share = (value: number): string => value.toFixed(3);
const loss = (value: number): string => value.toFixed(4);
const percent = (value: number): string => `${Math.round(100 * value)} %`;
const withBounds = ({ mean, low, high }: Estimate, shown: (value: number) => string): string =>
  `${shown(mean)} [${shown(low)}, ${shown(high)}]`;

function figuresSection(all: Summary, unit: HorizonUnit): string {
  const text = `${grouped(all.cases)} forecasts of the share of right answers over the next ${unit}, for ${grouped(all.learners)} learners, each by models trained on other learners and from the learner’s answers up to the moment. In brackets are 95 % intervals over learners (bootstrap, ${grouped(resamples)} samples, seed ${seed}). All losses are better the lower; each forecast counts once.`;
  const best = (of: (name: ModelName) => number): number => Math.min(...modelNames.map(of));
  const rows = modelNames.map((name): Cell[] => [
    { text: titles[name] },
    ...(['brier', 'logLoss', 'mae'] as const).map((figure) => ({
      text: withBounds(all.models[name][figure], loss),
      best: all.models[name][figure].mean === best((other) => all.models[other][figure].mean),
    })),
  ]);
  return section(
    'Figures',
    text,
    htmlTable(['Model', 'Brier', 'Log loss, nats', 'Mean absolute error'], rows),
  );
}

const horizonsOf = (bands: readonly Band[]): number[] => [...new Set(bands.map(({ horizon }) => horizon))];

/** Charts of the bands of each horizon. */
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

const historyText = ({ historyFrom, historyTo }: Band): string => rangeText(historyFrom, historyTo);

const historyAxis = (bands: readonly Band[]) => ({
  low: Math.min(...bands.map(({ historyFrom }) => historyFrom)),
  high: Math.max(...bands.map(({ historyMiddle }) => historyMiddle * Math.SQRT2)),
  logarithmic: true,
  label: 'answers so far',
  format: grouped,
});

const bandPoint = (
  band: Band,
  { mean, low, high }: Estimate,
  shown: (value: number) => string,
): ChartPoint => ({
  x: band.historyMiddle,
  y: mean,
  range: { low, high },
  note: `${shown(mean)} [${shown(low)}, ${shown(high)}] after ${historyText(band)} answers, ${grouped(band.cases)} forecasts for ${grouped(band.learners)} learners`,
});

const unit01 = { low: 0, high: 1 } as const;

const lowest = (bands: readonly Band[]): number[] =>
  bands.flatMap(({ coverage }) => coverage.map(({ low }) => low));

function coverageSection(bands: readonly Band[], unit: HorizonUnit): string {
  const text =
    'Share of forecasts whose interval holds what was observed, by answers so far. On the dashed lines, intervals hold as often as they say. Lines through the dots are 95 % intervals over learners. The narrower the intervals are, the more a forecast says.';
  const chart = (own: readonly Band[], horizon: number): string =>
    chartFigure({
      title: `Coverage over ${grouped(horizon)} ${unit}`,
      x: historyAxis(own),
      y: {
        ...domainAround([...lowest(own), 1], unit01, leastCoverages),
        label: 'share of forecasts inside',
        format: percent,
      },
      levels,
      series: levels.map((level, i) => ({
        name: `${percent(level)} interval`,
        style: levelStyles[i] as SeriesStyle,
        points: own.map((band) => bandPoint(band, band.coverage[i] as Estimate, share)),
      })),
    });
  return section(
    'Coverage and sharpness',
    text,
    chartGrid([...byHorizon(bands, chart), widthChart(bands, unit)]),
  );
}

const horizonStyles: readonly SeriesStyle[] = ['a', 'b', 'c', 'd'];

const widthChart = (bands: readonly Band[], unit: HorizonUnit): string =>
  chartFigure({
    title: 'Width of the 80 % interval',
    x: historyAxis(bands),
    y: {
      ...domainAround([0, ...bands.map(({ width }) => width.high)], unit01, leastWidths),
      label: 'mean width, as a share',
      format: share,
    },
    series: horizonsOf(bands).map((horizon, i) => ({
      name: `${grouped(horizon)} ${unit}`,
      style: horizonStyles[i % horizonStyles.length] as SeriesStyle,
      points: bands
        .filter((band) => band.horizon === horizon)
        .map((band) => bandPoint(band, band.width, share)),
    })),
  });

/** Ranges that the charts of coverage and of width show at least. */
const leastCoverages = 0.6;
const leastWidths = 0.2;

function calibrationSection({ reliability, pit }: BacktestResults): string {
  const text =
    'Left: tenths of the forecasts by the expected share, against what was observed; on the dashed line forecasts are right on average. Right: how often the outcome fell into each twentieth of its forecast distribution; where forecasts are calibrated, all columns reach the dashed line, those of too narrow ones rise at both ends. Inside the 50 % interval the distribution is drawn through the expected share, which lies below the median: hence a dent and a bump there.';
  return section('Calibration', text, chartGrid([reliabilityChart(reliability), pitChart(pit)]));
}

function reliabilityChart(reliability: BacktestResults['reliability']): string {
  const observed: ChartSeries = {
    name: titles.served,
    style: 'a',
    points: reliability.map(({ expected, observed, cases }) => ({
      x: expected,
      y: observed,
      note: `expected ${share(expected)}, observed ${share(observed)}, ${grouped(cases)} forecasts`,
    })),
  };
  return chartFigure({
    title: 'Forecast against observed',
    x: { ...unit01, label: 'expected share of right answers', format: percent },
    y: { ...unit01, label: 'observed share', format: percent },
    series: [observed],
    diagonal: true,
  });
}

function pitChart(pit: BacktestResults['pit']): string {
  const most = Math.max(2, ...pit.map((value) => value * pitBins));
  return chartFigure({
    title: 'Place of the outcome in its forecast (PIT)',
    x: { ...unit01, label: 'probability that the forecast gave to less', format: percent },
    y: { low: 0, high: most, label: 'forecasts, against even', format: (value) => value.toFixed(1) },
    series: [],
    levels: [1],
    columns: pit.map((value, bin) => ({
      from: bin / pitBins,
      to: (bin + 1) / pitBins,
      value: value * pitBins,
      note: `${percent(bin / pitBins)} to ${percent((bin + 1) / pitBins)}: ${share(value)} of the forecasts`,
    })),
  });
}

/** Width of the band of losses that a chart shows at least, so that noise does not look like news. */
const leastLosses = 0.1;

function lossSection(bands: readonly Band[], unit: HorizonUnit): string {
  const text =
    'Mean log loss of single answers by answers so far. No change takes the learner’s last 50 answers for what follows, population the share of right answers of all others.';
  const chart = (own: readonly Band[], horizon: number): string => {
    const estimates = own.flatMap(({ models }) => modelNames.map((name) => models[name].logLoss.mean));
    return chartFigure({
      title: `Log loss over ${grouped(horizon)} ${unit}`,
      x: historyAxis(own),
      y: {
        ...domainAround(estimates, { low: 0, high: 10 }, leastLosses),
        label: 'log loss, nats',
        format: share,
      },
      series: modelNames.map((name) => ({
        name: titles[name],
        style: styles[name],
        points: own.map((band) => ({
          x: band.historyMiddle,
          y: band.models[name].logLoss.mean,
          note: `${withBounds(band.models[name].logLoss, loss)} after ${historyText(band)} answers`,
        })),
      })),
    });
  };
  return section('Losses', text, chartGrid(byHorizon(bands, chart)));
}

function tableSection(bands: readonly Band[], unit: HorizonUnit): string {
  const rows = bands.map((band): Cell[] => {
    const { coverage, models } = band;
    return [
      historyText(band),
      grouped(band.horizon),
      grouped(band.cases),
      grouped(band.learners),
      ...coverage.map((estimate) => withBounds(estimate, share)),
      share(band.width.mean),
      ...modelNames.map((name) => loss(models[name].logLoss.mean)),
    ].map((text) => ({ text }));
  });
  const head = [
    'Answers so far',
    `Horizon, ${unit}`,
    'Forecasts',
    'Learners',
    ...levels.map((level) => `${percent(level)} interval covers`),
    'Width',
    ...modelNames.map((name) => `Log loss, ${titles[name].toLowerCase()}`),
  ];
  return section('Bands', 'Coverage, width of the 80 % interval and log loss.', htmlTable(head, rows));
}
