/**
 * Projects mastery u (science notes 6.3): du/dt = learn (1 - u) - forget (u - retained), without forgetting
 * below `retained`. Each skill only rises or only falls.
 */

import { type BktParameters, defaultParameters, forgettingConstants } from '../base/bkt-parameters.js';
import { dayMs, type PerSection, type Section } from '../base/common.js';
import { abilityFading, projectionConstants, projectLearning } from '../base/score-constants.js';
import { computeSectionShare } from '../catalogue/catalogue.js';
import type { SkillView } from '../learner/skill-view.js';
import { computeHalfLife } from '../tracing/bkt.js';
import { isPlateau } from '../tracing/plateau.js';
import { isRapidFlagged } from '../tracing/response-times.js';
import { computeGrowth } from '../tracing/trend.js';
import {
  abilityToMastery,
  countIdleDays,
  findTrust,
  type LearnerAssessment,
  masteryToAbility,
} from './assessment.js';
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
 * without answers learn nothing from the practice of others, and fade like the untrusted parts.
 */
function projectSkills(
  views: readonly SkillView[],
  section: Section,
  assessment: LearnerAssessment,
  habit: PracticeHabit,
): ProjectedSkill[] {
  const { learner, model, measures, estimate } = assessment;
  const { registeredWeight, halfLife } = measures[section];
  const growth = computeGrowth(learner.trend, learner.attempts, model.growth);
  const predicted = { mastery: abilityToMastery(estimate.theta[section]), halfLife };
  const projected: ProjectedSkill[] = [];
  let unseenWeight = registeredWeight;
  let shortestIdle = Number.POSITIVE_INFINITY;
  for (const view of views) {
    const weight = computeSectionShare(view.placement, section) * view.placement.weight;
    if (weight === 0) continue;
    const practice = habit.practiceFor(view, section);
    const ownGrowth = view.state.attempts === 0 ? growth.unseen : growth.practised;
    projected.push(...projectSkill(view, weight, practice, ownGrowth, predicted, assessment));
    unseenWeight -= weight;
    shortestIdle = Math.min(shortestIdle, countIdleDays(view.state, assessment.today));
  }
  if (unseenWeight > 0) {
    const change = computeChange(defaultParameters, false, habit.practiceFor(null, section), growth.unseen);
    projected.push(fadeAbility(predicted, unseenWeight, change, shortestIdle));
  }
  return projected;
}

interface PredictedMastery {
  readonly mastery: number;
  /** Of forgetting, in days. */
  readonly halfLife: number;
}

function projectSkill(
  view: SkillView,
  weight: number,
  practice: SkillPractice,
  growth: number,
  predicted: PredictedMastery,
  { now, today }: Pick<LearnerAssessment, 'now' | 'today'>,
): ProjectedSkill[] {
  const { state, model, mastery } = view;
  const isSlowed = isPlateau(state.plateau) || isRapidFlagged(state.rapid);
  const change = computeChange(model.parameters, isSlowed, practice, growth);
  const trusted = state.attempts === 0 ? 0 : weight * findTrust(view);
  const halfLife = computeHalfLife(state.correctDays + practice.rightDays);
  const graceDays = computeGraceDays(now - state.lastAttemptAt);
  const own = { mastery, weight: trusted, change, halfLife, graceDays };
  if (trusted === weight) return [own];
  return [own, fadeAbility(predicted, weight - trusted, change, countIdleDays(state, today))];
}

const computeGraceDays = (idleMs: number): number =>
  Math.max(0, forgettingConstants.graceDays - Math.max(0, idleMs) / dayMs);

type SkillChange = ReturnType<typeof computeChange>;

function computeChange(
  { pInit, pLearn }: Pick<BktParameters, 'pInit' | 'pLearn'>,
  isSlowed: boolean,
  { rate, freshness }: SkillPractice,
  growth: number,
) {
  /** Daily rate towards 1. */
  const learnRate = computeLearningRate(rate, growth * computeTestLearning(pLearn, isSlowed));
  return { pInit, freshness, learnRate };
}

const fadeAbility = (
  { mastery, halfLife }: PredictedMastery,
  weight: number,
  change: SkillChange,
  idleDays: number,
): ProjectedSkill => ({
  mastery,
  weight,
  change,
  halfLife,
  graceDays: Math.max(0, abilityFading.graceDays - idleDays),
});

interface ProjectedSkill {
  readonly mastery: number;
  readonly weight: number;
  readonly change: SkillChange;
  /** Of forgetting, in days. */
  readonly halfLife: number;
  /** Before forgetting starts. */
  readonly graceDays: number;
}

export const computeTestLearning = (pLearn: number, isSlowed: boolean): number =>
  projectLearning(pLearn) * (isSlowed ? projectionConstants.slowedShare : 1);

const computeLearningRate = (answersPerDay: number, learning: number): number =>
  -answersPerDay * Math.log1p(-learning);

const computeRetainedMastery = (mastery: number, { pInit, freshness }: SkillChange): number =>
  pInit + freshness * Math.max(0, mastery - pInit);

/**
 * Sum over skills that change alike: `full` - `gap` exp(-speed t) after day `from`; before, `one` - `rest`
 * exp(-learn t).
 */
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

/** Skills with equal rates share an exponential function, because it costs most of the time. */
function mergeMovements(skills: readonly ProjectedSkill[]): Movement[] {
  const immediate = new Map<number, Movement>();
  const waiting: Movement[] = [];
  for (const skill of skills) {
    const movement = buildMovement(skill);
    const { isFalling, speed, from } = movement;
    const key = isFalling ? -speed : speed;
    const same = immediate.get(key);
    if (from > 0) waiting.push(movement);
    else if (same === undefined) immediate.set(key, movement);
    else addMovement(same, movement);
  }
  return [...immediate.values(), ...waiting];
}

function addMovement(sum: Movement, { full, gap, one, rest }: Movement): void {
  sum.full += full;
  sum.gap += gap;
  sum.one += one;
  sum.rest += rest;
}

/** Lists every field, because object spread is about ten times slower. */
function buildMovement({ mastery, weight, change, halfLife, graceDays }: ProjectedSkill): Movement {
  const { learnRate: learn, freshness } = change;
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
