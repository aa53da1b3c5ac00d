/** Models see only learners of other folds and, with times, answers before the window. */
import type { AnswerLog } from '../../domain/base/answer-log.js';
import { type AccuracyCase, collectAccuracyCases } from '../../domain/fit/accuracy/accuracy-cases.js';
import {
  type AccuracyForecast,
  type AccuracyModel,
  computeAccuracyCdf,
  computeAccuracyInterval,
  forecastAccuracy,
} from '../../domain/prediction/accuracy-model.js';
import { groupBy } from '../../lists.js';
import type { Split } from '../evaluate/answers.js';
import { computeShareRight } from '../evaluate/predict.js';
import { replayLog, type ServedModel } from '../evaluate/replay.js';
import type { ForecastWindow } from './windows.js';

export const intervalLevels = [0.5, 0.8, 0.95] as const;
export const modelNames = ['served', 'no_change', 'population'] as const;
export type ModelName = (typeof modelNames)[number];

export type ScoredCase = ReturnType<typeof scoreCase> & {
  readonly fold: number;
  /** Expected share of right answers. */
  readonly expected: Readonly<Record<ModelName, number>>;
};

export function forecastFold(
  { training, test }: Split,
  served: ServedModel,
  fold: number,
  { from, to }: ForecastWindow,
): ScoredCase[] {
  const { accuracy } = served.model;
  const population = computeShareRight(training);
  const isInWindow = (one: AccuracyCase): boolean => {
    const moment = test.at[findPlace(test)(one) - 1] as number;
    return moment >= from && moment < to;
  };
  const cases = groupBy(collectAccuracyCases(test, accuracy.unit).filter(isInWindow), findPlace(test));
  const scored: ScoredCase[] = [];
  replayLog(served, test, ({ history: { learner }, place }) => {
    for (const one of cases.get(place) ?? []) {
      const forecast = forecastAccuracy(accuracy, learner, one.span);
      const expected = { served: forecast.expected, no_change: computeRecentShare(test, one), population };
      scored.push({ ...scoreCase(accuracy, forecast, one), fold, expected });
    }
  });
  return scored;
}

function scoreCase(accuracy: AccuracyModel, forecast: AccuracyForecast, one: AccuracyCase) {
  const observed = one.right / one.answers;
  const intervals = intervalLevels.map((level) =>
    computeAccuracyInterval(accuracy, forecast, one.answers, level),
  );
  const cdf = (share: number): number => computeAccuracyCdf(accuracy, forecast, one.answers, share);
  const half = 0.5 / one.answers;
  return {
    ...one,
    observed,
    /** True if an interval contains the observed share; in the order of `intervalLevels`. */
    inside: intervals.map(({ low, high }) => low <= observed && observed <= high),
    /** Width of the 80 % interval. */
    width: intervals[1] === undefined ? 0 : intervals[1].high - intervals[1].low,
    /** Forecast probabilities of a share below the observed one, and up to it. */
    pit: { from: cdf(observed - half), to: cdf(observed + half) },
  };
}

const findPlace =
  ({ starts }: AnswerLog) =>
  ({ learner, history }: AccuracyCase): number =>
    (starts[learner] as number) + history;

/** `smoothing` avoids shares of 0 and 1. */
const recentAnswers = 50;
const smoothing = 1;

function computeRecentShare(log: AnswerLog, one: AccuracyCase): number {
  const place = findPlace(log)(one);
  const answers = Math.min(one.history, recentAnswers);
  const right = log.correct.subarray(place - answers, place).reduce((sum, value) => sum + value, 0);
  return (right + smoothing) / (answers + 2 * smoothing);
}
