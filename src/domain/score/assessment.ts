/** A learner's section abilities (science notes 6.2). */

import { defaultParameters } from '../base/bkt-parameters.js';
import { getCalendar } from '../base/calendar.js';
import { clamp, logit, mapSections, type PerSection, type Section, sigmoid } from '../base/common.js';
import { abilityFading, scoreConstants } from '../base/score-constants.js';
import { computeSectionShare, computeSectionTotals, type SectionTotals } from '../catalogue/catalogue.js';
import type { TenantModel } from '../catalogue/tenant-model.js';
import type { SkillView } from '../learner/skill-view.js';
import { applyForgetting } from '../tracing/bkt.js';
import type { LearnerState, SkillState } from '../tracing/learner-states.js';

export interface ForecastSubject {
  readonly learner: LearnerState;
  readonly views: readonly SkillView[];
  readonly model: TenantModel;
  /** Skills in the catalogue, or answered by enough learners. */
  readonly registeredSkills: number;
  /** Unix milliseconds. */
  readonly now: number;
}

export interface LearnerAssessment extends ForecastSubject {
  /** Local day of `now`, since 1970. */
  readonly today: number;
  readonly measures: PerSection<SectionMeasure>;
  readonly estimate: AbilityEstimate;
}

export const computeToday = ({ learner, now }: Pick<ForecastSubject, 'learner' | 'now'>): number =>
  getCalendar(learner.timeZone).toDay(now);

export function assessLearner(subject: ForecastSubject): LearnerAssessment {
  const { learner, views, model, registeredSkills } = subject;
  const today = computeToday(subject);
  const skillsPerAnswer = computeSkillsPerAnswer(subject);
  const sums = mapSections((section) => sumSkills(views, section, today, skillsPerAnswer));
  const measures = mapSections((section) => {
    const totals = computeSectionTotals(model.catalogue, registeredSkills, section);
    const other = sums[section === 'math' ? 'rw' : 'math'];
    return measureSection(views, section, learner.abilities[section], sums[section], other, totals);
  });
  return { ...subject, today, measures, estimate: estimateAbilities(measures) };
}

export type AbilityEstimate = ReturnType<typeof estimateAbilities>;

/** Combines both sections under the prior [[1, rho], [rho, 1]]. */
export function estimateAbilities({ math, rw }: PerSection<SectionMeasure>) {
  const rho = scoreConstants.correlation;
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
  readonly registeredWeight: number;
  readonly registeredSkills: number;
  /** Predicted from the other section if this one has no data. */
  readonly mastery: number;
  readonly ability: number;
  /** Variance of the measurement, infinite without data. */
  readonly noise: number;
  /** Variance of an error that all skills share: parameters may not fit this learner. */
  readonly distrust: number;
  /** Part of `distrust` that a fit removes. */
  readonly unfitted: number;
  /** Half-life of ability without practice, in days; infinite without a right answer. */
  readonly halfLife: number;
}

/** @param theta from the ability filter */
function measureSection(
  views: readonly SkillView[],
  section: Section,
  theta: number,
  sums: SkillSums,
  other: SkillSums,
  totals: SectionTotals,
): SectionMeasure {
  const registeredWeight = Math.max(totals.weight, sums.weight);
  const registeredSkills = Math.max(totals.skills, sums.skills);
  const { halfLife, retention } = computeFading(sums);
  const known = {
    answers: sums.counted,
    seenWeight: sums.weight,
    registeredWeight,
    registeredSkills,
    halfLife,
  };
  const learned = (theta * computeTransfer(theta, sums, other, totals.weight)) / scoreConstants.masteryLink;
  const predicted = fade(learned, retention);
  const mastery = predicted + computeCorrection(views, section, learned, retention) / registeredWeight;
  const ability = masteryToAbility(mastery);
  if (sums.answers === 0)
    return { ...known, mastery, ability, noise: Number.POSITIVE_INFINITY, distrust: 0, unfitted: 0 };
  const unfitted = (scoreConstants.distrust * sums.untrusted) / sums.weight;
  return {
    ...known,
    mastery,
    ability,
    noise: computeNoise(sums, registeredWeight),
    unfitted,
    distrust: unfitted + computeDisagreement(ability, masteryToAbility(predicted)),
  };
}

/** Ability fades with the skills. Only right answers count, so that a wrong one never raises a score. */
const computeFading = ({ right, retained }: SkillSums) =>
  right.answers === 0
    ? { retention: 1, halfLife: Number.POSITIVE_INFINITY }
    : { retention: retained / right.answers, halfLife: abilityFading.halfLife };

/** Slower than mastery, and not while skills take turns. */
function computeAbilityRetention(state: SkillState, today: number): number {
  const idleDays = countIdleDays(state, today) - abilityFading.graceDays;
  return idleDays <= 0 ? 1 : 2 ** (-idleDays / abilityFading.halfLife);
}

/** Since the last right answer, because a wrong one must not end fading. */
export const countIdleDays = (
  { lastCorrectDay }: Pick<SkillState, 'lastCorrectDay'>,
  today: number,
): number => Math.max(0, today - lastCorrectDay);

/** BKT assumes two states, the filter assumes degrees. Which is right is unknown. */
function computeDisagreement(byMastery: number, byAbility: number): number {
  const { beyond, share } = scoreConstants.disagreement;
  return (share * Math.max(0, Math.abs(byMastery - byAbility) - beyond)) ** 2;
}

export const masteryToAbility = (mastery: number): number =>
  scoreConstants.masteryLink * logit(clamp(mastery, 0.01, 0.99));

export const abilityToMastery = (ability: number): number => sigmoid(ability / scoreConstants.masteryLink);

export const findTrust = ({ model }: Pick<SkillView, 'model'>): number => scoreConstants.trust[model.source];

type SkillSums = ReturnType<typeof sumSkills>;

/** Mean number of skills per answer, at least 1: each skill of a question counts the answer. */
export function computeSkillsPerAnswer({
  views,
  learner,
}: Pick<ForecastSubject, 'views' | 'learner'>): number {
  const attempts = views.reduce((sum, { state }) => sum + state.attempts, 0);
  return Math.max(1, attempts / Math.max(1, learner.attempts));
}

function sumSkills(views: readonly SkillView[], section: Section, today: number, skillsPerAnswer: number) {
  let [skills, answers, squares, weights, untrusted, wrongAnswers, retained] = [0, 0, 0, 0, 0, 0, 0];
  const right = { skills: 0, weight: 0, answers: 0 };
  const wrong = { skills: 0, weight: 0 };
  for (const view of views) {
    const share = computeSectionShare(view.placement, section);
    const { attempts, correct } = view.state;
    if (share === 0 || attempts === 0) continue;
    const weight = share * view.placement.weight;
    skills += share;
    answers += share * attempts;
    squares += share * attempts * attempts;
    retained += share * correct * computeAbilityRetention(view.state, today);
    weights += weight;
    untrusted += weight * (1 - findTrust(view));
    wrongAnswers += share * (attempts - correct);
    if (correct > 0) {
      right.skills += share;
      right.weight += weight;
      right.answers += share * correct;
    }
    if (correct < attempts) {
      wrong.skills += share;
      wrong.weight += weight;
    }
  }
  return {
    skills,
    answers,
    counted: answers / skillsPerAnswer,
    concentration: squares / (answers * answers),
    weight: weights,
    untrusted,
    right,
    wrong,
    wrongAnswers,
    retained,
  };
}

/**
 * Share of the ability on seen skills that applies to the whole section. Wrong answers shrink a high ability;
 * agreement of the sections strengthens a low one. A correct answer never lowers share x ability.
 */
function computeTransfer(theta: number, sums: SkillSums, other: SkillSums, totalWeight: number): number {
  const { high, low, perWrong, mostWrong, otherSection, agreement } = scoreConstants.transfer;
  const kind = theta >= 0 ? 'right' : 'wrong';
  const { skills: sectionSkills, weight } = sums[kind];
  const skills = sectionSkills + otherSection * other[kind].skills;
  if (skills === 0) return 0;
  const untriedShare = Math.max(0, 1 - weight / totalWeight);
  if (theta < 0) {
    const agreed = agreement * computeBalance(sectionSkills, other.wrong.skills);
    return (1 + agreed * untriedShare) / (1 + (low * untriedShare) / skills);
  }
  const answers = sums.answers + otherSection * other.answers;
  const wrongAnswers = sums.wrongAnswers + otherSection * other.wrongAnswers;
  const wrong = wrongAnswers * Math.min(1 / skills, mostWrong / answers);
  return 1 / (1 + (high * untriedShare * (1 + perWrong * wrong)) / skills);
}

const computeBalance = (a: number, b: number): number =>
  a === 0 || b === 0 ? 0 : (4 * a * b) / (a + b) ** 2;

/** Mastery that ability predicts. @param learned logit before forgetting */
const fade = (learned: number, retention: number): number =>
  applyForgetting(sigmoid(learned), defaultParameters.pInit, retention);

function computeCorrection(
  views: readonly SkillView[],
  section: Section,
  learned: number,
  meanRetention: number,
): number {
  const base = fade(learned, meanRetention);
  let correction = 0;
  for (const view of views) {
    const share = computeSectionShare(view.placement, section);
    if (share === 0 || view.state.attempts === 0) continue;
    const weight = share * view.placement.weight * findTrust(view);
    correction += weight * (limitMastery(view, learned, meanRetention) - base);
  }
  return correction;
}

/** Limits the effect of answers, because default parameters move mastery too fast. */
function limitMastery(
  { state, model, mastery, retention }: SkillView,
  learned: number,
  meanRetention: number,
): number {
  const { attempts, correct } = state;
  const learnedAfter = (answers: number): number => learned + scoreConstants.logitPerAnswer * answers;
  const masteryAfter = (answers: number): number =>
    applyForgetting(sigmoid(learnedAfter(answers)), model.parameters.pInit, retention);
  const wrong = correct - attempts;
  // A first wrong answer must not raise a skill above the faded ability.
  const low = Math.min(masteryAfter(wrong), fade(learnedAfter(wrong), meanRetention));
  return clamp(mastery, low, correct === 0 ? fade(learned, meanRetention) : masteryAfter(correct));
}

function computeNoise({ counted, concentration, weight }: SkillSums, registeredWeight: number): number {
  const { base, perAnswer, uncovered, drill } = scoreConstants.measurement;
  const drilled = concentration + (counted * concentration * concentration) / drill;
  return base + perAnswer / counted + uncovered * (1 - weight / registeredWeight) * drilled;
}
