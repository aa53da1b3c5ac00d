import { accuracyConstants } from '../../domain/base/accuracy-constants.js';
import type { HorizonUnit } from '../../domain/prediction/accuracy-model.js';
import { trendConstants } from '../../domain/tracing/tracing-constants.js';
import { formatNumber, formatRange, formatSigned } from '../report/format.js';
import { type Cell, minObservations, type Row } from '../report/page.js';
import { intervalLevels, type ModelName, modelNames } from './forecasts.js';
import type { BacktestResults, Band, CaseSummary, Estimate, TrendGroup } from './results.js';

export const formatShare = (value: number): string => value.toFixed(3);
export const formatLoss = (value: number): string => value.toFixed(4);
export const formatPercent = (value: number): string => `${Math.round(100 * value)} %`;
/** One learner, or equal values, have no interval. */
export const formatEstimate = ({ mean, low, high }: Estimate, format: typeof formatShare): string =>
  low === high ? format(mean) : `${format(mean)} [${format(low)}\u00a0${format(high)}]`;

const { coverageSlack } = accuracyConstants;
const maxBias = 0.03;
/** With fewer learners, the bootstrap intervals are too narrow. */
const minLearners = 50;
/** Of a difference at the limit. */
const roundingError = 1e-9;

export const ruleText = `A band (earlier answers and horizon) fails if its coverage differs from the level by more than ${100 * coverageSlack} points. A question mark means that the 95 % confidence interval of its coverage includes the level. Figures from fewer than ${minObservations} forecasts or ${minLearners} learners are not judged.`;

export const isFew = ({ cases, learners }: CaseSummary): boolean =>
  cases < minObservations || learners < minLearners;

/** Null if the coverage is acceptable, or cannot be judged. */
export function findCoverageFault(summary: CaseSummary, i: number, coverage = summary.coverage[i]) {
  const [{ mean, low, high }, level] = [coverage as Estimate, intervalLevels[i] as number];
  if (isFew(summary) || Math.abs(mean - level) <= coverageSlack + roundingError) return null;
  return `${mean < level ? 'too narrow' : 'too wide'}${low <= level && level <= high ? '?' : ''}`;
}

/** Null if the bias is small or may be chance, or cannot be judged. */
export function findBias(group: CaseSummary): string | null {
  const { mean, low, high } = group.bias;
  if (isFew(group) || Math.abs(mean) <= maxBias || (low <= 0 && high >= 0)) return null;
  return mean > 0 ? 'too high' : 'too low';
}

function coverageCell(summary: CaseSummary, i: number, bounds = true): Cell {
  const estimate = summary.coverage[i] as Estimate;
  const text = bounds ? formatEstimate(estimate, formatShare) : formatShare(estimate.mean);
  return judgedCell(text, summary, findCoverageFault(summary, i));
}

const judgedCell = (text: string, summary: CaseSummary, fault: string | null = null): Cell =>
  fault === null
    ? { text, look: isFew(summary) ? 'few' : undefined }
    : { text: `${text} ${fault}`, look: 'off' };

const coverageHead = ({ isRecalibrated }: BacktestResults): string[] => [
  ...['Interval', 'Coverage', 'Below', 'Above', 'Mean width'],
  ...[...(isRecalibrated ? beforeHead : []), 'Forecasts', 'Learners', 'Failed bands'],
];

/** Before recalibration. */
const beforeHead = ['80 % before', 'Width before'];
const formatBefore = ({ uncalibrated: { coverage, width } }: CaseSummary): string[] =>
  [coverage, width].map(({ mean }) => formatShare(mean));

const coverageRows = ({ all, bands, isRecalibrated }: BacktestResults): Row[] =>
  intervalLevels.map((level, i) => {
    const below = all.below[i] as number;
    const above = Math.max(0, 1 - (all.coverage[i] as Estimate).mean - below);
    const widths = [formatShare(all.width.mean), ...(isRecalibrated ? formatBefore(all) : [])];
    return [
      ...[formatPercent(level), coverageCell(all, i), formatShare(below), formatShare(above)],
      ...widths.map((text) => (i === 1 ? text : '')),
      ...[formatNumber(all.cases), formatNumber(all.learners), countFailingBands(bands, i)],
    ];
  });

export function countFailingBands(bands: readonly Band[], i: number): Cell {
  const judged = bands.filter((band) => !isFew(band));
  const failed = judged.filter((band) => findCoverageFault(band, i) !== null).length;
  return { text: `${failed} of ${judged.length}`, look: failed > 0 ? 'off' : undefined };
}

export const trendText = `Forecasts by the change of the learner’s results before the forecast (about the last 100 answers, compared with earlier answers to the same skills): falling from −${trendConstants.clearChange}, rising from +${trendConstants.clearChange}. Bias is the expected minus the observed share. It is marked if it is beyond ${maxBias}, its 95 % confidence interval excludes 0, and the numbers of forecasts and learners are large enough.`;

const trendHead = (unit: HorizonUnit): string[] => [
  ...['Trend', unit === 'days' ? 'Days' : 'Answers', 'Forecasts', 'Learners'],
  ...['Expected', 'Observed', 'Bias', 'RMSE', 'Coverage of 80 %'],
];

const trendRows = (groups: readonly TrendGroup[]): Row[] =>
  groups.map((group) => [
    ...[group.trend, group.horizon === null ? 'all' : formatNumber(group.horizon)],
    ...[formatNumber(group.cases), formatNumber(group.learners)],
    judgedCell(formatShare(group.expected.mean), group),
    judgedCell(formatShare(group.observed.mean), group),
    judgedCell(formatEstimate(group.bias, formatSigned), group, findBias(group)),
    judgedCell(formatShare(group.rmse), group),
    coverageCell(group, 1),
  ]);

const lossHead = ['Model', 'Brier', 'Log loss, nats', 'Mean absolute error', 'Forecasts', 'Learners'];

const lossRows = (all: CaseSummary, formatName: (name: ModelName) => string): Row[] =>
  modelNames.map((name) => [
    formatName(name),
    ...(['brier', 'logLoss', 'mae'] as const).map((figure): Cell => {
      const best = Math.min(...modelNames.map((other) => all.models[other][figure].mean));
      const estimate = all.models[name][figure];
      return {
        text: formatEstimate(estimate, formatLoss),
        look: estimate.mean === best ? 'best' : undefined,
      };
    }),
    ...[formatNumber(all.cases), formatNumber(all.learners)],
  ]);

export const bandText =
  'For each band of earlier answers and horizon: coverage of the 50, 80 and 95 % intervals, mean width of the 80 % interval, and log loss of the served forecast and of the two reference forecasts.';

const bandHead = (unit: HorizonUnit, { isRecalibrated }: BacktestResults): string[] => [
  ...['Earlier answers', unit === 'days' ? 'Days' : 'Answers', 'Forecasts', 'Learners'],
  ...['50 %', '80 %', '95 %', 'Width', ...(isRecalibrated ? beforeHead : [])],
  ...['Log loss', 'No change', 'Population'],
];

const bandRows = ({ bands, isRecalibrated }: BacktestResults, boundedLevels: readonly number[]): Row[] =>
  bands.map((band) => {
    const widths = [formatShare(band.width.mean), ...(isRecalibrated ? formatBefore(band) : [])];
    const losses = modelNames.map((name) => formatLoss(band.models[name].logLoss.mean));
    return [
      ...[formatRange(band.historyFrom, band.historyTo), formatNumber(band.horizon)],
      ...[formatNumber(band.cases), formatNumber(band.learners)],
      ...intervalLevels.map((level, i) => coverageCell(band, i, boundedLevels.includes(level))),
      ...[...widths, ...losses].map((text) => judgedCell(text, band)),
    ];
  });

/** Heads and rows. @param boundedLevels levels with bounds in the bands */
export const buildTables = (
  results: BacktestResults,
  unit: HorizonUnit,
  boundedLevels: readonly number[],
  formatName = (name: ModelName): string => name,
) =>
  ({
    coverage: [coverageHead(results), coverageRows(results)],
    losses: [lossHead, lossRows(results.all, formatName)],
    trends: [trendHead(unit), trendRows(results.trends)],
    bands: [bandHead(unit, results), bandRows(results, boundedLevels)],
  }) as const;
