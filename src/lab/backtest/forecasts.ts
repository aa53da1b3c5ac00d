/** Every moment of a fold's learners forecast by models that were trained without them. */

import type { AnswerLog } from '../../domain/base/answer-log.js';
import { type AccuracyCase, accuracyCases } from '../../domain/fit/accuracy/cases.js';
import { accuracyCdf, accuracyInterval, forecastAccuracy } from '../../domain/prediction/accuracy-model.js';
import { replayServed, type ServedModel } from '../evaluate/served.js';
import type { Split } from '../evaluate/split.js';
import { baselineShares } from './baselines.js';

export const levels = [0.5, 0.8, 0.95] as const;
export const modelNames = ['served', 'no_change', 'population'] as const;
export type ModelName = (typeof modelNames)[number];

/** A forecast beside what came out. */
export interface ScoredCase extends AccuracyCase {
  readonly fold: number;
  /** Share of right answers inside the horizon. */
  readonly observed: number;
  /** Expected share by model. */
  readonly expected: Readonly<Record<ModelName, number>>;
  /** Whether the interval holds what was observed, in the order of `levels`. */
  readonly inside: readonly boolean[];
  /** Width of the 80 % interval. */
  readonly width: number;
  /** Probability that the forecast gave to less than was observed, and to that or less. */
  readonly pit: readonly [from: number, to: number];
}

/** All cases of the test log; in each, only what the learner had answered by then is known. */
export function forecastFold({ training, test }: Split, served: ServedModel, fold: number): ScoredCase[] {
  const cases = casesByPlace(test, accuracyCases(test, served.model.accuracy.unit));
  const baselines = baselineShares(training, test);
  const scored: ScoredCase[] = [];
  replayServed(served, test, {
    before: ({ learner }, place) => {
      for (const one of cases.get(place) ?? []) {
        const forecast = forecastAccuracy(served.model.accuracy, learner, one.horizon);
        scored.push(scoreOf(served, one, forecast, baselines(place), fold));
      }
    },
  });
  return scored;
}

function casesByPlace({ starts }: AnswerLog, cases: readonly AccuracyCase[]): Map<number, AccuracyCase[]> {
  const byPlace = new Map<number, AccuracyCase[]>();
  for (const one of cases) {
    const place = (starts[one.learner] as number) + one.history;
    byPlace.set(place, [...(byPlace.get(place) ?? []), one]);
  }
  return byPlace;
}

function scoreOf(
  { model: { accuracy } }: ServedModel,
  one: AccuracyCase,
  forecast: ReturnType<typeof forecastAccuracy>,
  baselines: Omit<ScoredCase['expected'], 'served'>,
  fold: number,
): ScoredCase {
  const observed = one.right / one.answers;
  const intervals = levels.map((level) => accuracyInterval(accuracy, forecast, one.answers, level));
  const [, middle] = intervals;
  const half = 0.5 / one.answers;
  return {
    ...one,
    fold,
    observed,
    expected: { served: forecast.expected, ...baselines },
    inside: intervals.map(({ low, high }) => low <= observed && observed <= high),
    width: middle === undefined ? 0 : middle.high - middle.low,
    pit: [
      accuracyCdf(accuracy, forecast, one.answers, observed - half),
      accuracyCdf(accuracy, forecast, one.answers, observed + half),
    ],
  };
}
