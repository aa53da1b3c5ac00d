/** The whole forecast of a learner, as a predictions answer shows it: scores, goal, share of right answers. */

import { dayOf } from '../base/days.js';
import { accuracyConstants } from '../base/params.js';
import { clamp } from '../base/probability.js';
import { type PerSection, perSection } from '../base/types.js';
import {
  type AccuracyForecast,
  accuracyInterval,
  forecastAccuracy,
  type ShareInterval,
} from '../prediction/accuracy-model.js';
import { type Practice, practiceOf } from '../tracing/activity.js';
import { forecastUnder } from './forecast.js';
import { type GoalOutlook, type GoalSetting, goalOutlook, horizonOf } from './goal.js';
import { habitOf, presentPractice, steadyHabit } from './habit.js';
import type { ScoreForecast, Scores } from './score.js';
import type { SectionMeasure } from './section-measure.js';
import { type ForecastSubject, type Standing, standingOf } from './standing.js';

/** Horizon of the `predicted_*_in_30_days` fields. */
export const standardDays = 30;

export interface ForecastRequest {
  /** 1 to 365. */
  readonly days: number;
  /** 0.5 to 0.99. */
  readonly level: number;
  /** Null: none was set, a default holds. */
  readonly goal: GoalSetting | null;
}

/** Share of right answers over the requested days, as far as it is known without the questions. */
export interface AccuracyOutlook extends AccuracyForecast {
  readonly interval: ShareInterval;
  /** Answers that the interval is for: as many as at the present rate, and at least 10. */
  readonly answers: number;
}

export interface LearnerForecast {
  readonly current: Scores;
  readonly in30Days: Scores;
  readonly requested: ScoreForecast;
  readonly goal: GoalOutlook;
  readonly accuracy: AccuracyOutlook;
  /** Smallest of some rates, answers a day in each section, that reaches the goal in time; null where none does. */
  readonly neededRate: number | null;
  readonly measures: PerSection<SectionMeasure>;
  /** What is taken to go on. */
  readonly practice: PerSection<Practice>;
  /** Share of the population's variance that the answers explain, 0 to 1. */
  readonly reliability: PerSection<number>;
}

export function forecastLearner(subject: ForecastSubject, request: ForecastRequest): LearnerForecast {
  const standing = standingOf(subject);
  const practice = presentPractice(subject);
  const forecast = forecastUnder(subject, standing, habitOf(standing, practice));
  const requested = forecast.forecastIn(request.days, request.level);
  const goal = goalOutlook(subject, forecast, request.goal);
  return {
    current: forecast.current,
    in30Days: request.days === standardDays ? requested.scores : forecast.scoresIn(standardDays),
    requested,
    goal,
    accuracy: accuracyOutlook(subject, request),
    neededRate: goal.isSet && !goal.onTrack ? neededRate(subject, standing, goal) : null,
    measures: standing.measures,
    practice,
    reliability: perSection((section) => clamp(1 - standing.estimate.variance[section], 0, 1)),
  };
}

function accuracyOutlook(
  { learner, model: { accuracy }, now }: ForecastSubject,
  { days, level }: ForecastRequest,
): AccuracyOutlook {
  const { math, rw } = practiceOf(learner.activity, dayOf(now));
  const answers = Math.max(accuracyConstants.minAnswers, Math.round((math.rate + rw.rate) * days));
  const forecast = forecastAccuracy(accuracy, learner, accuracy.unit === 'days' ? days : answers);
  return { ...forecast, answers, interval: accuracyInterval(accuracy, forecast, answers, level) };
}

/** Rates that are tried for advice, answers a day in each section. */
const triedRates = [1, 2, 5, 10, 20, 40];

function neededRate(
  subject: ForecastSubject,
  standing: Standing,
  { targetScore, targetDate }: GoalOutlook,
): number | null {
  const days = horizonOf(targetDate, subject.now);
  const reaches = (rate: number): boolean => {
    const practising = forecastUnder(subject, standing, steadyHabit(standing, { math: rate, rw: rate }));
    return practising.scoresIn(days).total >= targetScore;
  };
  // Most goals that are out of reach stay so at any rate: the highest is tried first.
  return reaches(Math.max(...triedRates)) ? (triedRates.find(reaches) ?? null) : null;
}
