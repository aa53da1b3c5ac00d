import {
  type BktParameters,
  difficultyModel,
  fitBounds,
  type Range,
  wrongAnswerShare,
} from '../../base/bkt-parameters.js';
import { clamp, logit, sigmoid } from '../../base/common.js';
import { fitModel, reachableMastery } from '../../base/fit-constants.js';
import { faded, mostForget } from '../../tracing/bkt.js';
import { type AnswerTrees, nodesOf } from './trees.js';

export const newWorkspace = (nodes: number) => ({
  /** Probability of mastery; after the backward pass, expected mastered sequences. */
  before: new Float64Array(nodes),
  after: new Float64Array(nodes),
  /** Messages from later attempts; 0 between passes. */
  backKnown: new Float64Array(nodes),
  backUnknown: new Float64Array(nodes),
});

type Workspace = ReturnType<typeof newWorkspace>;

/** `odds` is e^(k b) for difficulty b and scale k. */
export function skillTree(trees: AnswerTrees, skill: number, difficultyScale: number) {
  const { difficulty, ...nodes } = nodesOf(trees, trees.starts[skill] as number, trees.starts[skill + 1]);
  return { ...nodes, size: nodes.parent.length, odds: shiftOdds(difficulty, difficultyScale) };
}

export type SkillTree = ReturnType<typeof skillTree>;

function shiftOdds(difficulty: Float32Array | null, scale: number): Float64Array | null {
  if (scale === 0 || difficulty === null || difficulty.every((b) => b === 0)) return null;
  const { limit } = difficultyModel;
  return Float64Array.from(difficulty, (b) => Math.exp(scale * clamp(b, -limit, limit)));
}

/** Limits e^(k b), so that evidence stays monotone in the difficulty. */
function oddsRange({ pGuess, pSlip }: BktParameters): Range {
  const { itemGuess, itemSlip } = fitBounds;
  const guess = odds(pGuess);
  const slip = odds(pSlip);
  const low = Math.max(guess / odds(itemGuess.high), odds(itemSlip.low) / slip);
  const high = Math.min(guess / odds(itemGuess.low), odds(itemSlip.high) / slip);
  return { low: Math.min(low, 1), high: Math.max(high, 1) };
}

const odds = (p: number): number => p / (1 - p);

const smallProduct = 1e-200;

/** Scaled forward filter (Corbett & Anderson 1995). @returns log likelihood */
export function filterForward(
  tree: SkillTree,
  parameters: BktParameters,
  { before, after }: Workspace,
  floor = 1e-9,
): number {
  const { size, parent, correct, through, kept, odds: shifts } = tree;
  const { pInit, pLearn, pForget } = parameters;
  const range = oddsRange(parameters);
  const guessOdds = odds(parameters.pGuess);
  const slipOdds = odds(parameters.pSlip);
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
      reached = faded(last * (1 - pForget) + (1 - last) * pLearn, pInit, kept[node] as number);
    }
    const known = Math.min(Math.max(reached, floor), 1 - floor);
    if (shifts !== null) {
      const shift = Math.min(Math.max(shifts[node] as number, range.low), range.high);
      guess = guessOdds / (guessOdds + shift);
      slip = (slipOdds * shift) / (1 + slipOdds * shift);
    }
    const isCorrect = correct[node] === 1;
    const knownToo = known * (isCorrect ? 1 - slip : slip);
    const probability = knownToo + (1 - known) * (isCorrect ? guess : 1 - guess);
    before[node] = known;
    // As in pyBKT: an impossible answer is no evidence.
    after[node] = probability > 0 ? knownToo / probability : known;
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
export function smoothBackward(tree: SkillTree, { pLearn, pForget }: BktParameters, work: Workspace) {
  const { before, after, backKnown, backUnknown } = work;
  const { parent, correct, through, ending, kept } = tree;
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
    }
    const from = parent[node] as number;
    if (from < 0) {
      starts += through[node] as number;
      startsKnown += mastered;
    } else if (kept[node] === 1) {
      const p = before[node] as number;
      backKnown[from] = (backKnown[from] as number) + mastered / p;
      backUnknown[from] = (backUnknown[from] as number) + others / (1 - p);
    }
    before[node] = mastered;
  }
  const visits = { known, knownRight, unknown, unknownRight };
  return { starts, startsKnown, learned, notLearned, forgotten, notForgotten, ...visits };
}

export type Expectations = ReturnType<typeof smoothBackward>;

export interface FitRules {
  readonly strengths: BktParameters;
  readonly tolerance?: number;
  readonly maxIterations?: number;
}

const parameterNames = ['pInit', 'pLearn', 'pGuess', 'pSlip', 'pForget'] as const;

export const parametersBy = (of: (name: keyof BktParameters) => number): BktParameters =>
  Object.fromEntries(parameterNames.map((name) => [name, of(name)])) as Record<keyof BktParameters, number>;

/** Enforces the bounds, the limit of P*, and `minReachableMastery`. */
export function constrain(wanted: BktParameters): BktParameters {
  const inside = parametersBy((name) => clamp(wanted[name], fitBounds[name].low, fitBounds[name].high));
  const { pInit, pGuess, pSlip } = inside;
  const most = (wrongAnswerShare * pInit * (1 - pSlip - pGuess)) / (1 - pGuess);
  const learning = { ...inside, pLearn: Math.min(inside.pLearn, most) };
  return { ...learning, pForget: Math.min(inside.pForget, mostForget(learning, reachableMastery)) };
}

/** Returns the best step, because a step may be worse. */
export function fitSkill(tree: SkillTree, start: BktParameters, means: BktParameters, rules: FitRules) {
  const work = newWorkspace(tree.size);
  const { strengths, tolerance = fitModel.tolerance, maxIterations = fitModel.maxIterations } = rules;
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
      tree.odds === null
        ? {
            pGuess: pooled('pGuess', sums.unknownRight, sums.unknown),
            pSlip: pooled('pSlip', sums.known - sums.knownRight, sums.known),
          }
        : shiftedEmissions(tree, tree.odds, parameters, means, rules, work.before);
    const pInit = pooled('pInit', sums.startsKnown, sums.starts);
    const pLearn = pooled('pLearn', sums.learned, sums.learned + sums.notLearned);
    const pForget = pooled('pForget', sums.forgotten, sums.forgotten + sums.notForgotten);
    return constrain({ pInit, pLearn, ...emissions, pForget });
  };
  let best = constrain(start);
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
function shiftedEmissions(
  { size, correct, through }: SkillTree,
  shifts: Float64Array,
  parameters: BktParameters,
  means: BktParameters,
  { strengths }: FitRules,
  mastered: Float64Array,
): { pGuess: number; pSlip: number } {
  const range = oddsRange(parameters);
  let { pGuess, pSlip } = parameters;
  for (let step = 0; step < 2; step++) {
    const [guessOdds, slipOdds] = [odds(pGuess), odds(pSlip)];
    let [guess, guessCurve, slip, slipCurve] = [0, 0, 0, 0];
    for (let node = 0; node < size; node++) {
      const shift = clamp(shifts[node] as number, range.low, range.high);
      const g = guessOdds / (guessOdds + shift);
      const s = (slipOdds * shift) / (1 + slipOdds * shift);
      const known = mastered[node] as number;
      const unknown = (through[node] as number) - known;
      const y = correct[node] as number;
      guess += unknown * (y - g);
      guessCurve += unknown * g * (1 - g);
      slip += known * (1 - y - s);
      slipCurve += known * s * (1 - s);
    }
    pGuess = newton(pGuess, guess, guessCurve, means.pGuess, strengths.pGuess);
    pSlip = newton(pSlip, slip, slipCurve, means.pSlip, strengths.pSlip);
  }
  return { pGuess, pSlip };
}

/** In logits, because the quadratic is inaccurate for longer steps. */
const longestStep = 1;

function newton(p: number, slope: number, curve: number, mean: number, strength: number): number {
  const step = (slope + strength * (mean - p)) / (curve + strength * p * (1 - p));
  return sigmoid(logit(p) + clamp(step, -longestStep, longestStep));
}
