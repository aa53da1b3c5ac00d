/** A forecast under another plan of practice than the learner's present one. */

import { dayOf } from '../base/days.js';
import { scoreModel } from '../base/params.js';
import { type PerSection, perSection } from '../base/types.js';
import type { SkillView } from '../learner/skill-view.js';
import { practiceOf } from '../tracing/activity.js';
import { type Forecast, forecastUnder } from './forecast.js';
import { type GoalOutlook, goalOutlook } from './goal.js';
import { type Habit, habitOf, presentPractice, skillPractice, steadyHabit, steadyPractice } from './habit.js';
import type { ForecastRequest } from './learner-forecast.js';
import type { ScoreForecast, Scores } from './score.js';
import { type ForecastSubject, type Standing, standingOf } from './standing.js';

export interface PracticePlan {
  /** Over all sections together, every day, 0 or more. */
  readonly answersPerDay: number;
  /** The only skills that are practised, each as often; null: all, in the sections' present proportion. */
  readonly skills: readonly SkillView[] | null;
}

export interface WhatIf {
  readonly current: Scores;
  readonly planned: ScoreForecast;
  /** As the learner goes on now. */
  readonly unplanned: Scores;
  readonly goal: GoalOutlook;
  /** Least whole number of answers a day, on the plan's skills, that reaches the target; null above `maxAnswersPerDay`. */
  readonly neededAnswersPerDay: number | null;
  /** Days after which that is. */
  readonly neededInDays: number;
}

/** More answers than this in a day are no plan. */
export const maxAnswersPerDay = 1000;

/** @param inDays when the learner is to reach the target, 0 to 365 */
export function forecastPlan(
  subject: ForecastSubject,
  plan: PracticePlan,
  { days, level, goal: set }: ForecastRequest,
  inDays: number,
): WhatIf {
  const standing = standingOf(subject);
  const added = plan.skills?.filter(({ state }) => state.attempts === 0) ?? [];
  const under = (answersPerDay: number): Forecast =>
    forecastUnder(subject, standing, plannedHabit(subject, standing, { ...plan, answersPerDay }), added);
  const forecast = under(plan.answersPerDay);
  const present = forecastUnder(subject, standing, habitOf(standing, presentPractice(subject)));
  const goal = goalOutlook(subject, forecast, set);
  return {
    current: forecast.current,
    planned: forecast.forecastIn(days, level),
    unplanned: present.scoresIn(days),
    goal,
    neededAnswersPerDay: leastRate((rate) => under(rate).scoresIn(inDays).total >= goal.targetScore),
    neededInDays: inDays,
  };
}

/** More practice never lowers a forecast, so that a binary search finds the least rate. */
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

function plannedHabit(
  subject: ForecastSubject,
  standing: Standing,
  { answersPerDay, skills }: PracticePlan,
): Habit {
  const known = perSection((section) => standing.measures[section].knownSkills);
  if (skills === null) return steadyHabit(standing, ratesOf(subject, known, answersPerDay));
  const chosen = new Set(skills.map(({ skillId }) => skillId));
  const practice = steadyPractice(answersPerDay);
  // Where few skills are known, each stands for many fine ones, which share its answers.
  const practised = perSection((section) =>
    skillPractice(practice, Math.min(1, known[section] / scoreModel.leastSkills) / chosen.size),
  );
  const left = skillPractice(steadyPractice(0), 0);
  return {
    of: (view, section) => (view !== null && chosen.has(view.skillId) ? practised[section] : left),
    isSame: practised.math.rate === practised.rw.rate,
  };
}

/** Answers a day shared between the sections as now, or, without present practice, by their skills. */
function ratesOf(
  subject: ForecastSubject,
  skills: PerSection<number>,
  answersPerDay: number,
): PerSection<number> {
  const { math, rw } = practiceOf(subject.learner.activity, dayOf(subject.now));
  const share = math.rate + rw.rate > 0 ? { math: math.rate, rw: rw.rate } : skills;
  const sum = share.math + share.rw;
  const mathShare = sum > 0 ? share.math / sum : 0.5;
  return { math: answersPerDay * mathShare, rw: answersPerDay * (1 - mathShare) };
}
