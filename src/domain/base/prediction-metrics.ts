import { normalQuantile } from './normal-distribution.js';

export const logLossClip = 1e-6;

/** Equal-width bins (Guo et al. 2017). */
export const reliabilityBins = 15;

export function measurePredictions(correct: Uint8Array, predictions: Float64Array) {
  const answers = correct.length;
  let squares = 0;
  let nats = 0;
  let hits = 0;
  for (let i = 0; i < answers; i++) {
    const p = predictions[i] as number;
    const isCorrect = correct[i] === 1;
    const outcomeProbability = isCorrect ? p : 1 - p;
    squares += (1 - outcomeProbability) ** 2;
    nats += computeNats(outcomeProbability);
    if (p >= 0.5 === isCorrect) hits++;
  }
  // Expected calibration error: |mean prediction - share correct| per bin.
  let weighted = 0;
  for (const bin of computeReliability(correct, predictions))
    weighted += bin.answers * Math.abs((bin.predicted ?? 0) - (bin.correct ?? 0));
  return {
    rmse: Math.sqrt(squares / answers),
    logLoss: nats / answers,
    accuracy: hits / answers,
    ece: answers === 0 ? 0 : weighted / answers,
  };
}

const computeNats = (outcomeProbability: number): number =>
  -Math.log(Math.max(outcomeProbability, logLossClip));

/** Wilson score interval (1927). */
export function computeShareInterval(share: number, answers: number, level = 0.95) {
  const z = normalQuantile((1 + level) / 2);
  const middle = share + (z * z) / (2 * answers);
  const reach = z * Math.sqrt((share * (1 - share)) / answers + (z / (2 * answers)) ** 2);
  const whole = 1 + (z * z) / answers;
  return { low: Math.max(0, (middle - reach) / whole), high: Math.min(1, (middle + reach) / whole) };
}

export const computeAnswerLoss = (pCorrect: number, correct: number): number =>
  computeNats(correct === 1 ? pCorrect : 1 - pCorrect);

/** Log loss of `expected` if `share` of the answers are correct. */
export const computeShareLoss = (expected: number, share: number): number =>
  share * computeNats(expected) + (1 - share) * computeNats(1 - expected);

export function computeReliability(correct: Uint8Array, predictions: Float64Array, bins = reliabilityBins) {
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
