/** Expected points per hour of practice (science notes 7). */

import type { BktParameters } from '../base/bkt-parameters.js';
import { clamp, type PerSection, type Section, sections } from '../base/common.js';
import { scoreConstants } from '../base/score-constants.js';
import { computeSectionShare } from '../catalogue/catalogue.js';
import type { SkillView } from '../learner/skill-view.js';
import { findTrust, type SectionMeasure } from '../score/assessment.js';
import { computeTestLearning } from '../score/mastery-projection.js';
import { isPlateau } from '../tracing/plateau.js';
import type { PaceState } from '../tracing/response-times.js';
import { gainConstants } from './advice-constants.js';

const { leastSkills } = scoreConstants;

type SectionWorth = PerSection<Pick<SectionMeasure, 'registeredWeight' | 'registeredSkills' | 'mastery'>>;

export function computePracticeGain(view: SkillView, worth: SectionWorth): number {
  const learning = computeTestLearning(view.model.parameters.pLearn, isPlateau(view.state.plateau));
  const answers = computeAnswersPerHour(view.state.pace);
  return computePoints(view, worth, (hourShare) =>
    computeLearnedMastery(view.mastery, learning, answers * hourShare),
  );
}

export const computeReviewGain = (view: SkillView, worth: SectionWorth): number =>
  computePoints(view, worth, (hourShare) => hourShare * (view.state.mastery - view.mastery)) *
  (computeAnswersPerHour(view.state.pace) / gainConstants.reviewAnswers);

export const computeFirstHour = ({ pInit, pLearn }: BktParameters): number =>
  computeLearnedMastery(pInit, computeTestLearning(pLearn, false), 3600 / gainConstants.secondsPerAnswer);

const computeLearnedMastery = (mastery: number, learning: number, answers: number): number =>
  (1 - mastery) * (1 - (1 - learning) ** answers);

const computeAnswersPerHour = ({ timed, seconds }: PaceState): number =>
  3600 / (timed === 0 ? gainConstants.secondsPerAnswer : seconds / timed);

/** If few skills are registered, each stands for many, and an hour covers only a share of it. */
function computePoints(view: SkillView, worth: SectionWorth, gainIn: (hourShare: number) => number): number {
  let points = 0;
  for (const section of sections) {
    const share = computeSectionShare(view.placement, section);
    if (share === 0) continue;
    const weight = share * view.placement.weight;
    const hourShare = clamp(worth[section].registeredSkills, share, leastSkills) / leastSkills;
    points += findTrust(view) * weight * computeWeightPoints(worth[section], weight) * gainIn(hourShare);
  }
  return points;
}

/** The skill's weight may not be part of `registeredWeight` yet. */
function computeWeightPoints({ registeredWeight, mastery }: SectionWorth[Section], weight: number): number {
  const mean = clamp(mastery, gainConstants.mean.low, gainConstants.mean.high);
  return (
    (scoreConstants.sd * scoreConstants.masteryLink) /
    (Math.max(registeredWeight, weight) * mean * (1 - mean))
  );
}
