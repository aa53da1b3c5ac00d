import type { HorizonUnit } from '../../domain/prediction/accuracy-model.js';
import { formatNumber, formatRange } from '../report/format.js';
import { type Cell, minObservations, type Row } from '../report/page.js';
import { intervalLevels, type ModelName, modelNames } from './forecasts.js';
import type { Band, CaseSummary, Estimate } from './results.js';

export const formatShare = (value: number): string => value.toFixed(3);
export const formatLoss = (value: number): string => value.toFixed(4);
export const formatPercent = (value: number): string => `${Math.round(100 * value)} %`;
export const formatEstimate = ({ mean, low, high }: Estimate, format: typeof formatShare): string =>
  `${format(mean)} [${format(low)}\u00a0${format(high)}]`;

/** Accepted distance from the level. With fewer learners, an interval that contains the level also passes. */
export const coverageTolerance = 0.03;
export const manyLearners = 500;

/** Null if the coverage is acceptable, or cannot be judged. */
export function findCoverageFault({ cases, learners, coverage }: CaseSummary, i: number): string | null {
  const [{ mean, low, high }, level] = [coverage[i] as Estimate, intervalLevels[i] as number];
  const mayBeChance = learners < manyLearners && low <= level && level <= high;
  if (cases < minObservations || mayBeChance || Math.abs(mean - level) <= coverageTolerance) return null;
  return mean < level ? 'too narrow' : 'too wide';
}

function coverageCell(summary: CaseSummary, i: number, bounds = true): Cell {
  const estimate = summary.coverage[i] as Estimate;
  const text = bounds ? formatEstimate(estimate, formatShare) : formatShare(estimate.mean);
  const fault = findCoverageFault(summary, i);
  if (fault !== null) return { text: `${text} ${fault}`, look: 'off' };
  return isFew(summary) ? { text, look: 'few' } : { text };
}

export const isFew = ({ cases }: CaseSummary): boolean => cases < minObservations;

export const coverageHead = [
  'Interval',
  'Coverage',
  'Below',
  'Above',
  'Forecasts',
  'Learners',
  'Failed bands',
];

export const coverageRows = (all: CaseSummary, bands: readonly Band[]): Row[] =>
  intervalLevels.map((level, i) => {
    const below = all.below[i] as number;
    const above = 1 - (all.coverage[i] as Estimate).mean - below;
    return [
      ...[formatPercent(level), coverageCell(all, i), formatShare(below), formatShare(above)],
      ...[formatNumber(all.cases), formatNumber(all.learners), countFailingBands(bands, i)],
    ];
  });

export function countFailingBands(bands: readonly Band[], i: number): Cell {
  const judged = bands.filter((band) => !isFew(band));
  const failed = judged.filter((band) => findCoverageFault(band, i) !== null).length;
  return { text: `${failed} of ${judged.length}`, look: failed > 0 ? 'off' : undefined };
}

export const lossHead = ['Model', 'Brier', 'Log loss, nats', 'Mean absolute error', 'Forecasts', 'Learners'];

export const lossRows = (all: CaseSummary, formatName = (name: ModelName): string => name): Row[] =>
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

export const bandHead = (unit: HorizonUnit): string[] => [
  ...['Earlier answers', unit === 'days' ? 'Days' : 'Answers', 'Forecasts', 'Learners'],
  ...['50 %', '80 %', '95 %', 'Width', 'Log loss', 'No change', 'Population'],
];

/** @param boundedLevels their cells show bounds */
export const bandRows = (bands: readonly Band[], boundedLevels: readonly number[]): Row[] =>
  bands.map((band) => [
    formatRange(band.historyFrom, band.historyTo),
    formatNumber(band.horizon),
    formatNumber(band.cases),
    formatNumber(band.learners),
    ...intervalLevels.map((level, i) => coverageCell(band, i, boundedLevels.includes(level))),
    ...[
      formatShare(band.width.mean),
      ...modelNames.map((name) => formatLoss(band.models[name].logLoss.mean)),
    ].map((text): Cell => ({ text, look: isFew(band) ? 'few' : undefined })),
  ]);
