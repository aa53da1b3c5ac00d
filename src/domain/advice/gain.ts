/** Expected points per hour of practice (science notes 7). */

import type { BktParameters } from '../base/bkt-parameters.js';
import { clamp, type PerSection, type Section, sections } from '../base/common.js';
import { scoreModel } from '../base/score-constants.js';
import { shareOf } from '../catalogue/catalogue.js';
import type { SkillView } from '../learner/skill-view.js';
import { type SectionMeasure, trustOf } from '../score/assessment.js';
import { learningOf } from '../score/projection.js';
import type { PaceState } from '../tracing/pace.js';
import { isPlateau } from '../tracing/plateau.js';
import { gainModel } from './advice-constants.js';

const { leastSkills } = scoreModel;

type Worth = PerSection<Pick<SectionMeasure, 'knownWeight' | 'knownSkills' | 'mastery'>>;

export function practiceGain(view: SkillView, worth: Worth): number {
  const learning = learningOf(view.model.parameters.pLearn, isPlateau(view.state.plateau));
  const answers = answersPerHour(view.state.pace);
  return pointsOf(view, worth, (hourShare) => learned(view.mastery, learning, answers * hourShare));
}

export const reviewGain = (view: SkillView, worth: Worth): number =>
  pointsOf(view, worth, (hourShare) => hourShare * (view.state.mastery - view.mastery)) *
  (answersPerHour(view.state.pace) / gainModel.reviewAnswers);

export const firstHour = ({ pInit, pLearn }: BktParameters): number =>
  learned(pInit, learningOf(pLearn, false), 3600 / gainModel.secondsPerAnswer);

const learned = (mastery: number, learning: number, answers: number): number =>
  (1 - mastery) * (1 - (1 - learning) ** answers);

const answersPerHour = ({ timed, seconds }: PaceState): number =>
  3600 / (timed === 0 ? gainModel.secondsPerAnswer : seconds / timed);

/** If few skills are registered, each stands for many, and an hour covers only a share of it. */
function pointsOf(view: SkillView, worth: Worth, gainIn: (hourShare: number) => number): number {
  let points = 0;
  for (const section of sections) {
    const share = shareOf(view.placement, section);
    if (share === 0) continue;
    const weight = share * view.placement.weight;
    const hourShare = clamp(worth[section].knownSkills, share, leastSkills) / leastSkills;
    points += trustOf(view) * weight * pointsPerWeight(worth[section], weight) * gainIn(hourShare);
  }
  return points;
}

/** The skill's weight may not be part of `registeredWeight` yet. */
function pointsPerWeight({ knownWeight, mastery }: Worth[Section], weight: number): number {
  const mean = clamp(mastery, gainModel.mean.low, gainModel.mean.high);
  return (scoreModel.sd * scoreModel.masteryLink) / (Math.max(knownWeight, weight) * mean * (1 - mean));
}
