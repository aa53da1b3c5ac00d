/** The served probability's terms in blocks of shared memory, fitted by block Newton, alike in any number of threads. */
import {
  type AnswerLog,
  type Learners,
  placesOf,
  shared,
  sharedFloats,
  sortedBy,
} from '../../base/answer-log.js';
import { predictionModel } from '../../base/params.js';
import {
  columnOf,
  features,
  itemColumns,
  rowWidth,
  runColumn,
  skillColumns,
} from '../../prediction/features.js';
import { type PredictionModel, priorAnswersFor } from '../../prediction/model.js';
import { maxItemRun } from '../../tracing/traces.js';
import type { FeatureStore } from './replay.js';

const { fit: rules } = predictionModel;

const blockNames = ['weights', 'skills', 'items', 'runs'] as const;
export type BlockName = (typeof blockNames)[number];

/**
 * The steps in their order, one Newton step of all terms of a block each. `moveRanges` of the weights, which start
 * somewhere, comes before them; each step is `sumRanges` over all ranges, `solveStep`, then `moveRanges`. Hessians hardly
 * change after a few sweeps and take most of the time: steps that are not fresh use the last ones.
 */
export const fitSteps = Array.from({ length: rules.sweeps }, (_, sweep) =>
  blockNames.map((name) => ({ name, fresh: sweep < rules.freshSweeps })),
).flat();

export type FitStep = (typeof fitSteps)[number];

export type FitMemory = ReturnType<typeof newFitMemory>;

/** Answers in a range of a pass; the same for any number of threads, for sums depend on it in their last digits. */
export const rangeAnswers = 1 << 12;

/** All that the steps work on. @param itemVariance of the items' effects (see `fitOffsets`), which sets their ridge */
export function newFitMemory(
  log: AnswerLog,
  learners: Learners,
  { rows }: FeatureStore,
  itemVariance: number,
) {
  const places = placesOf(log, learners);
  const answers = { places, rows, ...momentsOf(rows, places) };
  const { correct, skill, item, skills, items } = log;
  // All answers belong to member 0 of the weights.
  const [all, run] = [shared.counts(correct.length), shared.counts(correct.length)];
  // The skill that each item was last asked for.
  const skillOf = shared.counts(items + 1);
  for (const place of places) {
    run[place] = Math.min(maxItemRun, rows[place * rowWidth + runColumn] as number);
    skillOf[item[place] as number] = skill[place] as number;
  }
  // Items' terms are normal about 0 with the variance of their effects: the ridge is one by it.
  const itemRidge = Math.max(rules.itemRidge, 1 / itemVariance);
  // Items' slopes are trusted less where items differ less.
  const slopeRidge = (column: number): number =>
    (itemRidge / rules.itemRidge) *
    (column === columnOf('ability') ? rules.itemAbilityRidge : rules.itemSlopeRidge);
  const blocks: Record<BlockName, Block> = {
    weights: newBlock(answers, all, 0, 1, allColumns, 0, () => rules.ridge),
    skills: newBlock(answers, skill, 0, skills, skillColumns, rules.skillRidge, () => rules.slopeRidge),
    items: newBlock(answers, item, 1, items + 1, itemColumns, itemRidge, slopeRidge),
    runs: newBlock(answers, run, 1, maxItemRun + 1, [], rules.runRidge, () => 0),
  };
  startWeights(blocks.weights, correct, places);
  // By place in the log: the answers, and the log-odds of a right answer by the terms so far.
  const logits = shared.doubles(correct.length);
  return { correct, logits, ranges: rangesOf(places), skillOf, blocks };
}

const allColumns = features.map((_, column) => column);

const rangesOf = (places: Uint32Array): number => Math.ceil(places.length / rangeAnswers);

/** Mean and sd of every feature; small sds count as the least one. */
function momentsOf(rows: Float32Array, places: Uint32Array) {
  const sums = new Float64Array(features.length);
  const squares = new Float64Array(features.length);
  for (const place of places) {
    const from = place * rowWidth;
    for (let column = 0; column < sums.length; column++) {
      const value = rows[from + column] as number;
      sums[column] = (sums[column] as number) + value;
      squares[column] = (squares[column] as number) + value * value;
    }
  }
  const answers = Math.max(1, places.length);
  const means = sums.map((sum) => sum / answers);
  const sds = squares.map((square, column) => {
    const variance = square / answers - (means[column] as number) ** 2;
    return Math.max(Math.sqrt(Math.max(0, variance)), rules.minSd);
  });
  return { means, sds };
}

export type Block = ReturnType<typeof newBlock>;

/**
 * Terms that are fitted together: for each member (all answers, a skill, an item, a length of the run of wrong
 * answers) an intercept, then slopes on some features about their means, drawn to 0 by ridges in standardised units.
 * @param members the member of each answer of the log
 * @param first those below have no terms: no item, and no wrong answer in a row
 */
function newBlock(
  { places, rows, means, sds }: { places: Uint32Array; rows: Float32Array } & ReturnType<typeof momentsOf>,
  members: Uint32Array,
  first: 0 | 1,
  size: number,
  columns: readonly number[],
  interceptRidge: number,
  ridgeOf: (column: number) => number,
) {
  const width = 1 + columns.length;
  const sorted = sortedBy(members, size, places);
  const isPacked = columns.length < features.length;
  const sdOf = (column: number): number => sds[column] as number;
  return {
    ...sorted,
    members,
    first,
    /** Features of the slopes, `stride` apart: packed in the block's order, or else all by place in the log. */
    rows: isPacked ? packedRows(rows, columns, sorted.order) : rows,
    stride: isPacked ? columns.length : rowWidth,
    isPacked,
    /** Terms per member, and the features of terms 1 and up. */
    width,
    columns,
    /** By term: mean over the fit's answers, pull to its centre, longest move in one step. */
    means: Float64Array.of(0, ...columns.map((column) => means[column] as number)),
    ridges: Float64Array.of(interceptRidge, ...columns.map((c) => ridgeOf(c) * sdOf(c) * sdOf(c))),
    centres: new Float64Array(width),
    maxMoves: Float64Array.of(rules.maxGroupStep, ...columns.map((c) => rules.maxGroupStep / sdOf(c))),
    /** `width` per member, and their last change. */
    terms: shared.doubles(size * width),
    moves: shared.doubles(size * width),
    sums: shared.doubles((size + rangesOf(places)) * sumsPerMember(width)),
  };
}

/** A pass over far-apart rows waits for memory most of the time. */
function packedRows(rows: Float32Array, columns: readonly number[], order: Uint32Array): Float32Array {
  const stride = columns.length;
  const packed = shared.floats(stride * order.length);
  for (let i = 0; i < order.length; i++) {
    const from = (order[i] as number) * rowWidth;
    for (let j = 0; j < stride; j++) packed[i * stride + j] = rows[from + (columns[j] as number)] as number;
  }
  return packed;
}

/** Gradient, then the lower triangle of the Hessian by rows. */
export const sumsPerMember = (width: number): number => width + (width * (width + 1)) / 2;

/** The weights start at their centres, beside the bias of the overall share; with few answers the bias alone moves. */
function startWeights(block: Block, correct: Uint8Array, places: Uint32Array): void {
  const right = places.reduce((sum, place) => sum + (correct[place] as number), 1);
  const bias = Math.log(right / (places.length + 2 - right));
  const start = [bias, ...features.map((feature) => feature.start)];
  for (const figures of [block.terms, block.moves, block.centres]) figures.set(start);
  block.maxMoves.fill(places.length < rules.minAnswers ? 0 : Number.POSITIVE_INFINITY);
  block.maxMoves[0] = Number.POSITIVE_INFINITY;
}

/** What the steps have led to: the model, `skillTermCount` terms for each skill, and `itemTermCount` for each item. */
export function fittedPrediction({ blocks }: FitMemory, itemVariance: number) {
  const { weights, skills, items, runs } = blocks;
  const [bias = 0, ...own] = weights.terms;
  const [, ...means] = weights.means;
  const itemPriorAnswers = priorAnswersFor(itemVariance);
  const model: PredictionModel = {
    bias,
    weights: own,
    means,
    runs: [...runs.terms.subarray(1)],
    itemPriorAnswers,
  };
  return {
    model,
    skillTerms: sharedFloats(skills.terms),
    // An item's intercept is not published: its counters stand for it.
    itemTerms: sharedFloats(items.terms.filter((_, at) => at % items.width !== 0)),
  };
}

export type FittedPrediction = Readonly<ReturnType<typeof fittedPrediction>>;
