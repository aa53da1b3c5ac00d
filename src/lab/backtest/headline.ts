import type { HorizonUnit } from '../../domain/prediction/accuracy-model.js';
import { groupBy } from '../../lists.js';
import { formatNumber, formatRange, formatSigned } from '../report/format.js';
import type { BacktestResults, Band, TrendGroup } from './results.js';
import {
  countFailingBands,
  findBias,
  findCoverageFault,
  formatEstimate,
  formatPercent,
  isFew,
} from './tables.js';

/** Index of the 80 % interval. */
const judgedLevel = 1;

/** The first sentence sums up the backtest; the others list what fails. */
export function buildHeadline(results: BacktestResults, unit: HorizonUnit): string[] {
  const { all, bands, trends, isRecalibrated } = results;
  const { mean, low, high } = all.coverage[judgedLevel];
  const old = bands.filter(
    (band) => findCoverageFault(band, judgedLevel, band.uncalibrated.coverage) !== null,
  );
  const before = ` (before recalibration: ${formatPercent(all.uncalibrated.coverage.mean)}, ${old.length} failed)`;
  const verdict = bands.every(isFew)
    ? 'no band has enough forecasts and learners to be judged'
    : `${countFailingBands(bands, judgedLevel).text} bands fail`;
  const failed = bands.filter((band) => findCoverageFault(band, judgedLevel) !== null);
  const biased = trends.filter((group) => findBias(group) !== null).map(describeBias);
  return [
    `${formatPercent(mean)} of the 80 % intervals contained the observed share (95 % confidence interval ${Math.round(100 * low)} to ${formatPercent(high)}); ${verdict}${isRecalibrated ? before : ''}.`,
    ...[...groupBy(failed, ({ horizon }) => horizon)].map(
      ([horizon, own]) =>
        `Failed bands at a horizon of ${formatNumber(horizon)} ${unit}, by earlier answers: ${own.map(describeBand).join('; ')}.`,
    ),
    ...(biased.length > 0 ? [`Expected minus observed share, by past trend: ${biased.join('; ')}.`] : []),
  ];
}

const describeBand = (band: Band): string =>
  `${formatRange(band.historyFrom, band.historyTo)} (${(100 * band.coverage[judgedLevel].mean).toFixed(1)} %, ${findCoverageFault(band, judgedLevel)})`;

const describeBias = ({ trend, horizon, bias }: TrendGroup): string =>
  `${trend}, ${horizon === null ? 'all horizons' : `horizon ${formatNumber(horizon)}`} ${formatEstimate(bias, formatSigned)}`;
