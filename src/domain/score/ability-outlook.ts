/** How both abilities go on under a habit of practice. */

import { defaultParameters } from '../base/params.js';
import type { PerSection, Section } from '../base/types.js';
import { shareOf } from '../catalogue/catalogue.js';
import type { SkillView } from '../learner/skill-view.js';
import { isPlateau } from '../tracing/plateau.js';
import { rapidFlag } from '../tracing/rapid.js';
import type { Habit, SkillPractice } from './habit.js';
import {
  forgettingRate,
  graceLeft,
  keptMastery,
  learningOf,
  learningRate,
  type Outlook,
  outlookOf,
  type ProjectedSkill,
} from './projection.js';
import type { AbilityOutlook } from './score.js';
import { masteryOf, trustOf } from './section-measure.js';
import type { Standing } from './standing.js';

export interface AbilityPaths {
  /** No change on any of the days is above it, and for a single day it is that day's; days are 0 to 365. */
  best(from: number, to: number): PerSection<number>;
  /** @param days 0 to 365 */
  until(days: number): AbilityOutlook;
}

/**
 * @param views of all skills that the habit is about
 * @param now Unix milliseconds
 */
export function abilityPaths(
  views: readonly SkillView[],
  standing: Standing,
  habit: Habit,
  now: number,
): AbilityPaths {
  const outlooks = outlooksOf(views, standing, habit, now);
  const best = (from: number, to: number): PerSection<number> => {
    const math = outlooks.math(from, to);
    return { math, rw: outlooks.rw === outlooks.math ? math : outlooks.rw(from, to) };
  };
  return {
    best,
    until: (days) => {
      const [lost, gained] = [best(days, 0), best(0, days)];
      const swing = { math: Math.max(-lost.math, gained.math), rw: Math.max(-lost.rw, gained.rw) };
      return { change: best(days, days), swing };
    },
  };
}

/** Of a tenant without a catalogue both sections look the same, so one of them is looked at. */
function outlooksOf(
  views: readonly SkillView[],
  standing: Standing,
  habit: Habit,
  now: number,
): PerSection<Outlook> {
  const outlook = (section: Section): Outlook =>
    outlookOf(projectedSkills(views, section, standing, habit, now));
  const { measures, estimate } = standing;
  const areSame =
    habit.isSame &&
    estimate.theta.math === estimate.theta.rw &&
    measures.math.knownWeight === measures.rw.knownWeight &&
    views.every(({ placement }) => placement.section === null);
  const math = outlook('math');
  return { math, rw: areSame ? math : outlook('rw') };
}

/**
 * A section's skills as far as their mastery is trusted, and for the rest what ability foretells, which is not forgotten.
 */
function projectedSkills(
  views: readonly SkillView[],
  section: Section,
  { measures, estimate }: Standing,
  habit: Habit,
  now: number,
): ProjectedSkill[] {
  const projected: ProjectedSkill[] = [];
  const foretold = createForetold();
  for (const view of views) {
    const weight = shareOf(view.placement, section) * view.placement.weight;
    if (weight === 0) continue;
    const practice = habit.of(view, section);
    const learning = learningOn(view);
    const trusted = view.state.attempts === 0 ? 0 : weight * trustOf(view);
    if (trusted > 0) projected.push(projectedSkill(view, trusted, practice, learning, now));
    foretold.addSkill(weight, weight - trusted, practice.rate, learning);
  }
  const mastery = masteryOf(estimate.theta[section]);
  const unseen = habit.of(null, section).rate;
  projected.push(...foretold.skills(mastery, measures[section].knownWeight, unseen));
  return projected;
}

/**
 * What is known by ability alone, gathered by how much it is practised: it learns like the mean of the skills, and where
 * there are none, like a new one.
 */
function createForetold() {
  const byRate = new Map<number, number>();
  let [weights, learning] = [0, 0];
  const add = (rate: number, weight: number) => byRate.set(rate, (byRate.get(rate) ?? 0) + weight);
  return {
    addSkill: (weight: number, foretold: number, rate: number, skillLearning: number): void => {
      weights += weight;
      learning += weight * skillLearning;
      add(rate, foretold);
    },
    skills: (mastery: number, knownWeight: number, unseenRate: number): ProjectedSkill[] => {
      add(unseenRate, Math.max(0, knownWeight - weights));
      const mean = weights === 0 ? learningOf(defaultParameters.pLearn, false) : learning / weights;
      return [...byRate].map(([rate, weight]) => {
        const learn = learningRate(rate, mean);
        return { mastery, weight, kept: mastery, learn, forget: 0, grace: 0 };
      });
    },
  };
}

/** Learning at an answer: less on a plateau, and by answers too fast to learn from. */
const learningOn = ({ state: { plateau, rapid }, model }: SkillView): number =>
  learningOf(model.parameters.pLearn, isPlateau(plateau) || rapidFlag(rapid));

const projectedSkill = (
  view: SkillView,
  weight: number,
  { rate, freshness, rightDays }: SkillPractice,
  learning: number,
  now: number,
): ProjectedSkill => ({
  mastery: view.mastery,
  weight,
  kept: keptMastery(view.mastery, view.model.parameters.pInit, freshness),
  learn: learningRate(rate, learning),
  forget: forgettingRate(view.state.correctDays + rightDays, freshness),
  grace: graceLeft(now - view.state.lastAttemptAt),
});
