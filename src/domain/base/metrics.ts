/** How well probabilities of a right answer predict the answers: discrimination, error and calibration. */

export interface Metrics {
  /** Probability that a right answer had the higher prediction than a wrong one; null where all are alike. */
  readonly auc: number | null;
  readonly rmse: number;
  /** Mean of -ln of the probability given to what happened, which counts as `logLossClip` at least. */
  readonly logLoss: number;
  /** Share of answers on the side of .5 that was predicted; .5 itself predicts a right answer. */
  readonly accuracy: number;
  /** Expected calibration error: |mean prediction - share right| of each reliability bin, weighted by answers. */
  readonly ece: number;
}

/** The answers whose prediction lies between two bounds, the lower one included (of the last bin both). */
export interface ReliabilityBin {
  readonly low: number;
  readonly high: number;
  readonly answers: number;
  /** Mean prediction and share of right answers; null in an empty bin. */
  readonly predicted: number | null;
  readonly correct: number | null;
}

/** Least probability that the log loss takes for what happened, so that one answer costs 13.8 nats at most. */
export const logLossClip = 1e-6;

/** Equal-width bins of the reliability table and of the calibration error, as in Guo et al. 2017. */
export const reliabilityBins = 15;

/** @param correct 1 for a right answer, 0 for a wrong one @param predictions of a right answer, 0 to 1; at least one */
export function measure(correct: Uint8Array, predictions: Float64Array): Metrics {
  const answers = correct.length;
  let squares = 0;
  let nats = 0;
  let hits = 0;
  for (let i = 0; i < answers; i++) {
    const p = predictions[i] as number;
    const isCorrect = correct[i] === 1;
    const given = isCorrect ? p : 1 - p;
    squares += (1 - given) ** 2;
    nats += natsOf(given);
    if (p >= 0.5 === isCorrect) hits++;
  }
  return {
    auc: areaUnderCurve(correct, predictions),
    rmse: Math.sqrt(squares / answers),
    logLoss: nats / answers,
    accuracy: hits / answers,
    ece: calibrationError(reliabilityOf(correct, predictions)),
  };
}

const natsOf = (given: number): number => -Math.log(Math.max(given, logLossClip));

/** Log loss of one answer. @param correct 1 for a right answer, 0 for a wrong one */
export const answerLoss = (pCorrect: number, correct: number): number =>
  natsOf(correct === 1 ? pCorrect : 1 - pCorrect);

/** Mean log loss of answers that were all given the probability `expected`, the `share` of them right. */
export const shareLogLoss = (expected: number, share: number): number =>
  share * natsOf(expected) + (1 - share) * natsOf(1 - expected);

export function areaUnderCurve(correct: Uint8Array, predictions: Float64Array): number | null {
  const right = sortedWhere(correct, predictions, 1);
  const wrong = sortedWhere(correct, predictions, 0);
  if (right.length === 0 || wrong.length === 0) return null;
  let below = 0;
  let notAbove = 0;
  let wins = 0;
  for (const p of right) {
    while (below < wrong.length && (wrong[below] as number) < p) below++;
    while (notAbove < wrong.length && (wrong[notAbove] as number) <= p) notAbove++;
    wins += (below + notAbove) / 2;
  }
  return wins / right.length / wrong.length;
}

const sortedWhere = (correct: Uint8Array, predictions: Float64Array, value: number): Float64Array =>
  predictions.filter((_, i) => correct[i] === value).sort();

/** The reliability table: all bins from 0 to 1, the empty ones too. */
export function reliabilityOf(
  correct: Uint8Array,
  predictions: Float64Array,
  bins = reliabilityBins,
): readonly ReliabilityBin[] {
  const answers = new Float64Array(bins);
  const predicted = new Float64Array(bins);
  const right = new Float64Array(bins);
  for (let i = 0; i < correct.length; i++) {
    const p = predictions[i] as number;
    const bin = Math.min(bins - 1, Math.floor(p * bins));
    answers[bin] = (answers[bin] as number) + 1;
    predicted[bin] = (predicted[bin] as number) + p;
    right[bin] = (right[bin] as number) + (correct[i] as number);
  }
  return Array.from(answers, (count, bin) => ({
    low: bin / bins,
    high: (bin + 1) / bins,
    answers: count,
    predicted: count === 0 ? null : (predicted[bin] as number) / count,
    correct: count === 0 ? null : (right[bin] as number) / count,
  }));
}

/** 0 where the table holds no answer. */
function calibrationError(bins: readonly ReliabilityBin[]): number {
  let total = 0;
  let weighted = 0;
  for (const { answers, predicted, correct } of bins) {
    total += answers;
    weighted += answers * Math.abs((predicted ?? 0) - (correct ?? 0));
  }
  return total === 0 ? 0 : weighted / total;
}
