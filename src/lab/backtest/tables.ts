import type { HorizonUnit } from '../../domain/prediction/accuracy-model.js';
import { grouped, rangeText } from '../report/numbers.js';
import { type Cell, fewObservations, type Row } from '../report/page.js';
import { levels, type ModelName, modelNames } from './forecasts.js';
import type { Band, Estimate, Summary } from './results.js';

export const share = (value: number): string => value.toFixed(3);
export const loss = (value: number): string => value.toFixed(4);
export const percent = (value: number): string => `${Math.round(100 * value)} %`;
export const withBounds = ({ mean, low, high }: Estimate, shown: typeof share): string =>
  `${shown(mean)} [${shown(low)}\u00a0${shown(high)}]`;

/** Accepted distance from the level. With fewer learners, an interval that contains the level also passes. */
export const tolerance = 0.03;
export const manyLearners = 500;

/** Null if the coverage is acceptable, or cannot be judged. */
export function faultOf({ cases, learners, coverage }: Summary, i: number): string | null {
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

export const isFew = ({ cases }: Summary): boolean => cases < fewObservations;

export const coverageHead = [
  'Interval',
  'Covers',
  'Below',
  'Above',
  'Forecasts',
  'Learners',
  'Bands that fail',
];

export const coverageRows = (all: Summary, bands: readonly Band[]): Row[] =>
  levels.map((level, i) => {
    const below = all.below[i] as number;
    const above = 1 - (all.coverage[i] as Estimate).mean - below;
    return [
      ...[percent(level), coverageCell(all, i), share(below), share(above)],
      ...[grouped(all.cases), grouped(all.learners), failing(bands, i)],
    ];
  });

export function failing(bands: readonly Band[], i: number): Cell {
  const judged = bands.filter((band) => !isFew(band));
  const failed = judged.filter((band) => faultOf(band, i) !== null).length;
  return { text: `${failed} of ${judged.length}`, look: failed > 0 ? 'off' : undefined };
}

export const lossHead = ['Model', 'Brier', 'Log loss, nats', 'Mean absolute error', 'Forecasts', 'Learners'];

export const lossRows = (all: Summary, nameOf = (name: ModelName): string => name): Row[] =>
  modelNames.map((name) => [
    nameOf(name),
    ...(['brier', 'logLoss', 'mae'] as const).map((figure): Cell => {
      const best = Math.min(...modelNames.map((other) => all.models[other][figure].mean));
      const estimate = all.models[name][figure];
      return { text: withBounds(estimate, loss), look: estimate.mean === best ? 'best' : undefined };
    }),
    ...[grouped(all.cases), grouped(all.learners)],
  ]);

export const bandText =
  'Of the forecasts of each band: share inside the 50, 80 and 95 % intervals, mean width of the 80 % interval, and log loss of the served forecast and of the two others.';

export const bandHead = (unit: HorizonUnit): string[] => [
  ...['Answers so far', unit === 'days' ? 'Days' : 'Answers', 'Forecasts', 'Learners'],
  ...['50 %', '80 %', '95 %', 'Width', 'Log loss', 'No change', 'Population'],
];

/** @param boundedLevels their cells show bounds */
export const bandRows = (bands: readonly Band[], boundsOf: readonly number[]): Row[] =>
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
