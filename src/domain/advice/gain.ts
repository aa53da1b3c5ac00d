/** Expected gain of an hour on one skill, in points of its section: recommendations are ranked by it. */
import { clamp, type PerSection, type Section, sections } from '../base/common.js';
import { type BktParameters, gainModel, scoreModel } from '../base/params.js';
import { shareOf } from '../catalogue/catalogue.js';
import type { SkillView } from '../learner/skill-view.js';
import { learningOf } from '../score/projection.js';
import { type SectionMeasure, trustOf } from '../score/score.js';
import type { PaceState } from '../tracing/pace.js';
import { isPlateau } from '../tracing/plateau.js';

const { leastSkills } = scoreModel;

type Worth = PerSection<Pick<SectionMeasure, 'knownWeight' | 'knownSkills' | 'mastery'>>;

/** Points per hour of practice on a skill, answered before or not. */
export function practiceGain(view: SkillView, worth: Worth): number {
  const learning = learningOf(view.model.parameters.pLearn, isPlateau(view.state.plateau));
  const answers = answersPerHour(view.state.pace);
  return pointsOf(view, worth, (hourShare) => learned(view.mastery, learning, answers * hourShare));
}

/** Points per hour of reviewing what a skill lost to forgetting, as if there were reviews enough for an hour. */
export const reviewGain = (view: SkillView, worth: Worth): number =>
  pointsOf(view, worth, (hourShare) => hourShare * (view.state.mastery - view.mastery)) *
  (answersPerHour(view.state.pace) / gainModel.reviewAnswers);

/** Mastery that an hour is expected to bring on a skill without answers, among many known skills. */
export const firstHour = ({ pInit, pLearn }: BktParameters): number =>
  learned(pInit, learningOf(pLearn, false), 3600 / gainModel.secondsPerAnswer);

const learned = (mastery: number, learning: number, answers: number): number =>
  (1 - mastery) * (1 - (1 - learning) ** answers);

const answersPerHour = ({ timed, seconds }: PaceState): number =>
  3600 / (timed === 0 ? gainModel.secondsPerAnswer : seconds / timed);

/**
 * Points per gain in mastery: the slope of the link from mean mastery to the score. @param gainIn by the
 * share of an hour that the skill gets: if few skills are known, each stands for many
 */
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

/** @param weight of the skill, which may be known to this learner alone */
function pointsPerWeight({ knownWeight, mastery }: Worth[Section], weight: number): number {
  const mean = clamp(mastery, gainModel.mean.low, gainModel.mean.high);
  return (scoreModel.sd * scoreModel.masteryLink) / (Math.max(knownWeight, weight) * mean * (1 - mean));
}
