/**
 * Projects mastery u (science notes 6.3): du/dt = learn (1 - u) - forget (u - retained), without forgetting
 * below `retained`. Each skill only rises or only falls.
 */

import { defaultParameters, forgettingConstants } from '../base/bkt-parameters.js';
import { dayMs, type PerSection, type Section } from '../base/common.js';
import { abilityFading, projectionConstants, projectLearning } from '../base/score-constants.js';
import { computeSectionShare } from '../catalogue/catalogue.js';
import type { SkillView } from '../learner/skill-view.js';
import { computeHalfLife } from '../tracing/bkt.js';
import { isPlateau } from '../tracing/plateau.js';
import { isRapidFlagged } from '../tracing/response-times.js';
import { computeGrowth } from '../tracing/trend.js';
import { abilityToMastery, findTrust, type LearnerAssessment, masteryToAbility } from './assessment.js';
import type { PracticeHabit, SkillPractice } from './practice-habit.js';

/** For days 0 to 365: an upper bound over the range, exact for one day. */
export function projectAbilityChanges(
  assessment: LearnerAssessment,
  habit: PracticeHabit,
  views = assessment.views,
): (from: number, to: number) => PerSection<number> {
  const projectSection = (section: Section) =>
    createAbilityProjection(projectSkills(views, section, assessment, habit));
  const { measures, estimate } = assessment;
  // Without a catalogue both sections are equal.
  const areSectionsEqual =
    habit.isEqualBySection &&
    estimate.theta.math === estimate.theta.rw &&
    measures.math.registeredWeight === measures.rw.registeredWeight &&
    views.every(({ placement }) => placement.section === null);
  const inMath = projectSection('math');
  const inRw = areSectionsEqual ? null : projectSection('rw');
  return (from, to) => {
    const math = inMath(from, to);
    return { math, rw: inRw === null ? math : inRw(from, to) };
  };
}

/**
 * Practice and forgetting change the mastery of a skill, and what ability predicts for its untrusted part. Skills
 * without answers learn nothing from the practice of others, and fade like the mean skill.
 */
function projectSkills(
  views: readonly SkillView[],
  section: Section,
  { learner, model, measures, estimate, now }: LearnerAssessment,
  habit: PracticeHabit,
): ProjectedSkill[] {
  const projected: ProjectedSkill[] = [];
  const ability = abilityToMastery(estimate.theta[section]);
  const growth = computeGrowth(learner.trend, model.growth);
  const { registeredWeight, halfLife } = measures[section];
  let unseenWeight = registeredWeight;
  let shortestIdle = Number.POSITIVE_INFINITY;
  const add = (mastery: number, weight: number, change: SkillChange, fading: Fading): void => {
    if (weight > 0) projected.push({ mastery, weight, change, fading });
  };
  const abilityFadingAfter = (idleDays: number): Fading => ({
    halfLife,
    graceDays: Math.max(0, abilityFading.graceDays - idleDays),
  });
  for (const view of views) {
    const { state, placement } = view;
    const weight = computeSectionShare(placement, section) * placement.weight;
    if (weight === 0) continue;
    const practice = habit.practiceFor(view, section);
    const change = computeChange(view, practice, growth);
    const trusted = state.attempts === 0 ? 0 : weight * findTrust(view);
    const idleDays = Math.max(0, now - state.lastAttemptAt) / dayMs;
    add(view.mastery, trusted, change, computeSkillFading(state.correctDays + practice.rightDays, idleDays));
    add(ability, weight - trusted, change, abilityFadingAfter(idleDays));
    unseenWeight -= weight;
    shortestIdle = Math.min(shortestIdle, idleDays);
  }
  const { rate, freshness } = habit.practiceFor(null, section);
  const { pInit, pLearn } = defaultParameters;
  const learnRate = computeLearningRate(rate, growth * computeTestLearning(pLearn, false));
  add(ability, unseenWeight, { pInit, freshness, learnRate }, abilityFadingAfter(shortestIdle));
  return projected;
}

type SkillChange = ReturnType<typeof computeChange>;

function computeChange(view: SkillView, { rate, freshness }: SkillPractice, growth: number) {
  const { pInit, pLearn } = view.model.parameters;
  /** Daily rate towards 1. */
  const learnRate = computeLearningRate(rate, growth * computeTestLearning(pLearn, isSlowed(view)));
  return { pInit, freshness, learnRate };
}

interface Fading {
  /** Days. */
  readonly halfLife: number;
  readonly graceDays: number;
}

const computeSkillFading = (correctDays: number, idleDays: number): Fading => ({
  halfLife: computeHalfLife(correctDays),
  graceDays: Math.max(0, forgettingConstants.graceDays - idleDays),
});

const isSlowed = ({ state }: SkillView): boolean => isPlateau(state.plateau) || isRapidFlagged(state.rapid);

interface ProjectedSkill {
  readonly mastery: number;
  readonly weight: number;
  readonly change: SkillChange;
  readonly fading: Fading;
}

export const computeTestLearning = (pLearn: number, isSlowed: boolean): number =>
  projectLearning(pLearn) * (isSlowed ? projectionConstants.slowedShare : 1);

const computeLearningRate = (answersPerDay: number, learning: number): number =>
  -answersPerDay * Math.log1p(-learning);

const computeRetainedMastery = (mastery: number, { pInit, freshness }: SkillChange): number =>
  pInit + freshness * Math.max(0, mastery - pInit);

/** Sums over skills that change alike: `full` - `gap` exp(-speed t), after `from` days; before, `one` - `rest` exp(-learn t). */
interface Movement {
  readonly isFalling: boolean;
  readonly speed: number;
  readonly from: number;
  readonly learn: number;
  full: number;
  gap: number;
  one: number;
  rest: number;
}

/**
 * Change of ability after `fallingDays` for falling skills and `risingDays` for rising ones. A skill never turns, so
 * the first and last day of a range bound the days between.
 */
export function createAbilityProjection(
  skills: readonly ProjectedSkill[],
): (fallingDays: number, risingDays: number) => number {
  const movements = mergeMovements(skills);
  const weights = skills.reduce((sum, { weight }) => sum + weight, 0);
  const now = masteryToAbility(sumMastery(movements, 0, 0) / weights);
  return (fallingDays, risingDays) =>
    Math.min(
      projectionConstants.maxChange,
      masteryToAbility(sumMastery(movements, fallingDays, risingDays) / weights) - now,
    );
}

/** Skills with equal rates share one exponential function, which most of the time is spent on. */
function mergeMovements(skills: readonly ProjectedSkill[]): Movement[] {
  const bySpeed = new Map<number, Movement[]>();
  for (const skill of skills) {
    const movement = buildMovement(skill);
    const { isFalling, speed, from, learn } = movement;
    const same = bySpeed.get(speed);
    if (same === undefined) bySpeed.set(speed, [movement]);
    else {
      const equal = same.find(
        (one) => one.isFalling === isFalling && one.from === from && one.learn === learn,
      );
      if (equal === undefined) same.push(movement);
      else addMovement(equal, movement);
    }
  }
  return [...bySpeed.values()].flat();
}

function addMovement(sum: Movement, { full, gap, one, rest }: Movement): void {
  sum.full += full;
  sum.gap += gap;
  sum.one += one;
  sum.rest += rest;
}

/** Lists every field, because object spread is about ten times slower. */
function buildMovement({ mastery, weight, change, fading }: ProjectedSkill): Movement {
  const { learnRate: learn, freshness } = change;
  const { halfLife, graceDays } = fading;
  const forgetRate = ((1 - freshness) * Math.LN2) / halfLife;
  const retained = computeRetainedMastery(mastery, change);
  const speed = forgetRate + learn;
  const balance = speed === 0 ? mastery : (forgetRate * retained + learn) / speed;
  const isFalling = balance < mastery;
  // Mastery below `retained` forgets nothing until learning reaches it. Falling mastery waits for its grace days.
  const isBelow = forgetRate > 0 && mastery < retained;
  const turn = isBelow ? retained : mastery;
  return {
    isFalling,
    speed,
    from: isBelow ? computeLearningTime(mastery, retained, learn) : isFalling ? graceDays : 0,
    learn: isBelow ? learn : 0,
    full: weight * balance,
    gap: weight * (balance - turn),
    one: weight,
    rest: weight * (1 - mastery),
  };
}

/** Days until learning reaches `retained`. */
const computeLearningTime = (mastery: number, retained: number, learnRate: number): number =>
  learnRate === 0 ? Number.POSITIVE_INFINITY : Math.log((1 - mastery) / (1 - retained)) / learnRate;

function sumMastery(movements: readonly Movement[], fallingDays: number, risingDays: number): number {
  let sum = 0;
  for (const { isFalling, speed, from, learn, full, gap, one, rest } of movements) {
    const days = isFalling ? fallingDays : risingDays;
    sum += days < from ? one - rest * Math.exp(-learn * days) : full - gap * Math.exp(-speed * (days - from));
  }
  return sum;
}
