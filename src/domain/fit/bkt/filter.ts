import { type BktParameters, difficultyModel, type FitBounds } from '../../base/params.js';
import { clamp } from '../../base/probability.js';
import type { AnswerTrees } from './trees.js';

/** The tree of one skill; see `AnswerTrees` for its columns. */
export interface SkillTree {
  readonly size: number;
  readonly parent: Int32Array;
  readonly correct: Uint8Array;
  readonly through: Int32Array;
  readonly ending: Int32Array;
  readonly kept: Float32Array;
  /** e^(k b) per node, for difficulty b and its scale k; null where difficulty plays no part. */
  readonly odds: Float64Array | null;
}

/** Memory of one fit after the other, for trees of up to so many nodes. */
export interface Workspace {
  /** Probability of mastery before the answer; after the backward pass the sequences expected to be mastered. */
  readonly before: Float64Array;
  /** Probability of mastery given the answers up to here. */
  readonly after: Float64Array;
  /** Messages from the next attempts, for mastery and for no mastery; all 0 between passes. */
  readonly backKnown: Float64Array;
  readonly backUnknown: Float64Array;
}

export const newWorkspace = (nodes: number): Workspace => ({
  before: new Float64Array(nodes),
  after: new Float64Array(nodes),
  backKnown: new Float64Array(nodes),
  backUnknown: new Float64Array(nodes),
});

export function skillTree(trees: AnswerTrees, skill: number, difficultyScale: number): SkillTree {
  const from = trees.starts[skill] as number;
  const to = trees.starts[skill + 1] as number;
  return {
    size: to - from,
    parent: trees.parent.subarray(from, to),
    correct: trees.correct.subarray(from, to),
    through: trees.through.subarray(from, to),
    ending: trees.ending.subarray(from, to),
    kept: trees.kept.subarray(from, to),
    odds: difficultyScale === 0 ? null : shiftOdds(trees, from, to, difficultyScale),
  };
}

function shiftOdds(
  { difficulty }: AnswerTrees,
  from: number,
  to: number,
  scale: number,
): Float64Array | null {
  if (difficulty === null) return null;
  const { limit } = difficultyModel;
  const result = new Float64Array(to - from);
  let varies = false;
  for (let node = from; node < to; node++) {
    const b = difficulty[node] as number;
    varies ||= b !== 0;
    result[node - from] = Math.exp(scale * clamp(b, -limit, limit));
  }
  return varies ? result : null;
}

/**
 * Bounds of e^(k b) that keep guess and slip of a question inside the bounds. One common truncation, not one for
 * each, so that the evidence of an answer stays monotone in the difficulty.
 */
export function oddsRange(
  { pGuess, pSlip }: BktParameters,
  bounds: FitBounds,
): { low: number; high: number } {
  const guess = odds(pGuess);
  const slip = odds(pSlip);
  const low = Math.max(guess / odds(bounds.itemGuess.high), odds(bounds.itemSlip.low) / slip);
  const high = Math.min(guess / odds(bounds.itemGuess.low), odds(bounds.itemSlip.high) / slip);
  return { low: Math.min(low, 1), high: Math.max(high, 1) };
}

export const odds = (p: number): number => p / (1 - p);

export interface FilterOptions {
  /** Bounds that truncate the difficulty; needed where the tree has one. */
  readonly bounds: FitBounds;
  /** Probabilities of mastery stay this far from 0 and 1. */
  readonly floor?: number;
  /** Probability of losing mastery at an attempt; the served rule and the fits have 0. */
  readonly forget?: number;
}

const defaultFloor = 1e-9;
/** Far enough from the smallest number for another probability. */
const smallProduct = 1e-200;

/**
 * Forward filter of Bayesian Knowledge Tracing (Corbett & Anderson 1995) over all sequences of a skill, in the
 * scaled form: each node holds probabilities given the answers so far. Fills `before` and `after`.
 *
 * @returns log likelihood of all answers
 */
export function filterForward(
  tree: SkillTree,
  parameters: BktParameters,
  { before, after }: Workspace,
  { bounds, floor = defaultFloor, forget = 0 }: FilterOptions,
): number {
  const { size, parent, correct, through, kept, odds: shifts } = tree;
  const { pInit } = parameters;
  const range = oddsRange(parameters, bounds);
  const guessOdds = odds(parameters.pGuess);
  const slipOdds = odds(parameters.pSlip);
  let guess = parameters.pGuess;
  let slip = parameters.pSlip;
  let logLikelihood = 0;
  // Logarithms cost most here: the probabilities of nodes with one sequence, most of them, share theirs.
  let product = 1;
  for (let node = 0; node < size; node++) {
    const from = parent[node] as number;
    const reached =
      from < 0 ? pInit : transit(after[from] as number, kept[node] as number, parameters, forget);
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
    // An answer that the parameters rule out is no evidence, as in pyBKT.
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

/** Mastery before the next attempt: learning, then what a long pause leaves of it. */
function transit(last: number, kept: number, { pInit, pLearn }: BktParameters, forget: number): number {
  const learned = last * (1 - forget) + (1 - last) * pLearn;
  return kept < 1 && learned > pInit ? pInit + (learned - pInit) * kept : learned;
}

/** Expected numbers of visits, as an M-step needs them. */
export interface Expectations {
  /** Sequences, and those expected to start with mastery. */
  readonly starts: number;
  readonly startsKnown: number;
  /** Attempts without mastery that another attempt follows, by what came of them. */
  readonly learned: number;
  readonly notLearned: number;
  /** Attempts with and without mastery, and the right answers among them. */
  readonly known: number;
  readonly knownRight: number;
  readonly unknown: number;
  readonly unknownRight: number;
}

/**
 * Backward smoother after `filterForward`: expected visits given all answers. Leaves in `before` the expected
 * number of sequences that are mastered at the node.
 *
 * With gamma the smoothed and p the filtered probability of mastery at the next attempt, its message
 * back is gamma / p and (1 - gamma) / (1 - p); both are sums over the sequences of the branch.
 */
export function smoothBackward(tree: SkillTree, pLearn: number, work: Workspace): Expectations {
  const { before, after, backKnown, backUnknown } = work;
  const { parent, correct, through, ending, kept } = tree;
  let starts = 0;
  let startsKnown = 0;
  let learned = 0;
  let notLearned = 0;
  let known = 0;
  let knownRight = 0;
  let unknown = 0;
  let unknownRight = 0;
  for (let node = tree.size - 1; node >= 0; node--) {
    const last = after[node] as number;
    const ends = ending[node] as number;
    const toKnown = (1 - last) * pLearn * (backKnown[node] as number);
    const toUnknown = (1 - last) * (1 - pLearn) * (backUnknown[node] as number);
    const mastered = last * (ends + (backKnown[node] as number));
    const others = (1 - last) * ends + toKnown + toUnknown;
    backKnown[node] = 0;
    backUnknown[node] = 0;
    learned += toKnown;
    notLearned += toUnknown;
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
  return { starts, startsKnown, learned, notLearned, known, knownRight, unknown, unknownRight };
}
