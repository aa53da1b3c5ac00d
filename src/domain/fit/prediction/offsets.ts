import { type AnswerLog, everyone, type Learners, placesByLearner, placesOf } from '../../base/answer-log.js';
import { clamp, logit, sigmoid } from '../../base/common.js';
import { predictionModel } from '../../base/prediction-constants.js';

/** Log-odds of a new learner, for the ability filter. */
export interface AbilityOffsets {
  readonly mean: number;
  readonly skills: ArrayLike<number>;
  readonly items: ArrayLike<number>;
}

export const abilityOffset = (
  { mean, skills, items }: AbilityOffsets,
  skill: number,
  item: number,
  shift: number,
): number => mean + (skills[skill] ?? 0) + (items[item] ?? 0) - shift;

const rules = predictionModel.offsets;

/**
 * Elo ratings with decreasing steps (Pelánek 2016). Because of the second pass, the order of learners hardly
 * matters. @returns also the variance of item effects
 */
export function fitOffsets(
  log: AnswerLog,
  learners = everyone(log),
  shifts: Float32Array | null = null,
): AbilityOffsets & { readonly itemVariance: number } {
  const places = placesOf(log, learners);
  // One extra correct and wrong answer exclude shares of 0 and 1.
  const right = places.reduce((sum, place) => sum + (log.correct[place] as number), 1);
  const mean = logit(right / (places.length + 2));
  const deviations = newItemDeviations(log.items);
  rateLearners(newRatings(log, mean), log, learners, shifts, (item, surprise, expected, learner) =>
    noteDeviation(deviations, item, learner, surprise, expected * (1 - expected)),
  );
  const variance = itemVariance(deviations);
  const itemRule = { ...rules.item, from: Math.max(rules.item.from, 1 / variance) };
  const ratings = newRatings(log, mean);
  const { skills, skillAnswers, items, itemAnswers } = ratings;
  for (let pass = 0; pass < rules.passes; pass++) {
    skillAnswers.fill(pass === 0 ? 0 : rules.skill.warm);
    itemAnswers.fill(pass === 0 ? 0 : rules.item.warm);
    rateLearners(ratings, log, learners, shifts, (item, surprise) =>
      rate(items, itemAnswers, item, surprise, itemRule),
    );
  }
  return { mean, skills, items, itemVariance: variance };
}

const newRatings = (log: AnswerLog, mean: number) => ({
  mean,
  skills: new Float64Array(log.skills),
  items: new Float64Array(log.items + 1),
  skillAnswers: new Float64Array(log.skills),
  itemAnswers: new Float64Array(log.items + 1),
});

type StepRule = { readonly step: number; readonly from: number; readonly fall: number };

const stepOf = ({ step, from, fall }: StepRule, surprise: number, answers: number): number =>
  (step * surprise) / (from + fall * answers);

function rate(
  ratings: Float64Array,
  answers: Float64Array,
  at: number,
  surprise: number,
  rule: StepRule,
): void {
  const count = answers[at] as number;
  ratings[at] = (ratings[at] as number) + stepOf(rule, surprise, count);
  answers[at] = count + 1;
}

function rateLearners(
  ratings: ReturnType<typeof newRatings>,
  log: AnswerLog,
  learners: Learners,
  shifts: Float32Array | null,
  rateItem: (item: number, surprise: number, expected: number, learner: number) => void,
): void {
  for (const { learner, start, end } of placesByLearner(log, learners)) {
    let ability = 0;
    for (let place = start; place < end; place++) {
      const skill = log.skill[place] as number;
      const item = log.item[place] as number;
      const offset = abilityOffset(ratings, skill, item, shifts === null ? 0 : (shifts[place] as number));
      const expected = sigmoid(ability + offset);
      const surprise = (log.correct[place] as number) - expected;
      ability += stepOf(rules.learner, surprise, place - start);
      rate(ratings.skills, ratings.skillAnswers, skill, surprise, rules.skill);
      if (item !== 0) rateItem(item, surprise, expected, learner);
    }
  }
}

/** Sums over first answers: r = y - p, r², v = p (1 - p), v². */
const newItemDeviations = (items: number) => ({
  sum: new Float64Array(items + 1),
  squares: new Float64Array(items + 1),
  information: new Float64Array(items + 1),
  informationSquares: new Float64Array(items + 1),
  /** Last learner + 1, to skip repeated answers; 0 if none. */
  last: new Uint32Array(items + 1),
});

type ItemDeviations = ReturnType<typeof newItemDeviations>;

function noteDeviation(found: ItemDeviations, item: number, learner: number, r: number, v: number): void {
  if (found.last[item] === learner + 1) return;
  found.last[item] = learner + 1;
  found.sum[item] = (found.sum[item] as number) + r;
  found.squares[item] = (found.squares[item] as number) + r * r;
  found.information[item] = (found.information[item] as number) + v;
  found.informationSquares[item] = (found.informationSquares[item] as number) + v * v;
}

const varianceRounds = 20;

/** Moments: products of two learners' deviations have mean tau² v v'. */
function itemVariance({ sum, squares, information, informationSquares }: ItemDeviations): number {
  const { low, high, start, startItems } = predictionModel.items.variance;
  let variance: number = start;
  for (let round = 0; round < varianceRounds; round++) {
    let weights = startItems / start ** 2;
    let products = start * weights;
    for (let item = 1; item < sum.length; item++) {
      const v = information[item] as number;
      if (v === 0) continue;
      const trust = 1 / (1 + variance * v) ** 2;
      products += trust * ((sum[item] as number) ** 2 - (squares[item] as number));
      weights += trust * (v * v - (informationSquares[item] as number));
    }
    variance = clamp(products / weights, low, high);
  }
  return variance;
}
