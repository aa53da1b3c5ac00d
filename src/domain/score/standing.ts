/**
 * Where a learner stands: what answers say about each section, and both abilities. The ability filter predicts every skill;
 * mastery corrects it skill by skill, as far as the skill's parameters are trusted. All formulas: science notes 6.2.
 */
import { clamp, logit, type PerSection, perSection, type Section, sigmoid } from '../base/common.js';
import { scoreModel } from '../base/params.js';
import { knownTotals, type SectionTotals, shareOf } from '../catalogue/catalogue.js';
import type { TenantModel } from '../catalogue/tenant-model.js';
import type { SkillView } from '../learner/skill-view.js';
import type { Ability } from '../tracing/ability.js';
import { faded } from '../tracing/bkt.js';
import type { LearnerState } from '../tracing/states.js';

/** Whose forecast it is, and what else it depends on. */
export interface ForecastSubject {
  readonly learner: LearnerState;
  /** All the learner's skills, as they are now. */
  readonly views: readonly SkillView[];
  /** With the tenant's catalogue. */
  readonly model: TenantModel;
  /** Number of different skills that the tenant set, or that enough learners answered. */
  readonly knownSkills: number;
  /** Unix milliseconds. */
  readonly now: number;
}

export interface Standing extends ForecastSubject {
  readonly measures: PerSection<SectionMeasure>;
  readonly estimate: AbilityEstimate;
}

export function standingOf(subject: ForecastSubject): Standing {
  const { learner, views, model, knownSkills } = subject;
  const measures = perSection((section) =>
    measureSection(views, section, learner[section], knownTotals(model.catalogue, knownSkills, section)),
  );
  return { ...subject, measures, estimate: estimateAbilities(measures) };
}

export type AbilityEstimate = ReturnType<typeof estimateAbilities>;

/** Both measures are shrunk together under the prior [[1, rho], [rho, 1]]: a section without data borrows from the other. */
function estimateAbilities({ math, rw }: PerSection<SectionMeasure>) {
  const rho = scoreModel.correlation;
  const prior = 1 / (1 - rho * rho);
  const a = prior + 1 / math.noise;
  const d = prior + 1 / rw.noise;
  const b = -rho * prior;
  const determinant = a * d - b * b;
  const variance = { math: d / determinant, rw: a / determinant };
  const covariance = -b / determinant;
  const pullMath = math.value / math.noise;
  const pullRw = rw.value / rw.noise;
  /** On the population's scale of mean 0 and variance 1. */
  const theta = {
    math: variance.math * pullMath + covariance * pullRw,
    rw: covariance * pullMath + variance.rw * pullRw,
  };
  return { theta, variance, covariance, distrust: { math: math.distrust, rw: rw.distrust } };
}

export interface SectionMeasure {
  /** Answers on skills that belong to the section today, one on a skill without a section counting half; 0: no data. */
  readonly answers: number;
  /** Weight of the skills with answers, and of all that are known, never less. */
  readonly seenWeight: number;
  readonly knownWeight: number;
  /** Number of known skills, never fewer than have answers; one without a section counts half. */
  readonly knownSkills: number;
  /** Mean mastery of the section's skills, answered or not, 0 to 1; one half without data. */
  readonly mastery: number;
  /** Ability that this mastery stands for, as measured, and its variance: infinite without data. */
  readonly value: number;
  readonly noise: number;
  /** Variance of the error that all skills share: their parameters are unfitted, or do not fit this learner. */
  readonly distrust: number;
}

/** @param known the tenant's skills of the section */
function measureSection(
  views: readonly SkillView[],
  section: Section,
  { theta }: Ability,
  known: SectionTotals,
): SectionMeasure {
  const sums = sumsOf(views, section, theta >= 0);
  const knownWeight = Math.max(known.weight, sums.weight);
  const knownSkills = Math.max(known.skills, sums.skills);
  if (sums.answers === 0) return { ...nothing, knownWeight, knownSkills };
  const predicted = theta / (scoreModel.masteryLink * (1 + shrinkageOf(sums, knownWeight)));
  const mastery = sigmoid(predicted) + correctionOf(views, section, predicted) / knownWeight;
  const noise = noiseOf(sums, knownWeight);
  const unfitted = (scoreModel.distrust * sums.untrusted) / sums.weight;
  return {
    answers: sums.answers,
    seenWeight: sums.weight,
    knownWeight,
    knownSkills,
    mastery,
    value: abilityOf(mastery) * (1 + noise),
    noise,
    distrust: unfitted + disagreement(abilityOf(mastery), scoreModel.masteryLink * predicted),
  };
}

const nothing = {
  answers: 0,
  seenWeight: 0,
  mastery: 0.5,
  value: 0,
  noise: Number.POSITIVE_INFINITY,
  distrust: 0,
};

/** Variance of not knowing which of the two is right: tracing knows mastered skills or not, the filter all degrees. */
function disagreement(byMastery: number, byAbility: number): number {
  const { beyond, share } = scoreModel.disagreement;
  return (share * Math.max(0, Math.abs(byMastery - byAbility) - beyond)) ** 2;
}

/** Ability that a mean mastery stands for. */
export const abilityOf = (mastery: number): number =>
  scoreModel.masteryLink * logit(clamp(mastery, 0.01, 0.99));

/** Mastery of a skill of which ability is all that is known. */
export const masteryOf = (ability: number): number => sigmoid(ability / scoreModel.masteryLink);

/** How far the skill's mastery is believed, 0 to 1. */
export const trustOf = ({ model }: Pick<SkillView, 'model'>): number => scoreModel.trust[model.source];

type Sums = ReturnType<typeof sumsOf>;

/**
 * Sums over the skills with answers. Those that carry the ability have a right answer where it is high, a wrong one where
 * it is low; `against` counts wrong answers beside a high one.
 */
function sumsOf(views: readonly SkillView[], section: Section, isHigh: boolean) {
  let [skills, answers, squares, weights, untrusted, against] = [0, 0, 0, 0, 0, 0];
  const carrying = { skills: 0, weight: 0 };
  for (const view of views) {
    const share = shareOf(view.placement, section);
    const { attempts, correct } = view.state;
    if (share === 0 || attempts === 0) continue;
    const weight = share * view.placement.weight;
    skills += share;
    answers += share * attempts;
    squares += share * attempts * attempts;
    weights += weight;
    untrusted += weight * (1 - trustOf(view));
    if (isHigh) against += share * (attempts - correct);
    if ((isHigh ? correct : attempts - correct) === 0) continue;
    carrying.skills += share;
    carrying.weight += weight;
  }
  return { skills, answers, squares, weight: weights, untrusted, carrying, against };
}

/**
 * Variance of what the carrying skills say about the rest. Wrong answers beside a high ability show that it was learned on
 * these skills, which the others do not share; a low ability has no such cause.
 */
function shrinkageOf({ answers, carrying, against }: Sums, knownWeight: number): number {
  const { uncovered, perWrong, mostWrong } = scoreModel.shrinkage;
  if (carrying.skills === 0) return Number.POSITIVE_INFINITY;
  const wrong = against * Math.min(1 / carrying.skills, mostWrong / answers);
  return (uncovered * (1 - carrying.weight / knownWeight) * (1 + perWrong * wrong)) / carrying.skills;
}

/** Sum over the skills of weight, times trust, times how far mastery is from what ability predicts. */
function correctionOf(views: readonly SkillView[], section: Section, predicted: number): number {
  const base = sigmoid(predicted);
  let correction = 0;
  for (const view of views) {
    const share = shareOf(view.placement, section);
    if (share === 0 || view.state.attempts === 0) continue;
    const weight = share * view.placement.weight * trustOf(view);
    correction += weight * (believedMastery(view, predicted) - base);
  }
  return correction;
}

/**
 * Mastery, as far as the answers may move it from what ability predicts: a few under default parameters bring it near 1,
 * which must not carry the section. The bounds fade as the skill does.
 */
function believedMastery({ state, model, mastery, retention }: SkillView, predicted: number): number {
  const { pInit } = model.parameters;
  const { attempts, correct } = state;
  const bound = (answers: number): number =>
    faded(sigmoid(predicted + scoreModel.logitPerAnswer * answers), pInit, retention);
  return clamp(mastery, bound(correct - attempts), bound(correct));
}

/** Answers that drill few skills say less than as many on many. */
function noiseOf({ answers, squares, weight }: Sums, knownWeight: number): number {
  const { base, perAnswer, uncovered, drill } = scoreModel.measurement;
  const concentration = squares / (answers * answers);
  const drilled = concentration + (answers * concentration * concentration) / drill;
  return base + perAnswer / answers + uncovered * (1 - weight / knownWeight) * drilled;
}
