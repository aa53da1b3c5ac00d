import {
  type BktParameters,
  difficultyConstants,
  fitBounds,
  maxPStarShare,
  type Range,
} from '../../base/bkt-parameters.js';
import { clamp, logit, sigmoid } from '../../base/common.js';
import { fitConstants, minReachableMastery } from '../../base/fit-constants.js';
import { applyForgetting, computeFailure, computeMaxForget } from '../../tracing/bkt.js';
import { type AnswerTrees, sliceNodes } from './answer-trees.js';

export const createWorkspace = (nodes: number) => ({
  /** Probability of mastery; after the backward pass, expected mastered sequences. */
  before: new Float64Array(nodes),
  after: new Float64Array(nodes),
  /** Messages from later attempts; 0 between passes. */
  backKnown: new Float64Array(nodes),
  backUnknown: new Float64Array(nodes),
});

type Workspace = ReturnType<typeof createWorkspace>;

/** `shiftFactors`: e^(k b) for difficulty b and scale k. */
export function buildSkillTree(trees: AnswerTrees, skill: number, difficultyScale: number) {
  const { difficulty, ...nodes } = sliceNodes(trees, trees.starts[skill] as number, trees.starts[skill + 1]);
  return {
    ...nodes,
    size: nodes.parent.length,
    shiftFactors: computeShiftFactors(difficulty, difficultyScale),
  };
}

export type SkillTree = ReturnType<typeof buildSkillTree>;

function computeShiftFactors(difficulty: Float32Array | null, scale: number): Float64Array | null {
  if (scale === 0 || difficulty === null || difficulty.every((b) => b === 0)) return null;
  const { limit } = difficultyConstants;
  return Float64Array.from(difficulty, (b) => Math.exp(scale * clamp(b, -limit, limit)));
}

/** The limits of `computeDifficultyShift` as factors of odds: evidence stays monotone in the difficulty. */
function computeOddsRange({ pGuess, pSlip }: BktParameters): Range {
  const { itemGuess, itemSlip } = fitBounds;
  const guess = toOdds(pGuess);
  const slip = toOdds(pSlip);
  const low = Math.max(guess / toOdds(itemGuess.high), toOdds(itemSlip.low) / slip);
  const high = Math.min(guess / toOdds(itemGuess.low), toOdds(itemSlip.high) / slip);
  return { low: Math.min(low, 1), high: Math.max(high, 1) };
}

const toOdds = (p: number): number => p / (1 - p);

/** Leaves room for one more factor before underflow. */
const smallProduct = 1e-200;

/** Scaled forward filter (Corbett & Anderson 1995). @returns log likelihood */
export function filterForward(
  tree: SkillTree,
  parameters: BktParameters,
  { before, after }: Workspace,
  floor = 1e-9,
): number {
  const { size, parent, correct, through, retained, shiftFactors, others } = tree;
  const { pInit, pLearn, pForget } = parameters;
  const range = computeOddsRange(parameters);
  const guessOdds = toOdds(parameters.pGuess);
  const slipOdds = toOdds(parameters.pSlip);
  let guess = parameters.pGuess;
  let slip = parameters.pSlip;
  let logLikelihood = 0;
  // A product, because logarithms dominate the cost.
  let product = 1;
  for (let node = 0; node < size; node++) {
    const from = parent[node] as number;
    let reached = pInit;
    if (from >= 0) {
      const last = after[from] as number;
      reached = applyForgetting(last * (1 - pForget) + (1 - last) * pLearn, pInit, retained[node] as number);
    }
    const mastered = Math.min(Math.max(reached, floor), 1 - floor);
    if (shiftFactors !== null) {
      const shift = Math.min(Math.max(shiftFactors[node] as number, range.low), range.high);
      guess = guessOdds / (guessOdds + shift);
      slip = (slipOdds * shift) / (1 + slipOdds * shift);
    }
    const isCorrect = correct[node] === 1;
    const other = others === null ? 1 : (others[node] as number);
    const masteredProbability = mastered * (isCorrect ? 1 - slip : computeFailure(slip, other));
    const unknownProbability = (1 - mastered) * (isCorrect ? guess : computeFailure(1 - guess, other));
    const probability = masteredProbability + unknownProbability;
    before[node] = mastered;
    // As in pyBKT: an impossible answer is no evidence.
    after[node] = probability > 0 ? masteredProbability / probability : mastered;
    const count = through[node] as number;
    if (count > 1) {
      logLikelihood += count * Math.log(probability);
    } else {
      product *= probability;
      if (product < smallProduct) {
        logLikelihood += Math.log(product);
        product = 1;
      }
    }
  }
  return logLikelihood + Math.log(product);
}

/**
 * Backward pass after `filterForward`. With smoothed gamma and filtered p, messages are gamma / p and (1 -
 * gamma) / (1 - p).
 */
export function smoothBackward(tree: SkillTree, parameters: BktParameters, work: Workspace) {
  const { pLearn, pForget, pGuess, pSlip } = parameters;
  const { before, after, backKnown, backUnknown } = work;
  const { parent, correct, through, ending, retained, others: otherSkills } = tree;
  let [starts, startsKnown] = [0, 0];
  // Attempts without mastery before another attempt.
  let [learned, notLearned] = [0, 0];
  // Attempts with mastery before another attempt.
  let [forgotten, notForgotten] = [0, 0];
  let [known, knownRight, unknown, unknownRight] = [0, 0, 0, 0];
  for (let node = tree.size - 1; node >= 0; node--) {
    const last = after[node] as number;
    const ends = ending[node] as number;
    const toKnown = (1 - last) * pLearn * (backKnown[node] as number);
    const toUnknown = (1 - last) * (1 - pLearn) * (backUnknown[node] as number);
    const stays = last * (1 - pForget) * (backKnown[node] as number);
    const leaves = last * pForget * (backUnknown[node] as number);
    const mastered = last * ends + stays + leaves;
    const others = (1 - last) * ends + toKnown + toUnknown;
    backKnown[node] = backUnknown[node] = 0;
    learned += toKnown;
    notLearned += toUnknown;
    forgotten += leaves;
    notForgotten += stays;
    known += mastered;
    unknown += others;
    if (correct[node] === 1) {
      knownRight += mastered;
      unknownRight += others;
    } else if (otherSkills !== null) {
      const other = otherSkills[node] as number;
      knownRight += mastered * (1 - computeBlame(pSlip, other));
      unknownRight += others * (1 - computeBlame(1 - pGuess, other));
    }
    const from = parent[node] as number;
    if (from < 0) {
      starts += through[node] as number;
      startsKnown += mastered;
    } else if (retained[node] === 1) {
      const p = before[node] as number;
      backKnown[from] = (backKnown[from] as number) + mastered / p;
      backUnknown[from] = (backUnknown[from] as number) + others / (1 - p);
    }
    before[node] = mastered;
  }
  const visits = { known, knownRight, unknown, unknownRight };
  return { starts, startsKnown, learned, notLearned, forgotten, notForgotten, ...visits };
}

/**
 * Share of wrong answers in which a skill fails (Koedinger et al. 2011): the other skills may cause the rest.
 * @param failure probability that the skill fails @param others probability that all others succeed
 */
const computeBlame = (failure: number, others: number): number => failure / computeFailure(failure, others);

export type Expectations = ReturnType<typeof smoothBackward>;

export interface FitRules {
  readonly strengths: BktParameters;
  readonly tolerance?: number;
  readonly maxIterations?: number;
}

const parameterNames = ['pInit', 'pLearn', 'pGuess', 'pSlip', 'pForget'] as const;

export const mapParameters = (compute: (name: keyof BktParameters) => number): BktParameters =>
  Object.fromEntries(parameterNames.map((name) => [name, compute(name)])) as Record<
    keyof BktParameters,
    number
  >;

/** Enforces the bounds, the limit of P*, and `minReachableMastery`. */
export function constrainParameters(parameters: BktParameters): BktParameters {
  const inside = mapParameters((name) => clamp(parameters[name], fitBounds[name].low, fitBounds[name].high));
  const { pInit, pGuess, pSlip } = inside;
  const most = (maxPStarShare * pInit * (1 - pSlip - pGuess)) / (1 - pGuess);
  const learning = { ...inside, pLearn: Math.min(inside.pLearn, most) };
  return { ...learning, pForget: Math.min(inside.pForget, computeMaxForget(learning, minReachableMastery)) };
}

/** Returns the best step, because a step may be worse. */
export function fitSkill(tree: SkillTree, start: BktParameters, means: BktParameters, rules: FitRules) {
  const work = createWorkspace(tree.size);
  const { strengths, tolerance = fitConstants.tolerance, maxIterations = fitConstants.maxIterations } = rules;
  const objectiveOf = (parameters: BktParameters): number => {
    let sum = filterForward(tree, parameters, work);
    for (const name of parameterNames) {
      const [p, mean] = [parameters[name], means[name]];
      sum += strengths[name] * (mean * Math.log(p) + (1 - mean) * Math.log(1 - p));
    }
    return sum;
  };
  /** Needs the filter's results in the workspace. */
  const improve = (parameters: BktParameters): BktParameters => {
    const sums = smoothBackward(tree, parameters, work);
    const pooled = (name: keyof BktParameters, hits: number, all: number): number =>
      (hits + means[name] * strengths[name]) / (all + strengths[name]);
    const emissions =
      tree.shiftFactors === null
        ? {
            pGuess: pooled('pGuess', sums.unknownRight, sums.unknown),
            pSlip: pooled('pSlip', sums.known - sums.knownRight, sums.known),
          }
        : fitShiftedEmissions(tree, tree.shiftFactors, parameters, means, rules, work.before);
    const pInit = pooled('pInit', sums.startsKnown, sums.starts);
    const pLearn = pooled('pLearn', sums.learned, sums.learned + sums.notLearned);
    const pForget = pooled('pForget', sums.forgotten, sums.forgotten + sums.notForgotten);
    return constrainParameters({ pInit, pLearn, ...emissions, pForget });
  };
  let best = constrainParameters(start);
  let objective = objectiveOf(best);
  let iterations = 0;
  while (iterations < maxIterations) {
    const next = improve(best);
    const reached = objectiveOf(next);
    iterations++;
    const gain = reached - objective;
    if (gain > 0) {
      best = next;
      objective = reached;
    }
    if (gain <= tolerance * Math.abs(objective)) break;
  }
  return { parameters: best, objective, iterations };
}

export type SkillEstimate = Readonly<ReturnType<typeof fitSkill>>;

/** Two Newton steps of logistic regressions, with the difficulty as offset. */
function fitShiftedEmissions(
  { size, correct, through, others }: SkillTree,
  shiftFactors: Float64Array,
  parameters: BktParameters,
  means: BktParameters,
  { strengths }: FitRules,
  mastered: Float64Array,
): { pGuess: number; pSlip: number } {
  const range = computeOddsRange(parameters);
  let { pGuess, pSlip } = parameters;
  for (let step = 0; step < 2; step++) {
    const [guessOdds, slipOdds] = [toOdds(pGuess), toOdds(pSlip)];
    let [guess, guessCurve, slip, slipCurve] = [0, 0, 0, 0];
    for (let node = 0; node < size; node++) {
      const shift = clamp(shiftFactors[node] as number, range.low, range.high);
      const g = guessOdds / (guessOdds + shift);
      const s = (slipOdds * shift) / (1 + slipOdds * shift);
      const masteredSequences = mastered[node] as number;
      const unknown = (through[node] as number) - masteredSequences;
      const y = correct[node] as number;
      const other = others === null ? 1 : (others[node] as number);
      guess += unknown * ((y === 1 ? 1 : 1 - computeBlame(1 - g, other)) - g);
      guessCurve += unknown * g * (1 - g);
      slip += masteredSequences * ((y === 1 ? 0 : computeBlame(s, other)) - s);
      slipCurve += masteredSequences * s * (1 - s);
    }
    pGuess = stepNewton(pGuess, guess, guessCurve, means.pGuess, strengths.pGuess);
    pSlip = stepNewton(pSlip, slip, slipCurve, means.pSlip, strengths.pSlip);
  }
  return { pGuess, pSlip };
}

/** In logits, because the quadratic is inaccurate for longer steps. */
const maxStep = 1;

function stepNewton(p: number, slope: number, curve: number, mean: number, strength: number): number {
  const step = (slope + strength * (mean - p)) / (curve + strength * p * (1 - p));
  return sigmoid(logit(p) + clamp(step, -maxStep, maxStep));
}
