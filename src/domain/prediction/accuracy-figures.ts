/** What the forecast of the share of right answers takes from a learner's state. */
import { accuracyConstants as constants, predictionModel } from '../base/params.js';
import { clamp, logit } from '../base/probability.js';
import type { LearnerTrace } from '../tracing/traces.js';

/** The figures of a learner that a forecast rests on. */
export type AccuracyTrace = Pick<LearnerTrace, 'ability' | 'recent' | 'slow' | 'right' | 'wrong'>;

export const figureCount = 4;

/**
 * How the learner stands against the population: share of right answers so far in log-odds, ability, and the two
 * moving averages. None falls with a right answer nor rises with a wrong one.
 *
 * @param mean share of right answers of the population, which stands in for answers that are not there
 */
export function figuresOf(
  { ability, recent, slow, right, wrong }: AccuracyTrace,
  mean: number,
): readonly number[] {
  const { priorAnswers, shareBounds } = constants;
  const answers = right + wrong;
  const share = (right + priorAnswers * mean) / (answers + priorAnswers);
  return [
    logit(clamp(share, shareBounds.low, shareBounds.high)) - logit(mean),
    ability,
    slow - (mean - 0.5) * (1 - (1 - predictionModel.slowRate) ** answers),
    recent - (mean - 0.5) * (1 - (1 - predictionModel.recentRate) ** answers),
  ];
}

/** How much of what is fleeting still counts: 1 now, less and less with the horizon, never 0. */
export const memoryOf = (horizon: number): number => 1 / (1 + Math.log1p(horizon));

/**
 * What the variance of the latent share is made of: what stays unknown of any learner, what is unknown of those with
 * few answers, and good and bad days, those of learners who are expected to fail often apart. The latter two fall with
 * the horizon, over which days average out.
 */
export function varianceParts(expected: number, history: number, horizon: number): readonly number[] {
  const memory = memoryOf(horizon);
  return [1, 1 / Math.sqrt(history + constants.variancePrior), memory, memory * (1 - expected) ** 2];
}

export const variancePartCount = 4;

/**
 * Variance of the latent share on the scale asin(sqrt(share)), never quite 0.
 *
 * @param variance what each part counts
 * @param parts as from `varianceParts`, in the same order
 */
export function sumOfParts(variance: readonly number[], parts: readonly number[]): number {
  const sum = parts.reduce((total, part, i) => total + part * (variance[i] as number), 0);
  return Math.max(sum, constants.fit.leastVariance);
}

/**
 * Variance on the same scale that the chance of single answers adds to their share (Anscombe 1948).
 *
 * @param answers 1 or more
 */
export const chanceVariance = (answers: number): number => 1 / (4 * answers);

/** Learners by how many answers they have so far. */
export interface HistoryBand {
  /** The least history inside. */
  readonly from: number;
  /** Where the next band begins; infinite for the last one. */
  readonly to: number;
  /** Middle in ratio, where figures of the band stand; the last one counts as if it ended at twice its beginning. */
  readonly middle: number;
}

/** Ascending and without gaps. */
export const historyBands: readonly HistoryBand[] = constants.bands.map((from, band) => {
  const next = constants.bands[band + 1];
  return { from, to: next ?? Number.POSITIVE_INFINITY, middle: Math.sqrt(from * (next ?? 2 * from)) };
});

export const isInBand = ({ from, to }: HistoryBand, history: number): boolean =>
  history >= from && history < to;
