import { clamp, toUtcDay } from '../base/common.js';
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
  /** Sums of a regression of achieved on projected growth: of products, and of squares. */
  achieved: 0,
  projected: 0,
};

export type Trend = Readonly<typeof newTrend>;

/** What earlier answers to the skill predict of an answer. */
interface Expectation {
  /** Their share correct, adjusted for the difficulty of the item. */
  readonly usual: number;
  /** Projected reduction of the share of wrong answers, relative to its mean so far: 0 to 1. */
  readonly gain: number;
  readonly attempts: number;
}

/**
 * @param expectation null with too few earlier answers @param pCorrect with `bias` @param isReturn first answer
 * after a pause
 */
export function updateTrend(
  trend: Trend,
  isCorrect: boolean,
  expectation: Expectation | null,
  pCorrect: number,
  isReturn: boolean,
): Trend {
  const right = isCorrect ? 1 : 0;
  const { answers, share } = updateShare(trend, right, isReturn);
  const gain = isChanging(trend) ? model.changingBiasRate : model.biasRate;
  const bias = Math.fround(updateBias(trend.bias, gain * (right - pCorrect)));
  if (expectation === null) {
    const { change, achieved, projected } = trend;
    return { answers, share, change, bias, achieved, projected };
  }
  const surprise = right - expectation.usual;
  const change = moveTowards(trend.change, surprise, model.changeRate);
  const { achieved, projected } = updateGrowth(trend, expectation, surprise);
  return { answers, share, change, bias, achieved, projected };
}

/** A regression: differences from the mean of earlier answers are uncorrelated (Helmert contrasts). */
function updateGrowth(
  { share, achieved, projected }: Trend,
  { gain, attempts }: Expectation,
  surprise: number,
): Pick<Trend, 'achieved' | 'projected'> {
  // Not the errors of `usual`, which would look like growth.
  const lift = (1 - share) * gain;
  const weight = attempts / ((attempts + 1) * Math.max(model.minVariance, share * (1 - share)));
  return {
    achieved: Math.fround(model.growthFading * achieved + weight * lift * surprise),
    projected: Math.fround(model.growthFading * projected + weight * lift * lift),
  };
}

/** @param easiness logits @param learning per answer: wrong answers fall by exp(-learning) @returns null with too few answers */
export function computeExpectation(
  { attempts, correct }: { readonly attempts: number; readonly correct: number },
  easiness: number,
  learning: number,
): Expectation | null {
  if (attempts < model.minAttempts) return null;
  const share = correct / attempts;
  const practice = learning * attempts;
  return {
    // Linear, so that items of different difficulty do not shift the mean.
    usual: clamp(share + easiness * share * (1 - share), 0, 1),
    gain: 1 - practice / Math.expm1(practice),
    attempts,
  };
}

/** @param days between two answers */
export const isPause = (days: number): boolean => days >= model.pauseDays;

type RecentShare = Pick<Trend, 'answers' | 'share'>;

/** After a pause, all earlier answers together count as at most `answersBeforePause`. */
function updateShare(
  { answers: counted, share }: RecentShare,
  right: number,
  isReturn: boolean,
): RecentShare {
  const answers = (isReturn ? Math.min(counted, model.answersBeforePause) : counted) + 1;
  return { answers, share: moveTowards(share, right, Math.max(1 / answers, model.shareRate)) };
}

/** @param times Unix milliseconds */
export function computeRecentShare(answers: Uint8Array, times: Float64Array): RecentShare {
  let recent: RecentShare = newTrend;
  for (const [i, right] of answers.entries()) {
    const days = i === 0 ? 0 : toUtcDay(times[i] as number) - toUtcDay(times[i - 1] as number);
    recent = updateShare(recent, right, isPause(days));
  }
  return recent;
}

const moveTowards = (average: number, value: number, rate: number): number =>
  Math.fround(average + rate * (value - average));

/** A correct answer never lowers the bias. */
function updateBias(bias: number, step: number): number {
  const moved = bias * model.biasFading + step;
  return step > 0 ? Math.max(bias, moved) : Math.min(bias, moved);
}

export const isChanging = ({ change }: Trend): boolean => Math.abs(change) >= model.clearChange;

export const isFalling = (trend: Trend): boolean => trend.change <= -model.clearChange;

/**
 * Factors of projected learning, 0 to 2: `practised` for skills with answers, `unseen` for others. They change
 * gradually, so that no single answer reverses a forecast. @param attempts of the learner
 */
export function computeGrowth(
  { share, change, achieved, projected }: Trend,
  attempts: number,
  tenantGrowth: number,
) {
  const { noChange, clearChange, guessing, learningFrom, minAnswers, growthPrior } = model;
  const steady = 1 - clamp((-change - noChange) / (clearChange - noChange), 0, 1);
  const known = attempts < minAnswers ? 1 : clamp((share - guessing) / (learningFrom - guessing), 0, 1);
  const learned = (growthPrior * tenantGrowth + achieved) / (growthPrior + projected);
  return {
    practised: steady * known * discountChance(learned),
    unseen: steady * known * discountChance(tenantGrowth),
  };
}

/** Constant learners have a small growth by chance. */
const discountChance = (growth: number): number =>
  clamp((growth - model.chanceGrowth) / (1 - model.chanceGrowth), 0, model.maxGrowth);
