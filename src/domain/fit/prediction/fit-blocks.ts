import type { AnswerLog, LearnerFilter } from '../../base/answer-log.js';
import { predictionModel } from '../../base/params.js';
import { features, itemColumns, rowWidth, runColumn, skillColumns } from '../../prediction/features.js';
import { maxItemRun } from '../../tracing/traces.js';
import type { FeatureStore } from './replay.js';

/**
 * Terms that are fitted together: for each member (all answers, a skill, an item, a length of the run of wrong
 * answers) an intercept, then slopes on some features about their means. Shared memory; plain data.
 */
export interface Block {
  /** Terms per member. */
  readonly width: number;
  /** Features of the slopes, those of terms 1 and up. */
  readonly columns: Uint8Array;
  /** By term, over the answers of the fit; that of the intercept is 0. */
  readonly means: Float64Array;
  /** Places of the fit's answers in the log, sorted by member. */
  readonly order: Uint32Array;
  /** Where each member's begin in it, and the end. */
  readonly starts: Uint32Array;
  /**
   * The features of the slopes, `stride` apart: packed in the block's order, for a pass over far-apart rows waits for
   * memory most of the time, or else all features by place in the log.
   */
  readonly rows: Float32Array;
  readonly stride: number;
  readonly isPacked: boolean;
  /** By term: how strongly it is drawn to its centre, and how far it may move in one step. */
  readonly ridges: Float64Array;
  readonly centres: Float64Array;
  readonly maxMoves: Float64Array;
  /** `width` per member. */
  readonly terms: Float64Array;
  /** The last change of the terms. */
  readonly moves: Float64Array;
  /** What the ranges of a pass summed up (see `sumRanges`). */
  readonly sums: Float64Array;
}

export type BlockName = 'weights' | 'skills' | 'items' | 'runs';

/** One Newton step of all terms of a block. */
export interface FitStep {
  readonly name: BlockName;
  /** Whether the Hessian is summed up anew, or that of an earlier step is near enough. */
  readonly fresh: boolean;
}

/** All that a fit works on. */
export interface FitMemory {
  /** The answers, by place in the log. */
  readonly correct: Uint8Array;
  /** Log-odds of a right answer by the terms so far, by place in the log. */
  readonly logits: Float64Array;
  /** How many ranges the answers of the fit are summed up in. */
  readonly ranges: number;
  /** The skill that each item was last asked for. */
  readonly skillOf: Uint32Array;
  readonly blocks: Readonly<Record<BlockName, Block>>;
}

/** Answers in a range of a pass; the same for any number of threads, for sums depend on it in their last digits. */
export const rangeAnswers = 1 << 12;
const rangesOf = (answers: number): number => Math.ceil(answers / rangeAnswers);

/** @param itemVariance of the items' effects (see `fitOffsets`), which tells how far their terms are trusted */
export function newFitMemory(
  log: AnswerLog,
  learners: LearnerFilter,
  { rows }: FeatureStore,
  itemVariance: number,
): FitMemory {
  const places = placesOf(log, learners);
  const { means, sds } = momentsOf(rows, places);
  const run = indexes(log.correct.length);
  for (const place of places) run[place] = Math.min(maxItemRun, rows[place * rowWidth + runColumn] as number);
  const block = blockMaker({ places, rows, means, sds });
  const { ridge, skillRidge, slopeRidge, runRidge } = predictionModel.fit;
  const item = itemRidges(itemVariance);
  const { correct, skill, skills, items } = log;
  // All answers belong to the one member 0.
  const weights = block(indexes(correct.length), 1, allColumns, 0, () => ridge);
  return {
    correct,
    logits: floats(correct.length),
    ranges: rangesOf(places.length),
    skillOf: skillsOfItems(log, places),
    blocks: {
      weights: startingAt(startWeights(correct, places), places, weights),
      skills: block(skill, skills, skillColumns, skillRidge, () => slopeRidge),
      items: block(log.item, items + 1, itemColumns, item.intercept, item.slope),
      runs: block(run, maxItemRun + 1, [], runRidge, () => 0),
    },
  };
}

const floats = (length: number): Float64Array => new Float64Array(new SharedArrayBuffer(8 * length));
const indexes = (length: number): Uint32Array => new Uint32Array(new SharedArrayBuffer(4 * length));

function placesOf({ starts }: AnswerLog, learners: LearnerFilter): Uint32Array {
  let count = 0;
  for (let learner = 0; learner + 1 < starts.length; learner++) {
    if (learners(learner)) count += (starts[learner + 1] as number) - (starts[learner] as number);
  }
  const places = indexes(count);
  let next = 0;
  for (let learner = 0; learner + 1 < starts.length; learner++) {
    if (!learners(learner)) continue;
    const end = starts[learner + 1] as number;
    for (let place = starts[learner] as number; place < end; place++) places[next++] = place;
  }
  return places;
}

/** Mean and sd of every feature; small sds count as the least one. */
function momentsOf(rows: Float32Array, places: Uint32Array) {
  const sums = new Float64Array(features.length);
  const squares = new Float64Array(features.length);
  for (let i = 0; i < places.length; i++) {
    const from = (places[i] as number) * rowWidth;
    for (let column = 0; column < sums.length; column++) {
      const value = rows[from + column] as number;
      sums[column] = (sums[column] as number) + value;
      squares[column] = (squares[column] as number) + value * value;
    }
  }
  const answers = Math.max(1, places.length);
  const means = new Float64Array(features.length);
  for (const [column, sum] of sums.entries()) means[column] = sum / answers;
  const sds = squares.map((square, column) => {
    const variance = square / answers - (means[column] as number) ** 2;
    return Math.max(Math.sqrt(Math.max(0, variance)), predictionModel.fit.minSd);
  });
  return { means, sds };
}

interface FitAnswers {
  readonly places: Uint32Array;
  readonly rows: Float32Array;
  /** By column. */
  readonly means: Float64Array;
  readonly sds: Float64Array;
}

/** Ridges are told in standardised units. */
function blockMaker(answers: FitAnswers) {
  const { places, means, sds } = answers;
  return (
    members: Uint32Array,
    size: number,
    columns: readonly number[],
    interceptRidge: number,
    slopeRidge: (column: number) => number,
  ): Block => {
    const width = 1 + columns.length;
    const { maxGroupStep } = predictionModel.fit;
    const slopes = columns.map((column) => ({ ridge: slopeRidge(column), sd: sds[column] as number }));
    const { order, starts } = sortedBy(members, size, places);
    return {
      width,
      columns: Uint8Array.from(columns),
      means: Float64Array.of(0, ...columns.map((column) => means[column] as number)),
      order,
      starts,
      ...rowsOf(answers.rows, columns, order),
      ridges: Float64Array.of(interceptRidge, ...slopes.map(({ ridge, sd }) => ridge * sd * sd)),
      maxMoves: Float64Array.of(maxGroupStep, ...slopes.map(({ sd }) => maxGroupStep / sd)),
      centres: new Float64Array(width),
      terms: floats(size * width),
      moves: floats(size * width),
      sums: floats((size + rangesOf(places.length)) * sumsPerMember(width)),
    };
  };
}

function rowsOf(
  rows: Float32Array,
  columns: readonly number[],
  order: Uint32Array,
): Pick<Block, 'rows' | 'stride' | 'isPacked'> {
  const stride = columns.length;
  if (stride === features.length) return { rows, stride: rowWidth, isPacked: false };
  const packed = new Float32Array(new SharedArrayBuffer(4 * stride * order.length));
  for (let i = 0; i < order.length; i++) {
    const from = (order[i] as number) * rowWidth;
    for (let j = 0; j < stride; j++) packed[i * stride + j] = rows[from + (columns[j] as number)] as number;
  }
  return { rows: packed, stride, isPacked: true };
}

/** Gradient, then the lower triangle of the Hessian by rows. */
export const sumsPerMember = (width: number): number => width + (width * (width + 1)) / 2;

/**
 * The items' terms are normal about 0 with the variance of their effects: the ridge is one by it. Slopes are trusted
 * less where items differ less.
 */
function itemRidges(variance: number) {
  const { itemRidge, itemAbilityRidge, itemSlopeRidge } = predictionModel.fit;
  const intercept = Math.max(itemRidge, 1 / variance);
  const share = intercept / itemRidge;
  return {
    intercept,
    slope: (column: number) =>
      share * (features[column]?.name === 'ability' ? itemAbilityRidge : itemSlopeRidge),
  };
}

/** Stable: each member's answers stay in the order of the log. */
function sortedBy(members: Uint32Array, size: number, places: Uint32Array): Pick<Block, 'order' | 'starts'> {
  const starts = indexes(size + 1);
  for (const place of places) {
    const after = (members[place] as number) + 1;
    starts[after] = (starts[after] as number) + 1;
  }
  for (let member = 1; member <= size; member++) {
    starts[member] = (starts[member] as number) + (starts[member - 1] as number);
  }
  const next = starts.slice();
  const order = indexes(places.length);
  for (const place of places) {
    const member = members[place] as number;
    const at = next[member] as number;
    order[at] = place;
    next[member] = at + 1;
  }
  return { order, starts };
}

/** The skill that each item was last asked for. */
function skillsOfItems({ skill, item, items }: AnswerLog, places: Uint32Array): Uint32Array {
  const skillOf = indexes(items + 1);
  for (const place of places) skillOf[item[place] as number] = skill[place] as number;
  return skillOf;
}

const allColumns = features.map((_, column) => column);

/** The bias of the overall share, one right and one wrong answer added, and the features' own start values. */
function startWeights(correct: Uint8Array, places: Uint32Array): Float64Array {
  let right = 1;
  for (const place of places) right += correct[place] as number;
  return Float64Array.of(
    Math.log(right / (places.length + 2 - right)),
    ...features.map(({ start }) => start),
  );
}

/** Terms that start at their centres and move freely; with few answers the intercept alone moves. */
function startingAt(start: Float64Array, places: Uint32Array, block: Block): Block {
  block.terms.set(start);
  block.moves.set(start);
  block.centres.set(start);
  block.maxMoves.fill(places.length < predictionModel.fit.minAnswers ? 0 : Number.POSITIVE_INFINITY);
  block.maxMoves[0] = Number.POSITIVE_INFINITY;
  return block;
}
