import { accuracyConstants } from '../base/accuracy-constants.js';
import { defaultParameters, forgettingConstants } from '../base/bkt-parameters.js';
import { clamp, mapSections, type PerSection, round1 } from '../base/common.js';
import { normalCdf } from '../base/normal-distribution.js';
import { goalConstants, scoreConstants } from '../base/score-constants.js';
import type { SkillView } from '../learner/skill-view.js';
import { computeAccuracyInterval, forecastAccuracy } from '../prediction/accuracy-model.js';
import { computePractice } from '../tracing/activity.js';
import { applyForgetting, predictCorrect } from '../tracing/bkt.js';
import { assessLearner, countIdleDays, type ForecastSubject, type LearnerAssessment } from './assessment.js';
import { computeGoalStatus, computeHorizon, type TrackedGoal } from './goal.js';
import { projectAbilityChanges } from './mastery-projection.js';
import {
  buildHabit,
  buildSteadyHabit,
  buildSteadyPractice,
  computeFineness,
  computeSkillPractice,
  estimateCurrentPractice,
  type PracticeHabit,
} from './practice-habit.js';
import { computeScores, forecastScores, type ScoreForecast, type Scores } from './scores.js';

export const defaultForecastDays = 30;

export interface ForecastRequest {
  /** 1 to 365. */
  readonly days: number;
  /** 0.5 to 0.99. */
  readonly level: number;
  /** Null: use the default goal. */
  readonly goal: TrackedGoal | null;
}

export type LearnerForecast = ReturnType<typeof forecastLearner>;

export function forecastLearner(subject: ForecastSubject, request: ForecastRequest) {
  const { assessment, practice, forecast } = forecastHabit(subject);
  const requested = forecast.forecastIn(request.days, request.level);
  const goal = assessGoal(assessment, forecast, request.goal);
  return {
    current: forecast.current,
    in30Days:
      request.days === defaultForecastDays ? requested.scores : forecast.scoresIn(defaultForecastDays),
    requested,
    goal,
    accuracy: forecastAnswerAccuracy(assessment, request),
    neededRate: goal.isSet && !goal.onTrack ? findNeededRate(assessment, goal) : null,
    measures: assessment.measures,
    practice,
    /** 1 - variance / population variance. */
    reliability: mapSections((section) => clamp(1 - assessment.estimate.variance[section], 0, 1)),
  };
}

function forecastHabit(subject: ForecastSubject) {
  const assessment = assessLearner(subject);
  const practice = estimateCurrentPractice(assessment);
  return { assessment, practice, forecast: createForecast(assessment, buildHabit(assessment, practice)) };
}

/** The same figures as `goal` of `forecastLearner`, for a fraction of the time. */
export function forecastGoal(subject: ForecastSubject, tracked: TrackedGoal) {
  const { assessment, forecast } = forecastHabit(subject);
  const { today } = assessment;
  return { ...assessGoal(assessment, forecast, tracked), currentTotal: forecast.current.total, today };
}

function forecastAnswerAccuracy(assessment: LearnerAssessment, { days, level }: ForecastRequest) {
  const {
    learner,
    model: { accuracy },
    today,
  } = assessment;
  const { math, rw } = computePractice(learner.activity, today);
  const answers = Math.max(accuracyConstants.minAnswers, Math.round((math.rate + rw.rate) * days));
  const active = forecastAccuracy(accuracy, learner, accuracy.unit === 'days' ? days : answers);
  const forecast = { ...active, expected: fadeShare(active.expected, assessment) };
  return { ...forecast, answers, interval: computeAccuracyInterval(accuracy, forecast, answers, level) };
}

/** Without right answers, the share falls towards that of a new skill, like mastery. */
function fadeShare(share: number, { views, measures, today }: LearnerAssessment): number {
  const shortestIdle = views.reduce(
    (least, { state }) => Math.min(least, countIdleDays(state, today)),
    today,
  );
  const idleDays = shortestIdle - forgettingConstants.graceDays;
  const halfLife = Math.min(measures.math.halfLife, measures.rw.halfLife);
  return idleDays <= 0 ? share : applyForgetting(share, newSkillShare, 2 ** (-idleDays / halfLife));
}

const newSkillShare = predictCorrect(defaultParameters.pInit, defaultParameters);

/** Answers per day and section. */
const candidateRates = [1, 2, 5, 10, 20, 40];

function findNeededRate(
  assessment: LearnerAssessment,
  { targetScore, targetDate }: GoalOutlook,
): number | null {
  const days = computeHorizon(targetDate, assessment.today);
  const reaches = (rate: number): boolean => {
    const practising = createForecast(assessment, buildSteadyHabit(assessment, { math: rate, rw: rate }));
    return practising.scoresIn(days).total >= targetScore;
  };
  return reaches(Math.max(...candidateRates)) ? (candidateRates.find(reaches) ?? null) : null;
}

export interface PracticePlan {
  /** Sum of both sections. */
  readonly answersPerDay: number;
  /** Null: all skills, in the current proportion. */
  readonly skills: readonly SkillView[] | null;
}

export const maxAnswersPerDay = 1000;

export type PlanForecast = ReturnType<typeof forecastPlan>;

/** @param inDays until the target is due */
export function forecastPlan(
  subject: ForecastSubject,
  plan: PracticePlan,
  { days, level, goal: goalSetting }: ForecastRequest,
  inDays: number,
) {
  const assessment = assessLearner(subject);
  const added = plan.skills?.filter(({ state }) => state.attempts === 0) ?? [];
  const forecastAtRate = (answersPerDay: number): Forecast =>
    createForecast(assessment, buildPlannedHabit(assessment, { ...plan, answersPerDay }), added);
  const forecast = forecastAtRate(plan.answersPerDay);
  const currentForecast = createForecast(
    assessment,
    buildHabit(assessment, estimateCurrentPractice(assessment)),
  );
  const goal = assessGoal(assessment, forecast, goalSetting);
  return {
    current: forecast.current,
    planned: forecast.forecastIn(days, level),
    unplanned: currentForecast.scoresIn(days),
    goal,
    /** Null if the maximum is not enough. */
    neededAnswersPerDay: findMinRate(
      (rate) => forecastAtRate(rate).scoresIn(inDays).total >= goal.targetScore,
    ),
    neededInDays: inDays,
  };
}

/** Binary search: more practice never lowers a forecast. */
function findMinRate(reaches: (answersPerDay: number) => boolean): number | null {
  if (!reaches(maxAnswersPerDay)) return null;
  let [low, high] = [-1, maxAnswersPerDay];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (reaches(middle)) high = middle;
    else low = middle;
  }
  return high;
}

function buildPlannedHabit(
  assessment: LearnerAssessment,
  { answersPerDay, skills }: PracticePlan,
): PracticeHabit {
  const known = mapSections((section) => assessment.measures[section].registeredSkills);
  if (skills === null) {
    const share = computeMathShare(assessment, known);
    return buildSteadyHabit(assessment, { math: answersPerDay * share, rw: answersPerDay * (1 - share) });
  }
  const chosen = new Set(skills.map(({ skillId }) => skillId));
  const practice = buildSteadyPractice(answersPerDay);
  const practised = mapSections((section) =>
    computeSkillPractice(practice, computeFineness(assessment.measures[section]) / chosen.size),
  );
  const unpractised = computeSkillPractice(buildSteadyPractice(0), 0);
  return {
    practiceFor: (view, section) =>
      view !== null && chosen.has(view.skillId) ? practised[section] : unpractised,
    isEqualBySection: practised.math.rate === practised.rw.rate,
  };
}

/** Current proportion, else by the number of skills. */
function computeMathShare({ learner, today }: LearnerAssessment, skills: PerSection<number>): number {
  const { math, rw } = computePractice(learner.activity, today);
  const share = math.rate + rw.rate > 0 ? { math: math.rate, rw: rw.rate } : skills;
  const sum = share.math + share.rw;
  return sum > 0 ? share.math / sum : 0.5;
}

export type Forecast = ReturnType<typeof createForecast>;

export function createForecast(
  assessment: LearnerAssessment,
  habit: PracticeHabit,
  added: readonly SkillView[] = [],
) {
  const { estimate, views } = assessment;
  const { theta } = estimate;
  const changes = projectAbilityChanges(assessment, habit, added.length === 0 ? views : [...views, ...added]);
  const current = computeScores(theta);
  const bestScores: BestScores = (from, to) => {
    const { math, rw } = changes(from, to);
    return computeScores({ math: theta.math + math, rw: theta.rw + rw });
  };
  return {
    current,
    scoresIn: (days: number) => bestScores(days, days),
    forecastIn: (days: number, level: number): ScoreForecast => {
      const [lost, gained] = [changes(days, 0), changes(0, days)];
      const swing = mapSections((section) => Math.max(-lost[section], gained[section]));
      return forecastScores(estimate, changes(days, days), swing, days, level);
    },
    /** Days until the target, 0 to 365; null if never. */
    daysTo: (target: number): number | null =>
      current.total >= target ? 0 : findFirstDay(bestScores, target, 1, goalConstants.horizonDays),
  };
}

/** Totals may fall again, so the search compares upper bounds of ranges. */
function findFirstDay(bestScores: BestScores, target: number, from: number, to: number): number | null {
  if (bestScores(from, to).total < target) return null;
  if (from === to) return from;
  const middle = (from + to) >> 1;
  return findFirstDay(bestScores, target, from, middle) ?? findFirstDay(bestScores, target, middle + 1, to);
}

/** Upper bound, exact for one day. */
type BestScores = (from: number, to: number) => Scores;

export type GoalOutlook = ReturnType<typeof assessGoal>;

function assessGoal({ learner, today }: LearnerAssessment, forecast: Forecast, tracked: TrackedGoal | null) {
  const base = learner.baselineTotal ?? goalConstants.defaultBaseline;
  const { targetScore, targetDate } = tracked ?? {
    targetScore: computeDefaultTarget(base),
    targetDate: null,
  };
  const horizon = computeHorizon(targetDate, today);
  const atHorizon = forecast.forecastIn(horizon, scoreConstants.defaultLevel);
  const daysToGoal = forecast.daysTo(targetScore);
  const isReached = daysToGoal !== null && daysToGoal <= horizon;
  const isKept = atHorizon.scores.total >= targetScore;
  const probability = computeReachProbability(targetScore, atHorizon);
  const { total } = forecast.current;
  return {
    targetScore,
    targetDate,
    isSet: tracked !== null,
    status: tracked === null ? ('none' as const) : computeGoalStatus(tracked, total, probability, today),
    /** Points below the target. */
    gap: Math.max(0, targetScore - total),
    daysToGoal,
    progressPercent: computeProgress(targetScore, base, total),
    onTrack: isReached && isKept,
    isLost: isReached && !isKept,
    predictedTotal: atHorizon.scores.total,
    probability,
  };
}

const computeDefaultTarget = (base: number): number => clamp(50 * Math.ceil(base / 50) + 100, 500, 1600);

function computeProgress(target: number, base: number, current: number): number {
  if (current >= target) return 100;
  if (target <= base) return 0;
  return round1(100 * clamp((current - base) / (target - base), 0, 1));
}

const computeReachProbability = (target: number, { totalCentre, totalSd }: ScoreForecast): number =>
  target <= 2 * scoreConstants.sectionMin ? 1 : 1 - normalCdf((target - totalCentre) / totalSd);
