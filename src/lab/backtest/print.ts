/** What a backtest prints. */
import type { HorizonUnit } from '../../domain/prediction/accuracy-model.js';
import { aligned, grouped, rangeText, roundedJson } from '../report/numbers.js';
import { resamples, seed } from './bootstrap.js';
import { levels, type ModelName, modelNames } from './forecasts.js';
import type { BacktestResults, Band, Estimate, ModelLosses, Summary } from './results.js';

/** What is printed beside the results. */
export interface BacktestSummary {
  readonly file: string;
  /** null: all. */
  readonly fold: number | null;
  readonly unit: HorizonUnit;
  readonly seconds: number;
  readonly results: BacktestResults;
}

export const backtestJson = ({
  file,
  fold,
  unit,
  seconds,
  results: { all, bands },
}: BacktestSummary): string =>
  roundedJson({
    cases: all.cases,
    learners: all.learners,
    coverage: Object.fromEntries(levels.map((level, i) => [`${100 * level}`, all.coverage[i]?.mean ?? 0])),
    bands: bands.map(bandJson),
    models: modelsJson(all.models),
    file,
    fold,
    unit,
    width_80: all.width.mean,
    bootstrap: { seed, resamples },
    seconds,
  });

function bandJson({ historyFrom, historyTo, horizon, cases, learners, coverage, width, models }: Band) {
  const [half, most, nearlyAll] = coverage as readonly [Estimate, Estimate, Estimate];
  return {
    history_from: historyFrom,
    history_to: historyTo,
    horizon,
    cases,
    learners,
    coverage_80: most.mean,
    low: most.low,
    high: most.high,
    coverage_50: half.mean,
    coverage_95: nearlyAll.mean,
    width_80: width.mean,
    models: modelsJson(models),
  };
}

const modelsJson = (models: Band['models']) =>
  Object.fromEntries(
    modelNames.map((name) => {
      const { brier, logLoss, mae } = models[name];
      return [name, { brier: brier.mean, log_loss: logLoss.mean, mae: mae.mean }];
    }),
  );

export function backtestText({
  file,
  fold,
  unit,
  seconds,
  results: { all, bands },
}: BacktestSummary): string {
  const whose = fold === null ? 'every fold by models trained on the others' : `fold ${fold}`;
  return [
    `${file}: ${whose}, horizons in ${unit}, ${seconds.toFixed(1)} s`,
    `${grouped(all.cases)} forecasts for ${grouped(all.learners)} learners; intervals in brackets are 95 %, by ${grouped(resamples)} bootstrap samples of learners, seed ${seed}`,
    '',
    coverageTable(all),
    '',
    `Mean width of the 80 % interval: ${share(all.width.mean)}`,
    '',
    lossTable(all),
    '',
    bandTable(bands, unit),
    '',
    'WIDTH is that of the 80 % interval, BASELINE the better log loss of no_change and population.',
  ].join('\n');
}

const share = (value: number): string => value.toFixed(3);
const loss = (value: number): string => value.toFixed(4);
const bounds = ({ low, high }: Estimate, shown: (value: number) => string): string =>
  `[${shown(low)} ${shown(high)}]`;

const coverageTable = ({ coverage, below }: Summary): string =>
  aligned([
    ['INTERVAL', 'COVERS', '', 'BELOW', 'ABOVE'],
    ...levels.map((level, i) => coverageRow(level, coverage[i] as Estimate, below[i] as number)),
  ]);

const coverageRow = (level: number, covers: Estimate, below: number): string[] => [
  `${100 * level} %`,
  share(covers.mean),
  bounds(covers, share),
  share(below),
  share(1 - covers.mean - below),
];

const lossTable = ({ models }: Summary): string =>
  aligned([
    ['MODEL', 'BRIER', '', 'LOG LOSS', '', 'MAE', ''],
    ...modelNames.map((name) => lossRow(name, models[name])),
  ]);

const lossRow = (name: ModelName, { brier, logLoss, mae }: ModelLosses): string[] => [
  name,
  ...[brier, logLoss, mae].flatMap((estimate) => [loss(estimate.mean), bounds(estimate, loss)]),
];

/** A column without a head holds the interval of the one before it. */
function bandTable(bands: readonly Band[], unit: HorizonUnit): string {
  const counts = ['HISTORY', unit.toUpperCase(), 'FORECASTS', 'LEARNERS'];
  const figures = ['50 %', '80 %', '', '95 %', 'WIDTH', 'LOG LOSS', 'BASELINE'];
  return aligned([[...counts, ...figures], ...bands.map(bandRow)]);
}

function bandRow({
  historyFrom,
  historyTo,
  horizon,
  cases,
  learners,
  coverage,
  width,
  models,
}: Band): string[] {
  const [half, most, nearlyAll] = coverage as readonly [Estimate, Estimate, Estimate];
  const baseline = Math.min(models.no_change.logLoss.mean, models.population.logLoss.mean);
  return [
    rangeText(historyFrom, historyTo),
    grouped(horizon),
    grouped(cases),
    grouped(learners),
    share(half.mean),
    share(most.mean),
    bounds(most, share),
    share(nearlyAll.mean),
    share(width.mean),
    loss(models.served.logLoss.mean),
    loss(baseline),
  ];
}
