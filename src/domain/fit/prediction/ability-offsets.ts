import {
  type AnswerLog,
  collectAnswerIndices,
  countSkillSets,
  iterateLearnerRanges,
  type LearnerSelection,
  selectAllLearners,
} from '../../base/answer-log.js';
import { clamp, logit, sigmoid } from '../../base/common.js';
import { predictionConstants } from '../../base/prediction-constants.js';

/** Log-odds of a new learner, for the ability filter. `skills`: by skill set. */
export interface AbilityOffsets {
  readonly mean: number;
  readonly skills: ArrayLike<number>;
  readonly items: ArrayLike<number>;
}

export const computeAbilityOffset = (
  { mean, skills, items }: AbilityOffsets,
  skill: number,
  item: number,
  shift: number,
): number => mean + (skills[skill] ?? 0) + (items[item] ?? 0) - shift;

const rules = predictionConstants.offsets;

/**
 * Elo ratings with decreasing steps (Pelánek 2016). Because of the second pass, the order of learners hardly
 * matters. @returns also the variance of item effects
 */
export function fitOffsets(
  log: AnswerLog,
  learners = selectAllLearners(log),
  shifts: Float32Array | null = null,
): AbilityOffsets & { readonly itemVariance: number } {
  const indices = collectAnswerIndices(log, learners);
  // One extra correct and wrong answer exclude shares of 0 and 1.
  const right = indices.reduce((sum, index) => sum + (log.correct[index] as number), 1);
  const mean = logit(right / (indices.length + 2));
  const deviations = createItemDeviations(log.items);
  rateLearners(createRatings(log, mean), log, learners, shifts, (item, surprise, expected, learner) =>
    recordDeviation(deviations, item, learner, surprise, expected * (1 - expected)),
  );
  const variance = estimateItemVariance(deviations);
  const itemRule = { ...rules.item, from: Math.max(rules.item.from, 1 / variance) };
  const ratings = createRatings(log, mean);
  const { skills, skillAnswers, items, itemAnswers } = ratings;
  for (let pass = 0; pass < rules.passes; pass++) {
    skillAnswers.fill(pass === 0 ? 0 : rules.skill.warm);
    itemAnswers.fill(pass === 0 ? 0 : rules.item.warm);
    rateLearners(ratings, log, learners, shifts, (item, surprise) =>
      updateRating(items, itemAnswers, item, surprise, itemRule),
    );
  }
  return { mean, skills, items, itemVariance: variance };
}

const createRatings = (log: AnswerLog, mean: number) => ({
  mean,
  skills: new Float64Array(countSkillSets(log)),
  items: new Float64Array(log.items + 1),
  skillAnswers: new Float64Array(countSkillSets(log)),
  itemAnswers: new Float64Array(log.items + 1),
});

type StepRule = { readonly step: number; readonly from: number; readonly fall: number };

const computeStep = ({ step, from, fall }: StepRule, surprise: number, answers: number): number =>
  (step * surprise) / (from + fall * answers);

function updateRating(
  ratings: Float64Array,
  answers: Float64Array,
  at: number,
  surprise: number,
  rule: StepRule,
): void {
  const count = answers[at] as number;
  ratings[at] = (ratings[at] as number) + computeStep(rule, surprise, count);
  answers[at] = count + 1;
}

function rateLearners(
  ratings: ReturnType<typeof createRatings>,
  log: AnswerLog,
  learners: LearnerSelection,
  shifts: Float32Array | null,
  rateItem: (item: number, surprise: number, expected: number, learner: number) => void,
): void {
  for (const { learner, start, end } of iterateLearnerRanges(log, learners)) {
    let ability = 0;
    for (let index = start; index < end; index++) {
      const skill = log.skill[index] as number;
      const item = log.item[index] as number;
      const offset = computeAbilityOffset(
        ratings,
        skill,
        item,
        shifts === null ? 0 : (shifts[index] as number),
      );
      const expected = sigmoid(ability + offset);
      const surprise = (log.correct[index] as number) - expected;
      ability += computeStep(rules.learner, surprise, index - start);
      updateRating(ratings.skills, ratings.skillAnswers, skill, surprise, rules.skill);
      if (item !== 0) rateItem(item, surprise, expected, learner);
    }
  }
}

/** Sums over first answers: r = y - p, r², v = p (1 - p), v². */
const createItemDeviations = (items: number) => ({
  sum: new Float64Array(items + 1),
  squares: new Float64Array(items + 1),
  information: new Float64Array(items + 1),
  informationSquares: new Float64Array(items + 1),
  /** Last learner + 1, to skip repeated answers; 0 if none. */
  last: new Uint32Array(items + 1),
});

type ItemDeviations = ReturnType<typeof createItemDeviations>;

function recordDeviation(
  deviations: ItemDeviations,
  item: number,
  learner: number,
  r: number,
  v: number,
): void {
  if (deviations.last[item] === learner + 1) return;
  deviations.last[item] = learner + 1;
  deviations.sum[item] = (deviations.sum[item] as number) + r;
  deviations.squares[item] = (deviations.squares[item] as number) + r * r;
  deviations.information[item] = (deviations.information[item] as number) + v;
  deviations.informationSquares[item] = (deviations.informationSquares[item] as number) + v * v;
}

const varianceRounds = 20;

/** Moments: products of two learners' deviations have mean tau² v v'. */
function estimateItemVariance({ sum, squares, information, informationSquares }: ItemDeviations): number {
  const { low, high, start, startItems } = predictionConstants.items.variance;
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
