/**
 * Models see only learners of other folds and, with times, answers before the window. Calibrations see only
 * outcomes of horizons that ended before the forecast.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AnswerLog } from '../../domain/base/answer-log.js';
import { dayMs } from '../../domain/base/common.js';
import { type AccuracyCase, collectAccuracyCases } from '../../domain/fit/accuracy/accuracy-cases.js';
import { calibrateIntervals } from '../../domain/fit/accuracy/calibrate-intervals.js';
import {
  type AccuracyForecast,
  type AccuracyModel,
  computeAccuracyCdf,
  computeAccuracyInterval,
  computeIntervalReach,
  computeOutcomePosition,
  forecastAccuracy,
} from '../../domain/prediction/accuracy-model.js';
import type { ForecastOutcome, IntervalCalibration } from '../../domain/prediction/interval-calibration.js';
import { isChanging, isFalling } from '../../domain/tracing/trend.js';
import { groupBy } from '../../lists.js';
import type { Split } from '../evaluate/answers.js';
import { computeShareRight } from '../evaluate/predict.js';
import { replayLog, type ServedModel } from '../evaluate/replay.js';
import type { ForecastWindow } from './windows.js';

export const intervalLevels = [0.5, 0.8, 0.95] as const;
const calibratedLevel = 0.8;
export const modelNames = ['served', 'no_change', 'population'] as const;
export type ModelName = (typeof modelNames)[number];

export const trendNames = ['falling', 'constant', 'rising'] as const;

interface CaseForecast {
  readonly fold: number;
  readonly one: AccuracyCase;
  readonly accuracy: AccuracyModel;
  readonly forecast: AccuracyForecast;
  /** At the forecast. */
  readonly trend: (typeof trendNames)[number];
  /** Expected share of right answers. */
  readonly expected: Readonly<Record<ModelName, number>>;
}

export type ScoredCase = ReturnType<typeof scoreCase> & Pick<CaseForecast, 'fold' | 'expected' | 'trend'>;

export function forecastFold(
  { training, test }: Split,
  served: ServedModel,
  fold: number,
  { from, to }: ForecastWindow,
): CaseForecast[] {
  const { accuracy } = served.model;
  const population = computeShareRight(training);
  const isInWindow = (one: AccuracyCase): boolean => {
    const moment = test.at[findPlace(test)(one) - 1] as number;
    return moment >= from && moment < to;
  };
  const cases = groupBy(collectAccuracyCases(test, accuracy.unit).filter(isInWindow), findPlace(test));
  const forecasts: CaseForecast[] = [];
  replayLog(served, test, ({ history: { learner }, place }) => {
    for (const one of cases.get(place) ?? []) {
      const forecast = forecastAccuracy(accuracy, learner, one.span);
      const expected = { served: forecast.expected, no_change: computeRecentShare(test, one), population };
      const trend = isFalling(learner.trend) ? 'falling' : isChanging(learner.trend) ? 'rising' : 'constant';
      forecasts.push({ fold, one, accuracy, forecast, expected, trend });
    }
  });
  return forecasts;
}

/** Yields to the event loop, so that signals are handled. @param forecasts of one horizon unit */
export async function scoreForecasts(forecasts: readonly CaseForecast[]): Promise<ScoredCase[]> {
  const calibrations = await calibrateByPeriod(forecasts);
  return forecasts.map(({ fold, one, accuracy, forecast, expected, trend }) => {
    const calibration = calibrations.get(findPeriod(one.at)) ?? null;
    return { ...scoreCase({ ...accuracy, calibration }, forecast, one), fold, expected, trend };
  });
}

const periodMs = 3 * dayMs;
const findPeriod = (at: number): number => Math.floor(at / periodMs);

/** Like the daily job of the service, but less often. Empty if the horizons are in answers. */
async function calibrateByPeriod(forecasts: readonly CaseForecast[]) {
  const calibrations = new Map<number, IntervalCalibration | null>();
  if (forecasts[0]?.accuracy.unit !== 'days') return calibrations;
  const outcomes = forecasts.map(createOutcome);
  for (const { one } of forecasts) calibrations.set(findPeriod(one.at), null);
  for (const period of calibrations.keys()) {
    await nextTurn();
    calibrations.set(period, calibrateIntervals(outcomes, period * periodMs));
  }
  return calibrations;
}

function createOutcome({ fold, one, accuracy, forecast }: CaseForecast): ForecastOutcome {
  const { history, horizon } = forecast;
  const reach = computeIntervalReach(accuracy, forecast, calibratedLevel);
  const position = computeOutcomePosition(forecast, reach, one.answers, one.right / one.answers);
  const completedAt = one.at + one.horizon * dayMs;
  return { learner: `${fold} ${one.learner}`, history, horizon, position, completedAt };
}

function scoreCase(accuracy: AccuracyModel, forecast: AccuracyForecast, one: AccuracyCase) {
  const observed = one.right / one.answers;
  const cdf = (share: number): number => computeAccuracyCdf(accuracy, forecast, one.answers, share);
  const half = 0.5 / one.answers;
  return {
    ...one,
    observed,
    ...checkIntervals(accuracy, forecast, one),
    /** Without recalibration; null if the forecast was not recalibrated. */
    uncalibrated: accuracy.calibration
      ? checkIntervals({ ...accuracy, calibration: null }, forecast, one)
      : null,
    /** Forecast probabilities of a share below the observed one, and up to it. */
    pit: { from: cdf(observed - half), to: cdf(observed + half) },
  };
}

function checkIntervals(model: AccuracyModel, forecast: AccuracyForecast, { right, answers }: AccuracyCase) {
  const observed = right / answers;
  const intervals = intervalLevels.map((level) => computeAccuracyInterval(model, forecast, answers, level));
  return {
    /** True if an interval contains the observed share; in the order of `intervalLevels`. */
    inside: intervals.map(({ low, high }) => low <= observed && observed <= high),
    /** Width of the 80 % interval. */
    width: intervals[1] === undefined ? 0 : intervals[1].high - intervals[1].low,
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
