/** How a learner is taken to go on practising. */

import { dayOf } from '../base/days.js';
import { activityModel, projectionModel, scoreModel } from '../base/params.js';
import { type PerSection, perSection, type Section } from '../base/types.js';
import type { SkillView } from '../learner/skill-view.js';
import { assumedPractice, type Practice } from '../tracing/activity.js';
import type { ForecastSubject, Standing } from './standing.js';

/** How a skill is practised from now on. */
export interface SkillPractice {
  /** Answers per day. */
  readonly rate: number;
  /** Share of its mastery that practice keeps from fading, 0 to 1. */
  readonly freshness: number;
  /** Days with a right answer that come soon (`projectionModel.spacingDays`): they lengthen its half-life. */
  readonly rightDays: number;
}

export interface Habit {
  /** @param view null: of skills that the learner never answered */
  of(view: SkillView | null, section: Section): SkillPractice;
  /** Whether a skill is practised alike in both sections. */
  readonly isSame: boolean;
}

/** Present practice of all skills of a section, as it is taken to go on. */
export const presentPractice = ({ learner, now }: ForecastSubject): PerSection<Practice> =>
  assumedPractice(learner.activity, learner.attempts, dayOf(now));

/** @param rates answers per day, 0 or more */
export const steadyHabit = (standing: Standing, rates: PerSection<number>): Habit =>
  habitOf(
    standing,
    perSection((section) => steadyPractice(rates[section])),
  );

/** Below one answer a day some days have none. */
export const steadyPractice = (rate: number): Practice => ({
  rate,
  activeDays: activityModel.days * Math.min(1, rate),
});

/** A section's answers spread over its known skills; where these are few, each stands for many fine ones. */
export function habitOf({ measures }: Standing, practice: PerSection<Practice>): Habit {
  const habits = perSection((section) =>
    skillPractice(practice[section], 1 / Math.max(measures[section].knownSkills, scoreModel.leastSkills)),
  );
  const isSame = habits.math.rate === habits.rw.rate && habits.math.freshness === habits.rw.freshness;
  return { of: (_, section) => habits[section], isSame };
}

/** @param share of the answers that the skill gets */
export function skillPractice({ rate, activeDays }: Practice, share: number): SkillPractice {
  const { activeDays: fresh, spacingDays, rightShare } = projectionModel;
  const active = activeDays / activityModel.days;
  const answersThen = active === 0 ? 0 : (rate * share) / active;
  return {
    rate: rate * share,
    freshness: Math.min(1, activeDays / fresh),
    rightDays: spacingDays * active * -Math.expm1(-rightShare * answersThen),
  };
}
