/** Expected gain of an hour on one skill, in points of its section: what recommendations are ranked by. */
import { type Placement, shareOf } from './catalogue.js';
import type { PaceState } from './efficiency.js';
import { type BktParameters, gainModel, scoreModel } from './params.js';
import { isPlateau } from './plateau.js';
import { clamp } from './probability.js';
import { learningOf } from './projection.js';
import type { SectionSums, SkillView } from './skill-view.js';
import { type PerSection, type Section, sections } from './types.js';

/** What a section's mean mastery is made of. */
type MeanSums = Pick<SectionSums, 'weight' | 'mastery'>;

/** Points per hour of practice on a skill that the learner has answered. */
export const practiceGain = (
  { state, model, placement, mastery }: SkillView,
  sums: PerSection<MeanSums>,
): number =>
  pointsPerMastery(placement, sums) *
  learnedInHour(
    mastery,
    learningOf(model.parameters.pLearn, isPlateau(state.plateau)),
    secondsOf(state.pace),
  );

/** Points of bringing back what a skill lost to forgetting, as if there were such reviews enough for an hour. */
export const reviewGain = ({ state, placement, mastery }: SkillView, sums: PerSection<MeanSums>): number =>
  pointsPerMastery(placement, sums) *
  (state.mastery - mastery) *
  (answersPerHour(secondsOf(state.pace)) / gainModel.reviewAnswers);

/** Points per hour of practice on a skill that the learner never answered: with it among the section's. */
export function firstPracticeGain(
  placement: Placement,
  parameters: BktParameters,
  sums: PerSection<MeanSums>,
): number {
  const added = (section: Section): MeanSums => {
    const weight = shareOf(placement, section) * placement.weight;
    const { weight: seen, mastery } = sums[section];
    return { weight: seen + weight, mastery: mastery + weight * parameters.pInit };
  };
  return pointsPerMastery(placement, { math: added('math'), rw: added('rw') }) * firstHour(parameters);
}

/** Mastery that an hour is expected to bring on a skill that was never answered. */
export const firstHour = ({ pInit, pLearn }: BktParameters): number =>
  learnedInHour(pInit, learningOf(pLearn, false), gainModel.secondsPerAnswer);

/** @param learning probability that an answer brings learning which a test would show */
const learnedInHour = (mastery: number, learning: number, seconds: number): number =>
  (1 - mastery) * (1 - (1 - learning) ** answersPerHour(seconds));

const answersPerHour = (seconds: number): number => 3600 / seconds;

/** Seconds per answer: the learner's own mean on the skill, where there is one. */
const secondsOf = ({ timed, seconds }: PaceState): number =>
  timed === 0 ? gainModel.secondsPerAnswer : seconds / timed;

/** Points that one unit of mastery of the skill is worth: slope of the link from mean mastery to the score. */
function pointsPerMastery(placement: Placement, sums: PerSection<MeanSums>): number {
  let points = 0;
  for (const section of sections) {
    const weight = shareOf(placement, section) * placement.weight;
    if (weight > 0) points += weight * pointsPerWeight(sums[section]);
  }
  return points;
}

function pointsPerWeight({ weight, mastery }: MeanSums): number {
  const mean = clamp(mastery / weight, gainModel.mean.low, gainModel.mean.high);
  return (scoreModel.sd * scoreModel.masteryLink) / (weight * mean * (1 - mean));
}
