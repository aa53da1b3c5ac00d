/** What a backtest finds, as it is printed and drawn. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { shareLogLoss } from '../../domain/base/metrics.js';
import { type HistoryBand, historyBands, isInBand } from '../../domain/prediction/accuracy-figures.js';
import { type Bounds, bootstrapMeans, type LearnerSums } from './bootstrap.js';
import { levels, type ModelName, modelNames, type ScoredCase } from './forecasts.js';

/** A mean over cases, with its 95 % interval over learners. */
export interface Estimate extends Bounds {
  readonly mean: number;
}

export interface ModelLosses {
  /** Of single answers: squared distance, and -ln of the probability of what happened. */
  readonly brier: Estimate;
  readonly logLoss: Estimate;
  /** Distance of the expected share from the observed one. */
  readonly mae: Estimate;
}

/** Some of the cases. */
export interface Summary {
  readonly cases: number;
  readonly learners: number;
  /** Share of cases inside the interval, in the order of `levels`. */
  readonly coverage: readonly Estimate[];
  /** Share of cases below and above the interval, in the same order. */
  readonly below: readonly number[];
  /** Mean width of the 80 % interval. */
  readonly width: Estimate;
  readonly models: Readonly<Record<ModelName, ModelLosses>>;
}

/** The cases of one horizon of learners with so many answers. */
export interface Band extends Summary {
  readonly historyFrom: number;
  /** Included; null: without end. */
  readonly historyTo: number | null;
  /** Where the band stands among others, see `HistoryBand`. */
  readonly historyMiddle: number;
  readonly horizon: number;
}

export interface ReliabilityPoint {
  readonly cases: number;
  readonly expected: number;
  readonly observed: number;
}

export interface BacktestResults {
  readonly all: Summary;
  readonly bands: readonly Band[];
  /** Tenths of the cases by the expected share. */
  readonly reliability: readonly ReliabilityPoint[];
  /** Share of cases by twentieths of the probability integral transform; all alike where forecasts are calibrated. */
  readonly pit: readonly number[];
}

/**
 * Long where cases are many, but the event loop has its turns.
 *
 * @param scored at least one
 */
export async function resultsOf(scored: readonly ScoredCase[]): Promise<BacktestResults> {
  return {
    all: await summaryOf(scored),
    bands: await bandsOf(scored),
    reliability: reliabilityOf(scored),
    pit: pitHistogram(scored),
  };
}

async function bandsOf(scored: readonly ScoredCase[]): Promise<Band[]> {
  const horizons = [...new Set(scored.map(({ horizon }) => horizon))].sort((a, b) => a - b);
  const bands: Band[] = [];
  for (const horizon of horizons) {
    for (const history of historyBands) {
      const own = scored.filter((one) => one.horizon === horizon && isInBand(history, one.history));
      if (own.length > 0) bands.push({ ...namesOf(history), horizon, ...(await summaryOf(own)) });
    }
  }
  return bands;
}

const namesOf = ({ from, to, middle }: HistoryBand) => ({
  historyFrom: from,
  historyTo: Number.isFinite(to) ? to - 1 : null,
  historyMiddle: middle,
});

/** Columns of a learner's sums: the number of cases, then what means are taken of. */
const columnsOf = ({ inside, width, observed, expected }: ScoredCase): number[] => [
  1,
  ...inside.map(Number),
  width,
  ...modelNames.flatMap((name) => lossesOf(observed, expected[name])),
];

function lossesOf(observed: number, expected: number): number[] {
  return [
    observed * (1 - expected) ** 2 + (1 - observed) * expected ** 2,
    shareLogLoss(expected, observed),
    Math.abs(observed - expected),
  ];
}

async function summaryOf(scored: readonly ScoredCase[]): Promise<Summary> {
  const sums = await sumsByLearner(scored);
  const bounds = await bootstrapMeans(sums);
  const estimate = (column: number): Estimate => ({
    mean: sums.reduce((sum, own) => sum + (own[column] as number), 0) / scored.length,
    ...(bounds[column] as Bounds),
  });
  const widthColumn = 1 + levels.length;
  const models = modelNames.map((name, i) => {
    const first = widthColumn + 1 + 3 * i;
    return [
      name,
      { brier: estimate(first), logLoss: estimate(first + 1), mae: estimate(first + 2) },
    ] as const;
  });
  return {
    cases: scored.length,
    learners: sums.length,
    coverage: levels.map((_, i) => estimate(1 + i)),
    below: levels.map((_, i) => shareBelow(scored, i)),
    width: estimate(widthColumn),
    models: Object.fromEntries(models) as Record<ModelName, ModelLosses>,
  };
}

const shareBelow = (scored: readonly ScoredCase[], level: number): number =>
  scored.filter(({ inside, observed, expected }) => !inside[level] && observed < expected.served).length /
  scored.length;

/** Some tenths of a second's work. */
const casesPerTurn = 100_000;

async function sumsByLearner(scored: readonly ScoredCase[]): Promise<LearnerSums[]> {
  const sums = new Map<string, LearnerSums>();
  for (const [i, one] of scored.entries()) {
    if (i % casesPerTurn === 0) await nextTurn();
    const columns = columnsOf(one);
    const key = `${one.fold} ${one.learner}`;
    const own = sums.get(key) ?? new Float64Array(columns.length);
    for (const [column, value] of columns.entries()) own[column] = (own[column] as number) + value;
    sums.set(key, own);
  }
  return [...sums.values()];
}

const reliabilityPoints = 10;

function reliabilityOf(scored: readonly ScoredCase[]): ReliabilityPoint[] {
  const sorted = scored.toSorted((a, b) => a.expected.served - b.expected.served);
  const mean = (part: readonly ScoredCase[], of: (one: ScoredCase) => number): number =>
    part.reduce((sum, one) => sum + of(one), 0) / part.length;
  return Array.from({ length: reliabilityPoints }, (_, i) =>
    sorted.slice((i * sorted.length) / reliabilityPoints, ((i + 1) * sorted.length) / reliabilityPoints),
  )
    .filter((part) => part.length > 0)
    .map((part) => ({
      cases: part.length,
      expected: mean(part, ({ expected }) => expected.served),
      observed: mean(part, ({ observed }) => observed),
    }));
}

export const pitBins = 20;

/** A share of few answers is no single place of the distribution: it counts evenly over its part (Czado et al. 2009). */
function pitHistogram(scored: readonly ScoredCase[]): number[] {
  const shares = new Array<number>(pitBins).fill(0);
  for (const { pit } of scored) {
    const [from, to] = pit;
    for (let bin = 0; bin < pitBins; bin++) {
      const [low, high] = [bin / pitBins, (bin + 1) / pitBins];
      const inBin =
        to > from
          ? Math.max(0, Math.min(to, high) - Math.max(from, low)) / (to - from)
          : pointIn(from, low, high);
      shares[bin] = (shares[bin] as number) + inBin / scored.length;
    }
  }
  return shares;
}

const pointIn = (place: number, low: number, high: number): number =>
  place >= low && (place < high || high === 1) ? 1 : 0;
