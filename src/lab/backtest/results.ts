import { setImmediate as nextTurn } from 'node:timers/promises';
import { average } from '../../domain/base/common.js';
import { computeShareLoss } from '../../domain/base/prediction-metrics.js';
import { historyBands, isInBand } from '../../domain/prediction/correction-grid.js';
import { distinct, indices } from '../../lists.js';
import { bootstrapLearners } from '../evaluate/bootstrap.js';
import { intervalLevels, type ModelName, modelNames, type ScoredCase, trendNames } from './forecasts.js';

/** Mean over cases with a 95 % interval over learners. */
export interface Estimate {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}

export type CaseSummary = Awaited<ReturnType<typeof summarizeCases>>;
export type TrendGroup = Awaited<ReturnType<typeof computeTrends>>[number];
export type Band = Awaited<ReturnType<typeof computeBands>>[number];
export type BacktestResults = Awaited<ReturnType<typeof computeResults>>;

/** @param scored not empty */
export const computeResults = async (scored: readonly ScoredCase[]) => ({
  all: await summarizeCases(scored),
  isRecalibrated: scored.some(({ uncalibrated }) => uncalibrated !== null),
  bands: await computeBands(scored),
  trends: await computeTrends(scored),
  reliability: computeReliability(scored),
  pit: computePitHistogram(scored),
});

async function computeBands(scored: readonly ScoredCase[]) {
  const bands = [];
  for (const horizon of listHorizons(scored)) {
    for (const history of historyBands) {
      const own = scored.filter((one) => one.horizon === horizon && isInBand(history, one.history));
      if (own.length === 0) continue;
      bands.push({
        historyFrom: history.from,
        /** Inclusive; null: no end. */
        historyTo: Number.isFinite(history.to) ? history.to - 1 : null,
        historyMiddle: history.middle,
        horizon,
        ...(await summarizeCases(own)),
      });
    }
  }
  return bands;
}

/** By trend at the forecast; `horizon` null: all. */
async function computeTrends(scored: readonly ScoredCase[]) {
  const groups = [];
  for (const trend of trendNames)
    for (const horizon of [null, ...listHorizons(scored)]) {
      const own = scored.filter((one) => one.trend === trend && [null, one.horizon].includes(horizon));
      if (own.length > 0) groups.push({ trend, horizon, ...(await summarizeCases(own)) });
    }
  return groups;
}

export const listHorizons = (of: readonly { readonly horizon: number }[]): number[] =>
  distinct(of.map(({ horizon }) => horizon)).sort((a, b) => a - b);

const lossFunctions = {
  brier: (observed: number, expected: number) =>
    observed * (1 - expected) ** 2 + (1 - observed) * expected ** 2,
  logLoss: (observed: number, expected: number) => computeShareLoss(expected, observed),
  mae: (observed: number, expected: number) => Math.abs(observed - expected),
};
type LossName = keyof typeof lossFunctions;
const lossNames = Object.keys(lossFunctions) as LossName[];

/** The first figure counts the cases. */
const measureCase = ({ inside, width, uncalibrated, observed, expected: { served } }: ScoredCase) => ({
  ...{ cases: 1, width, expected: served, observed },
  ...{ bias: served - observed, squaredError: (served - observed) ** 2 },
  ...{ half: Number(inside[0]), most: Number(inside[1]), nearlyAll: Number(inside[2]) },
  oldWidth: uncalibrated?.width ?? width,
  oldMost: Number((uncalibrated?.inside ?? inside)[1]),
});

const toColumns = (one: ScoredCase): number[] => [
  ...Object.values(measureCase(one)),
  ...modelNames.flatMap((name) =>
    lossNames.map((loss) => lossFunctions[loss](one.observed, one.expected[name])),
  ),
];

async function summarizeCases(scored: readonly ScoredCase[]) {
  const sums = await sumByLearner(scored);
  const bounds = await bootstrapIntervals(sums);
  const estimates = bounds.map((bound, column) => ({
    mean: sums.reduce((sum, own) => sum + (own[column] as number), 0) / scored.length,
    ...bound,
  }));
  const names = Object.keys(measureCase(scored[0] as ScoredCase));
  const figures = Object.fromEntries(names.map((name, i) => [name, estimates[i]])) as Readonly<
    Record<keyof ReturnType<typeof measureCase>, Estimate>
  >;
  const { width, expected, observed, bias, squaredError } = figures;
  const losses = estimates.slice(names.length);
  const lossesOfModel = (model: number) =>
    Object.fromEntries(lossNames.map((loss, i) => [loss, losses[lossNames.length * model + i]]));
  return {
    ...{ cases: scored.length, learners: sums.length, expected, observed, bias },
    rmse: Math.sqrt(squaredError.mean),
    /** By level: share of cases inside, and below the interval. */
    coverage: [figures.half, figures.most, figures.nearlyAll] as const,
    below: intervalLevels.map((_, i) => average(scored, (one) => Number(isBelow(one, i)))),
    width,
    /** Of the 80 % interval. */
    uncalibrated: { coverage: figures.oldMost, width: figures.oldWidth },
    models: Object.fromEntries(modelNames.map((name, i) => [name, lossesOfModel(i)])) as Readonly<
      Record<ModelName, Readonly<Record<LossName, Estimate>>>
    >,
  };
}

const isBelow = ({ inside, observed, expected }: ScoredCase, level: number): boolean =>
  !inside[level] && observed < expected.served;

/** A turn takes a few tenths of a second. */
const casesPerTurn = 100_000;

async function sumByLearner(scored: readonly ScoredCase[]): Promise<Float64Array[]> {
  const sums = new Map<string, Float64Array>();
  for (const [i, one] of scored.entries()) {
    if (i % casesPerTurn === 0) await nextTurn();
    const key = `${one.fold} ${one.learner}`;
    const columns = toColumns(one);
    const own = sums.get(key) ?? new Float64Array(columns.length);
    addTo(own, columns);
    sums.set(key, own);
  }
  return [...sums.values()];
}

function addTo(sums: Float64Array, values: ArrayLike<number>): void {
  for (let column = 0; column < sums.length; column++)
    sums[column] = (sums[column] as number) + (values[column] as number);
}

export const resamples = 1000;

/**
 * Intervals of each column's mean.
 * @param learners not empty: sums of the columns; the first column counts the cases
 */
export function bootstrapIntervals(learners: readonly Float64Array[]) {
  const width = (learners[0] as Float64Array).length;
  return bootstrapLearners(learners.length, resamples, (drawn) => {
    const sums = new Float64Array(width);
    for (const learner of drawn) addTo(sums, learners[learner] as Float64Array);
    return Array.from(sums, (sum) => sum / (sums[0] as number));
  });
}

const reliabilityPoints = 10;

function computeReliability(scored: readonly ScoredCase[]) {
  const sorted = scored.toSorted((a, b) => a.expected.served - b.expected.served);
  const end = (i: number): number => (i * sorted.length) / reliabilityPoints;
  return indices(reliabilityPoints)
    .map((i) => sorted.slice(end(i), end(i + 1)))
    .filter((part) => part.length > 0)
    .map((part) => ({
      cases: part.length,
      expected: average(part, ({ expected }) => expected.served),
      observed: average(part, ({ observed }) => observed),
    }));
}

export const pitBins = 20;

/**
 * Probability integral transform; uniform if forecasts are calibrated. A discrete share counts evenly over
 * its part of the distribution (Czado et al. 2009).
 */
const computePitHistogram = (scored: readonly ScoredCase[]): number[] =>
  indices(pitBins).map((bin) => {
    const [low, high] = [bin / pitBins, (bin + 1) / pitBins];
    const shareIn = ({ pit: { from, to } }: ScoredCase): number => {
      if (to > from) return Math.max(0, Math.min(to, high) - Math.max(from, low)) / (to - from);
      return from >= low && (from < high || high === 1) ? 1 : 0;
    };
    return average(scored, shareIn);
  });
