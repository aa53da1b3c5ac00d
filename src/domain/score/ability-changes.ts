/** How both abilities change under a habit of practice. */

import { defaultParameters } from '../base/params.js';
import type { PerSection, Section } from '../base/types.js';
import { shareOf } from '../catalogue/catalogue.js';
import type { SkillView } from '../learner/skill-view.js';
import { isPlateau } from '../tracing/plateau.js';
import { rapidFlag } from '../tracing/rapid.js';
import type { Habit } from './habit.js';
import {
  forgettingRate,
  graceLeft,
  keptMastery,
  learningOf,
  learningRate,
  outlookOf,
  type ProjectedSkill,
} from './projection.js';
import { masteryOf, trustOf } from './section-measure.js';
import type { Standing } from './standing.js';

/**
 * Changes of both abilities, by days 0 to 365: no change on a day in the range is above the one returned, and for a
 * single day it is that day's.
 *
 * @param views of all skills that the habit is about
 * @param now Unix milliseconds
 */
export function abilityChanges(
  views: readonly SkillView[],
  standing: Standing,
  habit: Habit,
  now: number,
): (from: number, to: number) => PerSection<number> {
  const outlook = (section: Section) => outlookOf(projectedSkills(views, section, standing, habit, now));
  const { measures, estimate } = standing;
  // Without a catalogue both sections look the same: one of them is projected.
  const areSame =
    habit.isSame &&
    estimate.theta.math === estimate.theta.rw &&
    measures.math.knownWeight === measures.rw.knownWeight &&
    views.every(({ placement }) => placement.section === null);
  const inMath = outlook('math');
  const inRw = areSame ? null : outlook('rw');
  return (from, to) => {
    const math = inMath(from, to);
    return { math, rw: inRw === null ? math : inRw(from, to) };
  };
}

/**
 * A section's skills as far as their mastery is trusted, and for the rest what ability predicts. The rest is not
 * forgotten and learns like the mean of the skills, without skills like a new one; it is gathered by rate of practice.
 */
function projectedSkills(
  views: readonly SkillView[],
  section: Section,
  { measures, estimate }: Standing,
  habit: Habit,
  now: number,
): ProjectedSkill[] {
  const projected: ProjectedSkill[] = [];
  const restByRate = new Map<number, number>();
  const addRest = (rate: number, weight: number) =>
    restByRate.set(rate, (restByRate.get(rate) ?? 0) + weight);
  let [weights, learningSum] = [0, 0];
  for (const view of views) {
    const weight = shareOf(view.placement, section) * view.placement.weight;
    if (weight === 0) continue;
    const { state, model, mastery } = view;
    const { rate, freshness, rightDays } = habit.of(view, section);
    // Less is learned on a plateau, and by answers too fast to learn from.
    const learning = learningOf(model.parameters.pLearn, isPlateau(state.plateau) || rapidFlag(state.rapid));
    const trusted = state.attempts === 0 ? 0 : weight * trustOf(view);
    if (trusted > 0)
      projected.push({
        mastery,
        weight: trusted,
        kept: keptMastery(mastery, model.parameters.pInit, freshness),
        learn: learningRate(rate, learning),
        forget: forgettingRate(state.correctDays + rightDays, freshness),
        grace: graceLeft(now - state.lastAttemptAt),
      });
    weights += weight;
    learningSum += weight * learning;
    addRest(rate, weight - trusted);
  }
  const mastery = masteryOf(estimate.theta[section]);
  addRest(habit.of(null, section).rate, Math.max(0, measures[section].knownWeight - weights));
  const learning = weights === 0 ? learningOf(defaultParameters.pLearn, false) : learningSum / weights;
  for (const [rate, weight] of restByRate) {
    const learn = learningRate(rate, learning);
    projected.push({ mastery, weight, kept: mastery, learn, forget: 0, grace: 0 });
  }
  return projected;
}
