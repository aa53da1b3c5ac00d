import { clamp, logit, sigmoid } from '../base/common.js';
import { trendConstants as model } from './tracing-constants.js';

/** Single precision, as stored. */
export const newTrend = {
  answers: 0,
  /** Share correct over about 70 answers. */
  share: 0,
  /** Mean difference from earlier answers on the same skills. */
  change: 0,
  /** Added to the log-odds of predictions. */
  bias: 0,
};

export type Trend = Readonly<typeof newTrend>;

/** @param usual probability by earlier answers @param pCorrect with `bias` */
export function updateTrend(trend: Trend, isCorrect: boolean, usual: number | null, pCorrect: number): Trend {
  const right = isCorrect ? 1 : 0;
  const answers = trend.answers + 1;
  const gain = isChanging(trend) ? model.changingBiasRate : model.biasRate;
  return {
    answers,
    share: moveTowards(trend.share, right, computeShareRate(answers)),
    change: usual === null ? trend.change : moveTowards(trend.change, right - usual, model.changeRate),
    bias: Math.fround(updateBias(trend.bias, gain * (right - pCorrect))),
  };
}

/** Null with too few earlier answers. @param easiness logits */
export function computeUsualChance(
  { attempts, correct }: { readonly attempts: number; readonly correct: number },
  easiness: number,
): number | null {
  if (attempts < model.minAttempts) return null;
  const share = (correct + 0.5) / (attempts + 1);
  return easiness === 0 ? share : sigmoid(logit(share) + easiness);
}

const computeShareRate = (answers: number): number => Math.max(1 / answers, model.shareRate);

export const computeRecentShare = (answers: Uint8Array): number =>
  answers.reduce((share, right, i) => moveTowards(share, right, computeShareRate(i + 1)), 0);

const moveTowards = (average: number, value: number, rate: number): number =>
  Math.fround(average + rate * (value - average));

/** A correct answer never lowers the bias. */
function updateBias(bias: number, step: number): number {
  const moved = bias * model.biasFading + step;
  return step > 0 ? Math.max(bias, moved) : Math.min(bias, moved);
}

export const isChanging = ({ change }: Trend): boolean => Math.abs(change) >= model.clearChange;

export const isFalling = (trend: Trend): boolean => trend.change <= -model.clearChange;

/** Changes gradually, so that no single answer reverses a forecast. */
export function computeLearningShare({ answers, share, change }: Trend): number {
  const { noChange, clearChange, guessing, learningFrom, minAnswers } = model;
  const steady = 1 - clamp((-change - noChange) / (clearChange - noChange), 0, 1);
  if (answers < minAnswers) return steady;
  return steady * clamp((share - guessing) / (learningFrom - guessing), 0, 1);
}
