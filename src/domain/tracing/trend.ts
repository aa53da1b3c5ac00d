/** How a learner's recent results compare with earlier ones, and with what was predicted. */
import { sigmoid } from '../base/common.js';
import { trendModel as model } from '../base/params.js';

/** Figures have single precision, as they are stored. */
export const newTrend = {
  /** Share of right answers, over about the last 70. */
  share: 0,
  /** Right answers beyond those of a new learner on the same questions, per answer: about the last 100, and 1,000. */
  recent: 0,
  past: 0,
  /** Log-odds added to predictions: above 0 if the learner does better than the fitted terms say. */
  bias: 0,
};

export type Trend = Readonly<typeof newTrend>;

/**
 * @param place of the answer among the learner's, from 1
 * @param abilityOffset log-odds of a right answer of a new learner on skill and item
 * @param pCorrect that was served for this answer, `bias` included
 */
export function updateTrend(
  trend: Trend,
  isCorrect: boolean,
  place: number,
  abilityOffset: number,
  pCorrect: number,
): Trend {
  const right = isCorrect ? 1 : 0;
  const beyond = right - sigmoid(abilityOffset);
  return {
    share: towards(trend.share, right, rateAt(place, model.shareRate)),
    recent: towards(trend.recent, beyond, rateAt(place, model.recentRate)),
    past: towards(trend.past, beyond, rateAt(place, model.pastRate)),
    bias: Math.fround(biasAfter(trend.bias, right - pCorrect, changeOf(trend, place - 1) !== 0)),
  };
}

/** The first answers are averaged evenly. */
const rateAt = (place: number, rate: number): number => Math.max(1 / place, rate);

/** `share` after a learner's answers, 1 for a right one. */
export const shareAfter = (answers: Uint8Array): number =>
  answers.reduce((share, right, i) => towards(share, right, rateAt(i + 1, model.shareRate)), 0);

const towards = (average: number, value: number, rate: number): number =>
  Math.fround(average + rate * (value - average));

/** It fades towards 0, but never against the answer: a right one does not lower it. */
function biasAfter(bias: number, surprise: number, isChanging: boolean): number {
  const rate = isChanging ? model.changingBiasRate : model.biasRate;
  const moved = bias * model.biasFading + rate * surprise;
  return surprise > 0 ? Math.max(bias, moved) : Math.min(bias, moved);
}

/** How far recent results are above earlier ones; 0 unless clearly. @param attempts of the learner so far */
export function changeOf({ recent, past }: Trend, attempts: number): number {
  const change = recent - past;
  return attempts < model.minAnswers || Math.abs(change) < model.change ? 0 : change;
}

export const isFalling = (trend: Trend, attempts: number): boolean => changeOf(trend, attempts) < 0;
