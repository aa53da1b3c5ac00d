/** Expected gain of an hour on one skill, in points of its section: recommendations are ranked by it. */

import { clamp, type PerSection, type Section, sections } from '../base/common.js';
import { type BktParameters, gainModel, scoreModel } from '../base/params.js';
import { type Placement, shareOf } from '../catalogue/catalogue.js';
import type { SkillModel } from '../catalogue/tenant-model.js';
import type { SkillView } from '../learner/skill-view.js';
import { learningOf } from '../score/projection.js';
import { type SectionMeasure, trustOf } from '../score/standing.js';
import type { PaceState } from '../tracing/pace.js';
import { isPlateau } from '../tracing/plateau.js';

/** What the worth of mastery, and the reach of an hour on one skill, depend on. */
type Worth = PerSection<Pick<SectionMeasure, 'knownWeight' | 'knownSkills' | 'mastery'>>;

/** Points per hour of practice on a skill with answers. */
export function practiceGain(view: SkillView, worth: Worth): number {
  const learning = learningOf(view.model.parameters.pLearn, isPlateau(view.state.plateau));
  const seconds = secondsOf(view.state.pace);
  return pointsOf(view, worth, ({ knownSkills }) =>
    learnedInHour(view.mastery, learning, seconds, knownSkills),
  );
}

/** Points per hour of reviewing what a skill lost to forgetting, as if there were reviews enough for an hour. */
export const reviewGain = (view: SkillView, worth: Worth): number =>
  pointsOf(view, worth, () => view.state.mastery - view.mastery) *
  (answersPerHour(secondsOf(view.state.pace)) / gainModel.reviewAnswers);

/** Points per hour of practice on a skill without answers. */
export const firstPracticeGain = (placement: Placement, model: SkillModel, worth: Worth): number =>
  pointsOf({ placement, model }, worth, ({ knownSkills }) => firstHour(model.parameters, knownSkills));

/** Mastery that an hour is expected to bring on a skill without answers. @param knownSkills of its section */
export const firstHour = (
  { pInit, pLearn }: BktParameters,
  knownSkills: number = scoreModel.leastSkills,
): number => learnedInHour(pInit, learningOf(pLearn, false), gainModel.secondsPerAnswer, knownSkills);

/** Where few skills are known, each stands for many fine ones, which share the hour's answers. */
function learnedInHour(mastery: number, learning: number, seconds: number, knownSkills: number): number {
  const answers = answersPerHour(seconds) * Math.min(1, knownSkills / scoreModel.leastSkills);
  return (1 - mastery) * (1 - (1 - learning) ** answers);
}

const answersPerHour = (seconds: number): number => 3600 / seconds;

/** Seconds per answer: the learner's own mean on the skill, where answers were timed. */
const secondsOf = ({ timed, seconds }: PaceState): number =>
  timed === 0 ? gainModel.secondsPerAnswer : seconds / timed;

/** Points that a gain in mastery is worth: the slope of the link from mean mastery to the score. */
function pointsOf(
  skill: Pick<SkillView, 'placement' | 'model'>,
  worth: Worth,
  gainIn: (section: Worth[Section]) => number,
): number {
  const { placement } = skill;
  let points = 0;
  for (const section of sections) {
    const weight = shareOf(placement, section) * placement.weight;
    if (weight === 0) continue;
    points += trustOf(skill) * weight * pointsPerWeight(worth[section], weight) * gainIn(worth[section]);
  }
  return points;
}

/** @param weight of the skill, which may be known to this learner alone */
function pointsPerWeight({ knownWeight, mastery }: Worth[Section], weight: number): number {
  const mean = clamp(mastery, gainModel.mean.low, gainModel.mean.high);
  return (scoreModel.sd * scoreModel.masteryLink) / (Math.max(knownWeight, weight) * mean * (1 - mean));
}
