/** A learner's section abilities (science notes 6.2). */

import { clamp, logit, type PerSection, perSection, type Section, sigmoid } from '../base/common.js';
import { scoreModel } from '../base/score-constants.js';
import { knownTotals, type SectionTotals, shareOf } from '../catalogue/catalogue.js';
import type { TenantModel } from '../catalogue/tenant-model.js';
import type { SkillView } from '../learner/skill-view.js';
import { faded } from '../tracing/bkt.js';
import type { LearnerState } from '../tracing/states.js';

export interface ForecastSubject {
  readonly learner: LearnerState;
  readonly views: readonly SkillView[];
  readonly model: TenantModel;
  /** Skills in the catalogue, or answered by enough learners. */
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
  const sums = perSection((section) => sumsOf(views, section));
  const measures = perSection((section) => {
    const totals = knownTotals(model.catalogue, knownSkills, section);
    const other = sums[section === 'math' ? 'rw' : 'math'];
    return measureSection(views, section, learner.abilities[section], sums[section], other, totals);
  });
  return { ...subject, measures, estimate: estimateOf(measures) };
}

export type AbilityEstimate = ReturnType<typeof estimateOf>;

/** Combines both sections under the prior [[1, rho], [rho, 1]]. */
function estimateOf({ math, rw }: PerSection<SectionMeasure>) {
  const rho = scoreModel.correlation;
  const prior = 1 / (1 - rho * rho);
  const a = prior + 1 / math.noise;
  const d = prior + 1 / rw.noise;
  const b = -rho * prior;
  const determinant = a * d - b * b;
  const variance = { math: d / determinant, rw: a / determinant };
  const covariance = -b / determinant;
  /** Population mean 0, variance 1. */
  const theta = { math: math.ability, rw: rw.ability };
  return { theta, variance, covariance, distrust: { math: math.distrust, rw: rw.distrust } };
}

export interface SectionMeasure {
  /** Answers on skills without a section count half. */
  readonly answers: number;
  /** Weight of skills with answers, and of all registered skills. */
  readonly seenWeight: number;
  readonly knownWeight: number;
  readonly knownSkills: number;
  /** Predicted from the other section if this one has no data. */
  readonly mastery: number;
  readonly ability: number;
  /** Variance of the measurement, infinite without data. */
  readonly noise: number;
  /** Variance of an error that all skills share: parameters may not fit this learner. */
  readonly distrust: number;
}

/** @param theta from the ability filter */
function measureSection(
  views: readonly SkillView[],
  section: Section,
  theta: number,
  sums: Sums,
  other: Sums,
  totals: SectionTotals,
): SectionMeasure {
  const knownWeight = Math.max(totals.weight, sums.weight);
  const knownSkills = Math.max(totals.skills, sums.skills);
  const known = { answers: sums.answers, seenWeight: sums.weight, knownWeight, knownSkills };
  const predicted = (theta * transferOf(theta, sums, other, totals.weight)) / scoreModel.masteryLink;
  const mastery = sigmoid(predicted) + correctionOf(views, section, predicted) / knownWeight;
  const ability = abilityOf(mastery);
  if (sums.answers === 0) return { ...known, mastery, ability, noise: Number.POSITIVE_INFINITY, distrust: 0 };
  const unfitted = (scoreModel.distrust * sums.untrusted) / sums.weight;
  return {
    ...known,
    mastery,
    ability,
    noise: noiseOf(sums, knownWeight),
    distrust: unfitted + disagreement(ability, scoreModel.masteryLink * predicted),
  };
}

/** BKT assumes two states, the filter assumes degrees. Which is right is unknown. */
function disagreement(byMastery: number, byAbility: number): number {
  const { beyond, share } = scoreModel.disagreement;
  return (share * Math.max(0, Math.abs(byMastery - byAbility) - beyond)) ** 2;
}

export const abilityOf = (mastery: number): number =>
  scoreModel.masteryLink * logit(clamp(mastery, 0.01, 0.99));

export const masteryOf = (ability: number): number => sigmoid(ability / scoreModel.masteryLink);

export const trustOf = ({ model }: Pick<SkillView, 'model'>): number => scoreModel.trust[model.source];

type Sums = ReturnType<typeof sumsOf>;

function sumsOf(views: readonly SkillView[], section: Section) {
  let [skills, answers, squares, weights, untrusted, wrongAnswers] = [0, 0, 0, 0, 0, 0];
  const right = { skills: 0, weight: 0 };
  const wrong = { skills: 0, weight: 0 };
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
    wrongAnswers += share * (attempts - correct);
    if (correct > 0) {
      right.skills += share;
      right.weight += weight;
    }
    if (correct < attempts) {
      wrong.skills += share;
      wrong.weight += weight;
    }
  }
  return { skills, answers, squares, weight: weights, untrusted, right, wrong, wrongAnswers };
}

/**
 * Share of the ability on seen skills that applies to the whole section. Wrong answers shrink a high ability;
 * agreement of the sections strengthens a low one. A correct answer never lowers share x ability.
 */
function transferOf(theta: number, sums: Sums, other: Sums, knownWeight: number): number {
  const { high, low, perWrong, mostWrong, otherSection, agreement } = scoreModel.transfer;
  const kind = theta >= 0 ? 'right' : 'wrong';
  const { skills: own, weight } = sums[kind];
  const skills = own + otherSection * other[kind].skills;
  if (skills === 0) return 0;
  const untried = Math.max(0, 1 - weight / knownWeight);
  if (theta < 0) {
    const agreed = agreement * balanceOf(own, other.wrong.skills);
    return (1 + agreed * untried) / (1 + (low * untried) / skills);
  }
  const answers = sums.answers + otherSection * other.answers;
  const wrongAnswers = sums.wrongAnswers + otherSection * other.wrongAnswers;
  const wrong = wrongAnswers * Math.min(1 / skills, mostWrong / answers);
  return 1 / (1 + (high * untried * (1 + perWrong * wrong)) / skills);
}

const balanceOf = (a: number, b: number): number => (a === 0 || b === 0 ? 0 : (4 * a * b) / (a + b) ** 2);

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

/** Limits the effect of answers, because default parameters move mastery too fast. */
function believedMastery({ state, model, mastery, retention }: SkillView, predicted: number): number {
  const { pInit } = model.parameters;
  const { attempts, correct } = state;
  const bound = (answers: number): number =>
    faded(sigmoid(predicted + scoreModel.logitPerAnswer * answers), pInit, retention);
  return clamp(mastery, bound(correct - attempts), bound(correct));
}

function noiseOf({ answers, squares, weight }: Sums, knownWeight: number): number {
  const { base, perAnswer, uncovered, drill } = scoreModel.measurement;
  const concentration = squares / (answers * answers);
  const drilled = concentration + (answers * concentration * concentration) / drill;
  return base + perAnswer / answers + uncovered * (1 - weight / knownWeight) * drilled;
}
