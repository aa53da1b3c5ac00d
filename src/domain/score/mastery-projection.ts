/**
 * Projects mastery u (science notes 6.3): du/dt = learn (1 - u) - forget (u - retained), without forgetting
 * below `retained`. Each skill only rises or only falls.
 */

import { defaultParameters, forgettingConstants } from '../base/bkt-parameters.js';
import { dayMs, mapSections, type PerSection, type Section, toDay } from '../base/common.js';
import { projectionConstants, scoreConstants } from '../base/score-constants.js';
import { computeSectionShare } from '../catalogue/catalogue.js';
import type { SkillView } from '../learner/skill-view.js';
import { estimatePractice, type Practice } from '../tracing/activity.js';
import { computeHalfLife } from '../tracing/bkt.js';
import { isPlateau } from '../tracing/plateau.js';
import { isRapidFlagged } from '../tracing/response-times.js';
import { activityConstants } from '../tracing/tracing-constants.js';
import { computeLearningShare } from '../tracing/trend.js';
import {
  abilityToMastery,
  type ForecastSubject,
  findTrust,
  type LearnerAssessment,
  masteryToAbility,
} from './assessment.js';

export interface PracticeHabit {
  /** @param view null for skills without answers */
  practiceFor(view: SkillView | null, section: Section): SkillPractice;
  readonly isEqualBySection: boolean;
}

export const estimateCurrentPractice = ({ learner, now }: ForecastSubject): PerSection<Practice> =>
  estimatePractice(learner.activity, learner.attempts, toDay(now));

export const buildSteadyHabit = (
  assessment: LearnerAssessment,
  { math, rw }: PerSection<number>,
): PracticeHabit => buildHabit(assessment, { math: buildSteadyPractice(math), rw: buildSteadyPractice(rw) });

export const buildSteadyPractice = (rate: number): Practice => ({
  rate,
  activeDays: activityConstants.days * Math.min(1, rate),
});

/** Spreads a section's answers over its skills. If few are registered, each stands for many. */
export function buildHabit({ measures }: LearnerAssessment, practice: PerSection<Practice>): PracticeHabit {
  const habits = mapSections((section) =>
    computeSkillPractice(
      practice[section],
      1 / Math.max(measures[section].registeredSkills, scoreConstants.leastSkills),
    ),
  );
  const isEqualBySection =
    habits.math.rate === habits.rw.rate && habits.math.freshness === habits.rw.freshness;
  return { practiceFor: (_, section) => habits[section], isEqualBySection };
}

export type SkillPractice = ReturnType<typeof computeSkillPractice>;

export function computeSkillPractice({ rate, activeDays }: Practice, share: number) {
  const { activeDays: fullActiveDays, spacingDays, rightShare } = projectionConstants;
  const active = activeDays / activityConstants.days;
  const answersThen = active === 0 ? 0 : (rate * share) / active;
  return {
    /** Answers per day. */
    rate: rate * share,
    /** Share of mastery that practice protects from forgetting. */
    freshness: Math.min(1, activeDays / fullActiveDays),
    /** Future days with a correct answer, which lengthen the half-life. */
    rightDays: spacingDays * active * -Math.expm1(-rightShare * answersThen),
  };
}

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

/** The untrusted part of a skill uses the mastery that ability predicts, without forgetting. */
function projectSkills(
  views: readonly SkillView[],
  section: Section,
  { learner, measures, estimate, now }: LearnerAssessment,
  habit: PracticeHabit,
): ProjectedSkill[] {
  const projected: ProjectedSkill[] = [];
  const restByRate = new Map<number, number>();
  const addRest = (rate: number, weight: number) =>
    restByRate.set(rate, (restByRate.get(rate) ?? 0) + weight);
  const learningShare = computeLearningShare(learner.trend);
  let [weights, learningSum] = [0, 0];
  for (const view of views) {
    const weight = computeSectionShare(view.placement, section) * view.placement.weight;
    if (weight === 0) continue;
    const { state, model, mastery } = view;
    const { rate, freshness, rightDays } = habit.practiceFor(view, section);
    const isSlowed = isPlateau(state.plateau) || isRapidFlagged(state.rapid);
    const learning = learningShare * computeTestLearning(model.parameters.pLearn, isSlowed);
    const trusted = state.attempts === 0 ? 0 : weight * findTrust(view);
    if (trusted > 0)
      projected.push({
        mastery,
        weight: trusted,
        retained: computeRetainedMastery(mastery, model.parameters.pInit, freshness),
        learnRate: computeLearningRate(rate, learning),
        forgetRate: computeForgettingRate(state.correctDays + rightDays, freshness),
        graceDays: computeGraceDays(now - state.lastAttemptAt),
      });
    weights += weight;
    learningSum += weight * learning;
    addRest(rate, weight - trusted);
  }
  const mastery = abilityToMastery(estimate.theta[section]);
  addRest(habit.practiceFor(null, section).rate, Math.max(0, measures[section].registeredWeight - weights));
  const learning =
    weights === 0 ? computeTestLearning(defaultParameters.pLearn, false) : learningSum / weights;
  for (const [rate, weight] of restByRate) {
    const learnRate = computeLearningRate(rate, learning);
    projected.push({ mastery, weight, retained: mastery, learnRate, forgetRate: 0, graceDays: 0 });
  }
  return projected;
}

interface ProjectedSkill {
  /** Mastery now, and the limit that forgetting approaches. */
  readonly mastery: number;
  readonly retained: number;
  readonly weight: number;
  /** Daily rates towards 1 and towards `retained`. */
  readonly learnRate: number;
  readonly forgetRate: number;
  readonly graceDays: number;
}

/** Learning per answer that shows on a test. */
export const computeTestLearning = (pLearn: number, isSlowed: boolean): number =>
  projectionConstants.learningShare * pLearn * (isSlowed ? projectionConstants.slowedShare : 1);

const computeLearningRate = (answersPerDay: number, learning: number): number =>
  -answersPerDay * Math.log1p(-learning);

/** @param freshness share that practice protects */
const computeRetainedMastery = (mastery: number, pInit: number, freshness: number): number =>
  pInit + freshness * Math.max(0, mastery - pInit);

const computeForgettingRate = (correctDays: number, freshness: number): number =>
  ((1 - freshness) * Math.LN2) / computeHalfLife(correctDays);

const computeGraceDays = (idleMs: number): number =>
  Math.max(0, forgettingConstants.graceDays - Math.max(0, idleMs) / dayMs);

/**
 * Columns of a row: mastery moves from `turn` to `end` at `speed` after day `from`; before, it moves from
 * `start` at `learn`. Weights add up to 1.
 */
const [start, end, speed, from, turn, learn, weight, width] = [0, 1, 2, 3, 4, 5, 6, 7];

/**
 * Change of ability after `fallingDays` for falling skills and `risingDays` for rising ones. A skill never turns, so
 * the first and last day of a range bound the days between. A plain array: typed arrays return their memory to the
 * system each time.
 */
export function createAbilityProjection(
  skills: readonly ProjectedSkill[],
): (fallingDays: number, risingDays: number) => number {
  const table: number[] = [];
  let weights = 0;
  for (const skill of skills) {
    addRow(table, skill);
    weights += skill.weight;
  }
  for (let at = weight; at < table.length; at += width) table[at] = (table[at] as number) / weights;
  const now = masteryToAbility(projectMeanMastery(table, 0, 0));
  return (fallingDays, risingDays) =>
    Math.min(
      projectionConstants.maxChange,
      masteryToAbility(projectMeanMastery(table, fallingDays, risingDays)) - now,
    );
}

function addRow(
  table: number[],
  { mastery, weight, retained, learnRate, forgetRate, graceDays }: ProjectedSkill,
): void {
  const rate = forgetRate + learnRate;
  const balance = rate === 0 ? mastery : (forgetRate * retained + learnRate) / rate;
  // Mastery below `retained` forgets nothing until learning reaches it. Falling mastery waits for its grace days.
  if (forgetRate > 0 && mastery < retained) {
    const reached =
      learnRate === 0 ? Number.POSITIVE_INFINITY : Math.log((1 - mastery) / (1 - retained)) / learnRate;
    table.push(mastery, balance, -rate, reached, retained, -learnRate, weight);
  } else table.push(mastery, balance, -rate, balance < mastery ? graceDays : 0, mastery, 0, weight);
}

function projectMeanMastery(table: readonly number[], fallingDays: number, risingDays: number): number {
  const figure = (place: number): number => table[place] as number;
  let mean = 0;
  let [exponent, power] = [0, 1];
  for (let at = 0; at < table.length; at += width) {
    const days = figure(at + end) < figure(at + start) ? fallingDays : risingDays;
    const isBefore = days < figure(at + from);
    const now = isBefore ? figure(at + learn) * days : figure(at + speed) * (days - figure(at + from));
    if (now !== exponent) {
      exponent = now;
      power = Math.exp(now);
    }
    const goal = isBefore ? 1 : figure(at + end);
    mean += figure(at + weight) * (goal - (goal - figure(at + (isBefore ? start : turn))) * power);
  }
  return mean;
}
