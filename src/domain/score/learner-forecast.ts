import { accuracyConstants } from '../base/accuracy-constants.js';
import { clamp, dayOf, type PerSection, perSection, round1 } from '../base/common.js';
import { normalCdf } from '../base/normal.js';
import { goalModel, scoreModel } from '../base/score-constants.js';
import type { SkillView } from '../learner/skill-view.js';
import { accuracyInterval, forecastAccuracy } from '../prediction/accuracy-model.js';
import { practiceOf } from '../tracing/activity.js';
import { type ForecastSubject, type Standing, standingOf } from './assessment.js';
import { type GoalSetting, horizonOf } from './goal.js';
import {
  abilityChanges,
  type Habit,
  habitOf,
  presentPractice,
  skillPractice,
  steadyHabit,
  steadyPractice,
} from './projection.js';
import { forecastScores, type ScoreForecast, type Scores, scoresOf } from './scores.js';

export const standardDays = 30;

export interface ForecastRequest {
  /** 1 to 365. */
  readonly days: number;
  /** 0.5 to 0.99. */
  readonly level: number;
  /** Null: use the default goal. */
  readonly goal: GoalSetting | null;
}

export type LearnerForecast = ReturnType<typeof forecastLearner>;

export function forecastLearner(subject: ForecastSubject, request: ForecastRequest) {
  const standing = standingOf(subject);
  const practice = presentPractice(subject);
  const forecast = forecastUnder(standing, habitOf(standing, practice));
  const requested = forecast.forecastIn(request.days, request.level);
  const goal = goalOutlook(standing, forecast, request.goal);
  return {
    current: forecast.current,
    in30Days: request.days === standardDays ? requested.scores : forecast.scoresIn(standardDays),
    requested,
    goal,
    accuracy: accuracyOutlook(subject, request),
    neededRate: goal.isSet && !goal.onTrack ? neededRate(standing, goal) : null,
    measures: standing.measures,
    practice,
    /** 1 - variance / population variance. */
    reliability: perSection((section) => clamp(1 - standing.estimate.variance[section], 0, 1)),
  };
}

function accuracyOutlook(
  { learner, model: { accuracy }, now }: ForecastSubject,
  { days, level }: ForecastRequest,
) {
  const { math, rw } = practiceOf(learner.activity, dayOf(now));
  const answers = Math.max(accuracyConstants.minAnswers, Math.round((math.rate + rw.rate) * days));
  const forecast = forecastAccuracy(accuracy, learner, accuracy.unit === 'days' ? days : answers);
  return { ...forecast, answers, interval: accuracyInterval(accuracy, forecast, answers, level) };
}

/** Answers per day and section. */
const triedRates = [1, 2, 5, 10, 20, 40];

function neededRate(standing: Standing, { targetScore, targetDate }: GoalOutlook): number | null {
  const days = horizonOf(targetDate, standing.now);
  const reaches = (rate: number): boolean => {
    const practising = forecastUnder(standing, steadyHabit(standing, { math: rate, rw: rate }));
    return practising.scoresIn(days).total >= targetScore;
  };
  return reaches(Math.max(...triedRates)) ? (triedRates.find(reaches) ?? null) : null;
}

export interface PracticePlan {
  /** Sum of both sections. */
  readonly answersPerDay: number;
  /** Null: all skills, in the current proportion. */
  readonly skills: readonly SkillView[] | null;
}

export const maxAnswersPerDay = 1000;

export type WhatIf = ReturnType<typeof forecastPlan>;

/** @param inDays until the target is due */
export function forecastPlan(
  subject: ForecastSubject,
  plan: PracticePlan,
  { days, level, goal: set }: ForecastRequest,
  inDays: number,
) {
  const standing = standingOf(subject);
  const added = plan.skills?.filter(({ state }) => state.attempts === 0) ?? [];
  const under = (answersPerDay: number): Forecast =>
    forecastUnder(standing, plannedHabit(standing, { ...plan, answersPerDay }), added);
  const forecast = under(plan.answersPerDay);
  const present = forecastUnder(standing, habitOf(standing, presentPractice(subject)));
  const goal = goalOutlook(standing, forecast, set);
  return {
    current: forecast.current,
    planned: forecast.forecastIn(days, level),
    unplanned: present.scoresIn(days),
    goal,
    /** Null if the maximum is not enough. */
    neededAnswersPerDay: leastRate((rate) => under(rate).scoresIn(inDays).total >= goal.targetScore),
    neededInDays: inDays,
  };
}

/** Binary search: more practice never lowers a forecast. */
function leastRate(reaches: (answersPerDay: number) => boolean): number | null {
  if (!reaches(maxAnswersPerDay)) return null;
  let [low, high] = [-1, maxAnswersPerDay];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (reaches(middle)) high = middle;
    else low = middle;
  }
  return high;
}

function plannedHabit(standing: Standing, { answersPerDay, skills }: PracticePlan): Habit {
  const known = perSection((section) => standing.measures[section].knownSkills);
  if (skills === null) {
    const share = mathShare(standing, known);
    return steadyHabit(standing, { math: answersPerDay * share, rw: answersPerDay * (1 - share) });
  }
  const chosen = new Set(skills.map(({ skillId }) => skillId));
  const practice = steadyPractice(answersPerDay);
  const practised = perSection((section) =>
    skillPractice(practice, Math.min(1, known[section] / scoreModel.leastSkills) / chosen.size),
  );
  const left = skillPractice(steadyPractice(0), 0);
  return {
    of: (view, section) => (view !== null && chosen.has(view.skillId) ? practised[section] : left),
    isSame: practised.math.rate === practised.rw.rate,
  };
}

/** Current proportion, else by the number of skills. */
function mathShare({ learner, now }: Standing, skills: PerSection<number>): number {
  const { math, rw } = practiceOf(learner.activity, dayOf(now));
  const share = math.rate + rw.rate > 0 ? { math: math.rate, rw: rw.rate } : skills;
  const sum = share.math + share.rw;
  return sum > 0 ? share.math / sum : 0.5;
}

export type Forecast = ReturnType<typeof forecastUnder>;

export function forecastUnder(standing: Standing, habit: Habit, added: readonly SkillView[] = []) {
  const { estimate, views } = standing;
  const { theta } = estimate;
  const changes = abilityChanges(standing, habit, added.length === 0 ? views : [...views, ...added]);
  const current = scoresOf(theta);
  const bestScores: BestScores = (from, to) => {
    const { math, rw } = changes(from, to);
    return scoresOf({ math: theta.math + math, rw: theta.rw + rw });
  };
  return {
    current,
    scoresIn: (days: number) => bestScores(days, days),
    forecastIn: (days: number, level: number): ScoreForecast => {
      const [lost, gained] = [changes(days, 0), changes(0, days)];
      const swing = perSection((section) => Math.max(-lost[section], gained[section]));
      return forecastScores(estimate, changes(days, days), swing, days, level);
    },
    /** Days until the target, 0 to 365; null if never. */
    daysTo: (target: number): number | null =>
      current.total >= target ? 0 : firstDay(bestScores, target, 1, goalModel.horizonDays),
  };
}

/** Totals may fall again, so the search compares upper bounds of ranges. */
function firstDay(best: BestScores, target: number, from: number, to: number): number | null {
  if (best(from, to).total < target) return null;
  if (from === to) return from;
  const middle = (from + to) >> 1;
  return firstDay(best, target, from, middle) ?? firstDay(best, target, middle + 1, to);
}

/** Upper bound, exact for one day. */
type BestScores = (from: number, to: number) => Scores;

export type GoalOutlook = ReturnType<typeof goalOutlook>;

function goalOutlook({ learner, now }: Standing, forecast: Forecast, set: GoalSetting | null) {
  const base = learner.baselineTotal ?? goalModel.defaultBaseline;
  const { targetScore, targetDate } = set ?? { targetScore: defaultTarget(base), targetDate: null };
  const horizon = horizonOf(targetDate, now);
  const inTime = forecast.forecastIn(horizon, scoreModel.defaultLevel);
  const daysToGoal = forecast.daysTo(targetScore);
  const isReached = daysToGoal !== null && daysToGoal <= horizon;
  const isKept = inTime.scores.total >= targetScore;
  return {
    targetScore,
    targetDate,
    isSet: set !== null,
    daysToGoal,
    progressPercent: progress(targetScore, base, forecast.current.total),
    onTrack: isReached && isKept,
    isLost: isReached && !isKept,
    predictedTotal: inTime.scores.total,
    probability: reachProbability(targetScore, inTime),
  };
}

const defaultTarget = (base: number): number => clamp(50 * Math.ceil(base / 50) + 100, 500, 1600);

function progress(target: number, base: number, current: number): number {
  if (current >= target) return 100;
  if (target <= base) return 0;
  return round1(100 * clamp((current - base) / (target - base), 0, 1));
}

const reachProbability = (target: number, { totalCentre, totalSd }: ScoreForecast): number =>
  target <= 2 * scoreModel.sectionMin ? 1 : 1 - normalCdf((target - totalCentre) / totalSd);
