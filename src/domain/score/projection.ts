/**
 * Projects mastery u (science notes 6.3): du/dt = learn (1 - u) - forget (u - retained), without forgetting
 * below `retained`. Each skill only rises or only falls.
 */

import { defaultParameters, forgettingModel } from '../base/bkt-parameters.js';
import { dayMs, dayOf, type PerSection, perSection, type Section } from '../base/common.js';
import { projectionModel, scoreModel } from '../base/score-constants.js';
import { shareOf } from '../catalogue/catalogue.js';
import type { SkillView } from '../learner/skill-view.js';
import { assumedPractice, type Practice } from '../tracing/activity.js';
import { halfLifeDays } from '../tracing/bkt.js';
import { rapidFlag } from '../tracing/pace.js';
import { isPlateau } from '../tracing/plateau.js';
import { activityModel } from '../tracing/tracing-constants.js';
import { learningPart } from '../tracing/trend.js';
import { abilityOf, type ForecastSubject, masteryOf, type Standing, trustOf } from './assessment.js';

export interface Habit {
  /** @param view null for skills without answers */
  of(view: SkillView | null, section: Section): SkillPractice;
  readonly isSame: boolean;
}

export const presentPractice = ({ learner, now }: ForecastSubject): PerSection<Practice> =>
  assumedPractice(learner.activity, learner.attempts, dayOf(now));

export const steadyHabit = (standing: Standing, { math, rw }: PerSection<number>): Habit =>
  habitOf(standing, { math: steadyPractice(math), rw: steadyPractice(rw) });

export const steadyPractice = (rate: number): Practice => ({
  rate,
  activeDays: activityModel.days * Math.min(1, rate),
});

/** Spreads a section's answers over its skills. If few are registered, each stands for many. */
export function habitOf({ measures }: Standing, practice: PerSection<Practice>): Habit {
  const habits = perSection((section) =>
    skillPractice(practice[section], 1 / Math.max(measures[section].knownSkills, scoreModel.leastSkills)),
  );
  const isSame = habits.math.rate === habits.rw.rate && habits.math.freshness === habits.rw.freshness;
  return { of: (_, section) => habits[section], isSame };
}

export type SkillPractice = ReturnType<typeof skillPractice>;

export function skillPractice({ rate, activeDays }: Practice, share: number) {
  const { activeDays: fresh, spacingDays, rightShare } = projectionModel;
  const active = activeDays / activityModel.days;
  const answersThen = active === 0 ? 0 : (rate * share) / active;
  return {
    /** Answers per day. */
    rate: rate * share,
    /** Share of mastery that practice protects from forgetting. */
    freshness: Math.min(1, activeDays / fresh),
    /** Future days with a correct answer, which lengthen the half-life. */
    rightDays: spacingDays * active * -Math.expm1(-rightShare * answersThen),
  };
}

/** For days 0 to 365: an upper bound over the range, exact for one day. */
export function abilityChanges(
  standing: Standing,
  habit: Habit,
  views = standing.views,
): (from: number, to: number) => PerSection<number> {
  const outlook = (section: Section) => outlookOf(projectedSkills(views, section, standing, habit));
  const { measures, estimate } = standing;
  // Without a catalogue both sections are equal.
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

/** The untrusted part of a skill uses the mastery that ability predicts, without forgetting. */
function projectedSkills(
  views: readonly SkillView[],
  section: Section,
  { learner, measures, estimate, now }: Standing,
  habit: Habit,
): ProjectedSkill[] {
  const projected: ProjectedSkill[] = [];
  const restByRate = new Map<number, number>();
  const addRest = (rate: number, weight: number) =>
    restByRate.set(rate, (restByRate.get(rate) ?? 0) + weight);
  const learns = learningPart(learner.trend);
  let [weights, learningSum] = [0, 0];
  for (const view of views) {
    const weight = shareOf(view.placement, section) * view.placement.weight;
    if (weight === 0) continue;
    const { state, model, mastery } = view;
    const { rate, freshness, rightDays } = habit.of(view, section);
    const isSlowed = isPlateau(state.plateau) || rapidFlag(state.rapid);
    const learning = learns * learningOf(model.parameters.pLearn, isSlowed);
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

interface ProjectedSkill {
  /** Mastery now, and the limit that forgetting approaches. */
  readonly mastery: number;
  readonly kept: number;
  readonly weight: number;
  /** Daily rates towards 1 and towards `retained`. */
  readonly learn: number;
  readonly forget: number;
  readonly grace: number;
}

/** Learning per answer that shows on a test. */
export const learningOf = (pLearn: number, slowed: boolean): number =>
  projectionModel.learningShare * pLearn * (slowed ? projectionModel.slowedShare : 1);

export const learningRate = (answersPerDay: number, learning: number): number =>
  -answersPerDay * Math.log1p(-learning);

/** @param freshness share that practice protects */
export const keptMastery = (mastery: number, pInit: number, freshness: number): number =>
  pInit + freshness * Math.max(0, mastery - pInit);

export const forgettingRate = (correctDays: number, freshness: number): number =>
  ((1 - freshness) * Math.LN2) / halfLifeDays(correctDays);

const graceLeft = (idleMs: number): number =>
  Math.max(0, forgettingModel.graceDays - Math.max(0, idleMs) / dayMs);

/**
 * Columns of a row: mastery moves from `turn` to `end` at `speed` after day `from`; before, it moves from
 * `start` at `learn`. Weights add up to 1.
 */
const [start, end, speed, from, turn, learn, weight, width] = [0, 1, 2, 3, 4, 5, 6, 7];

/**
 * Change of ability after days of falling and of rising skills; these bound all days between. A list, because
 * typed arrays release their memory.
 */
export function outlookOf(
  skills: readonly ProjectedSkill[],
): (fallingDays: number, risingDays: number) => number {
  const table: number[] = [];
  let weights = 0;
  for (const skill of skills) {
    addRow(table, skill);
    weights += skill.weight;
  }
  for (let at = weight; at < table.length; at += width) table[at] = (table[at] as number) / weights;
  const now = abilityOf(meanMastery(table, 0, 0));
  return (fallingDays, risingDays) =>
    Math.min(projectionModel.maxChange, abilityOf(meanMastery(table, fallingDays, risingDays)) - now);
}

function addRow(table: number[], { mastery, weight, kept, learn, forget, grace }: ProjectedSkill): void {
  const rate = forget + learn;
  const balance = rate === 0 ? mastery : (forget * kept + learn) / rate;
  if (forget > 0 && mastery < kept) {
    const reached = learn === 0 ? Number.POSITIVE_INFINITY : Math.log((1 - mastery) / (1 - kept)) / learn;
    table.push(mastery, balance, -rate, reached, kept, -learn, weight);
  } else table.push(mastery, balance, -rate, balance < mastery ? grace : 0, mastery, 0, weight);
}

function meanMastery(table: readonly number[], fallingDays: number, risingDays: number): number {
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
