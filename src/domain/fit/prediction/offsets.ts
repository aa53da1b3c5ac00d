import type { AnswerLog, LearnerFilter } from '../../base/answer-log.js';
import { predictionModel } from '../../base/params.js';
import { logit, sigmoid } from '../../base/probability.js';
import { type ItemDeviations, itemVariance, newItemDeviations, noteDeviation } from './item-variance.js';

/** How easy skills and items are for the ability filter: log-odds of a right answer of a new learner. */
export interface AbilityOffsets {
  readonly mean: number;
  readonly skills: ArrayLike<number>;
  /** By item index; place 0, no item, is 0. */
  readonly items: ArrayLike<number>;
}

/** What a log tells of them. */
export interface FittedOffsets extends AbilityOffsets {
  /** Variance of the items' effects within their skills, logits squared. */
  readonly itemVariance: number;
}

/** @param shift of log-odds by the question's supplied difficulty, 0 where there is none */
export const abilityOffset = (
  { mean, skills, items }: AbilityOffsets,
  skill: number,
  item: number,
  shift: number,
): number => mean + (skills[skill] ?? 0) + (items[item] ?? 0) - shift;

interface Ratings {
  readonly mean: number;
  readonly skills: Float64Array;
  readonly items: Float64Array;
  readonly skillAnswers: Float64Array;
  readonly itemAnswers: Float64Array;
}

/**
 * Offsets by Elo ratings with falling steps (Pelánek 2016) in two passes over the learners, each of whom starts
 * with an ability of 0: the second pass starts from the ratings of the first with small steps, so that the order of
 * the learners hardly matters. A pass before them, without items, tells how much items differ: a rating's first step
 * is 1 / (1 / variance + ...), as of a Bayesian one, but not above what is tuned.
 *
 * @param shifts by place in the log; null where no difficulties were supplied
 */
export function fitOffsets(
  log: AnswerLog,
  learners: LearnerFilter,
  shifts: Float32Array | null,
): FittedOffsets {
  const { passes, warmSkill, warmItem, itemFrom } = predictionModel.offsets;
  const mean = logit(shareRight(log, learners));
  const deviations = newItemDeviations(log.items);
  rateAll(newRatings(log, mean), log, learners, shifts, { deviations, itemFrom });
  const variance = itemVariance(deviations);
  const ratings = newRatings(log, mean);
  for (let pass = 0; pass < passes; pass++) {
    ratings.skillAnswers.fill(pass === 0 ? 0 : warmSkill);
    ratings.itemAnswers.fill(pass === 0 ? 0 : warmItem);
    rateAll(ratings, log, learners, shifts, { deviations: null, itemFrom: Math.max(itemFrom, 1 / variance) });
  }
  return { mean, skills: ratings.skills, items: ratings.items, itemVariance: variance };
}

const newRatings = (log: AnswerLog, mean: number): Ratings => ({
  mean,
  skills: new Float64Array(log.skills),
  items: new Float64Array(log.items + 1),
  skillAnswers: new Float64Array(log.skills),
  itemAnswers: new Float64Array(log.items + 1),
});

/** What a pass does with items. */
interface ItemPass {
  /** Where their deviations are noted, and they are not rated; null: they are rated. */
  readonly deviations: ItemDeviations | null;
  readonly itemFrom: number;
}

function rateAll(
  ratings: Ratings,
  log: AnswerLog,
  learners: LearnerFilter,
  shifts: Float32Array | null,
  pass: ItemPass,
): void {
  for (let learner = 0; learner + 1 < log.starts.length; learner++) {
    if (learners(learner)) rateLearner(ratings, log, learner, shifts, pass);
  }
}

/** One right and one wrong answer added, so that logs of one kind of answer only have one too. */
function shareRight({ starts, correct }: AnswerLog, learners: LearnerFilter): number {
  let answers = 2;
  let right = 1;
  for (let learner = 0; learner + 1 < starts.length; learner++) {
    if (!learners(learner)) continue;
    const end = starts[learner + 1] as number;
    for (let place = starts[learner] as number; place < end; place++) {
      answers++;
      right += correct[place] as number;
    }
  }
  return right / answers;
}

function rateLearner(
  ratings: Ratings,
  log: AnswerLog,
  learner: number,
  shifts: Float32Array | null,
  { deviations, itemFrom }: ItemPass,
): void {
  const { learnerStep, learnerFall, skillStep, skillFrom, skillFall, itemFall } = predictionModel.offsets;
  const { skills, items, skillAnswers, itemAnswers } = ratings;
  const start = log.starts[learner] as number;
  const end = log.starts[learner + 1] as number;
  let ability = 0;
  for (let place = start; place < end; place++) {
    const skill = log.skill[place] as number;
    const item = log.item[place] as number;
    const offset = abilityOffset(ratings, skill, item, shifts === null ? 0 : (shifts[place] as number));
    const expected = sigmoid(ability + offset);
    const surprise = (log.correct[place] as number) - expected;
    ability += (learnerStep * surprise) / (1 + learnerFall * (place - start));
    const skillCount = skillAnswers[skill] as number;
    skills[skill] = (skills[skill] as number) + (skillStep * surprise) / (skillFrom + skillFall * skillCount);
    skillAnswers[skill] = skillCount + 1;
    if (item === 0) continue;
    if (deviations !== null) {
      noteDeviation(deviations, item, learner, surprise, expected * (1 - expected));
      continue;
    }
    const itemCount = itemAnswers[item] as number;
    items[item] = (items[item] as number) + surprise / (itemFrom + itemFall * itemCount);
    itemAnswers[item] = itemCount + 1;
  }
}
