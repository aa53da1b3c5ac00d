/** The served probability's terms in blocks of shared memory, fitted by block Newton, alike in any number of threads. */
import {
  type AnswerLog,
  type Learners,
  placesOf,
  shared,
  sharedFloats,
  sortedBy,
} from '../../base/answer-log.js';
import { round4 } from '../../base/common.js';
import { predictionModel } from '../../base/params.js';
import {
  beforeColumn,
  columnOf,
  courseColumn,
  features,
  itemBeforeColumn,
  itemColumns,
  patternColumn,
  rowWidth,
  runColumn,
  skillColumns,
  skillsBefore,
  streakColumn,
} from '../../prediction/features.js';
import {
  itemRuns,
  type PredictionModel,
  priorAnswersFor,
  skillRuns,
  streakCount,
} from '../../prediction/model.js';
import { skillPairTerms } from '../../prediction/related.js';
import { itemPatterns, maxItemRun } from '../../tracing/traces.js';
import { newPairTable, type PairTable, pairMember } from './pair-tables.js';
import type { FeatureStore } from './replay.js';
import { streakSteps, streakTerms } from './streaks.js';

const { fit: rules } = predictionModel;

const firstBlocks = ['weights', 'skills', 'items', 'runs'] as const;
/** Parts beside them, each of which is published only where it helps learners whom a fit did not see (`cross-fit.ts`). */
export const partNames = ['streaks', 'before', 'course', 'retries', 'itemsBefore'] as const;
export type PartName = (typeof partNames)[number];
const partBlocks = {
  course: ['course'],
  retries: ['skillRuns', 'itemRuns', 'patterns'],
  itemsBefore: ['itemsBefore'],
} as const;
export type BlockName = (typeof firstBlocks)[number] | (typeof partBlocks)[keyof typeof partBlocks][number];

export type FitStep =
  | { readonly kind: 'block'; readonly name: BlockName; readonly fresh: boolean }
  | { readonly kind: 'streaks' }
  | { readonly kind: 'before' };

/**
 * The steps of a sweep in their order, one Newton step of all terms of a block each. `moveRanges` of the weights, which
 * start somewhere, comes before them; a block's step is `sumRanges` over all ranges, `solveStep`, then `moveRanges`. Hessians
 * hardly change after a few sweeps and take most of the time: steps that are not fresh use the last ones.
 */
export const sweepSteps = (
  parts: readonly PartName[],
  fresh: boolean,
  first: readonly BlockName[] = firstBlocks,
): FitStep[] => [...blockSteps(first, fresh), ...parts.flatMap((part) => partSteps(part, fresh))];

/** What was practised just before hardly moves after a few sweeps, and costs most of all. */
export const partsIn = (sweep: number, parts: readonly PartName[]): PartName[] =>
  parts.filter((part) => part !== 'before' || sweep < rules.beforeSweeps);

const blockSteps = (names: readonly BlockName[], fresh: boolean): FitStep[] =>
  names.map((name) => ({ kind: 'block', name, fresh }));

export const partSteps = (part: PartName, fresh: boolean): FitStep[] =>
  part === 'streaks' || part === 'before' ? [{ kind: part }] : blockSteps(partBlocks[part], fresh);

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
  const pairs = newPairTable(
    rows,
    rowWidth,
    sortedBy(log.skill, log.skills, places),
    skillPairColumns,
    skillPairTerms,
    rules.skillPairs,
  );
  const itemPairs = newPairTable(
    rows,
    rowWidth,
    sortedBy(log.item, log.items + 1, places),
    [itemBeforeColumn],
    1,
    rules.itemPairs,
  );
  const answers = { places, rows, ...momentsOf(rows, places) };
  const { correct, skill, item, skills, items } = log;
  // All answers belong to member 0 of the weights.
  const [all, run] = [shared.counts(correct.length), shared.counts(correct.length)];
  const memberOf = (of: (place: number) => number): Uint32Array => {
    const members = shared.counts(correct.length);
    for (const place of places) members[place] = of(place);
    return members;
  };
  const at = (place: number, column: number): number => rows[place * rowWidth + column] as number;
  const runOf = (owner: number, longest: number, run: number): number =>
    run === 0 ? 0 : owner * longest + Math.min(run, longest);
  const table = (members: Uint32Array, size: number, ridge: number): Block =>
    newBlock(answers, members, 1, size + 1, [], ridge, () => 0);
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
    course: table(
      memberOf((place) => pairMember(pairs, skill[place] as number, at(place, courseColumn))),
      pairs.keys.length,
      rules.courseRidge * answersEach(rows, places),
    ),
    skillRuns: table(
      memberOf((place) => runOf(skill[place] as number, skillRuns, at(place, runColumn))),
      skills * skillRuns,
      rules.skillRunRidge,
    ),
    itemRuns: table(
      memberOf((place) => runOf(item[place] as number, itemRuns, at(place, runColumn))),
      (items + 1) * itemRuns,
      rules.itemRunRidge,
    ),
    patterns: table(
      memberOf((place) => at(place, patternColumn)),
      itemPatterns,
      rules.patternRidge,
    ),
    itemsBefore: table(
      memberOf((place) => pairMember(itemPairs, item[place] as number, at(place, itemBeforeColumn))),
      itemPairs.keys.length,
      rules.itemPairRidge,
    ),
  };
  startWeights(blocks.weights, correct, places);
  // By place in the log: the answers, and the log-odds of a right answer by the terms so far.
  const logits = shared.doubles(correct.length);
  const streaks = {
    slopes: shared.doubles(skills * streakCount),
    curvatures: shared.doubles(skills * streakCount),
    moves: shared.doubles(skills * streakCount),
    shared: shared.doubles(streakSteps),
    own: shared.doubles(skills * streakSteps),
  };
  return { correct, logits, rows, ranges: rangesOf(places), skillOf, blocks, pairs, itemPairs, streaks };
}

const skillPairColumns = [courseColumn, ...Array.from({ length: skillsBefore }, (_, i) => beforeColumn + i)];

/** Mean number of a learner's answers on a skill: of their places, those without a streak are first answers. */
function answersEach(rows: Float32Array, places: Uint32Array): number {
  const first = places.reduce((sum, place) => sum + (rows[place * rowWidth + streakColumn] === 0 ? 1 : 0), 0);
  return places.length / Math.max(1, first);
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

const retryColumns = (['firstTryAbility', 'recentFirstTries', 'retryAbility', 'recentRetries'] as const).map(
  columnOf,
);

/** Whether the weights of first tries and retries move. */
export function allowRetries({ blocks: { weights } }: FitMemory, isAllowed: boolean): void {
  const own = weights.maxMoves[2] as number;
  for (const column of retryColumns) weights.maxMoves[1 + column] = isAllowed ? own : 0;
}

/** What the steps have led to. @param spread b of the calibration a + b eta, with a as `shift` */
export function fittedPrediction(
  { blocks, pairs, itemPairs, streaks }: FitMemory,
  itemVariance: number,
  { shift, spread }: Calibration,
) {
  const { weights, runs, patterns, course, itemsBefore } = blocks;
  const [bias = 0, ...own] = weights.terms;
  const [, ...means] = weights.means;
  const scaled = (terms: ArrayLike<number>): number[] => Array.from(terms, (term) => spread * term);
  const model: PredictionModel = {
    bias: shift + spread * bias,
    weights: scaled(own),
    means,
    runs: scaled(runs.terms.subarray(1)),
    streaks: scaled(streakTerms(streaks.shared)),
    patterns: scaled(patterns.terms.subarray(1)),
    itemPriorAnswers: priorAnswersFor(itemVariance),
    itemScale: spread * predictionModel.itemScale,
  };
  for (let pair = 0; pair < pairs.keys.length; pair++)
    pairs.terms[pair * skillPairTerms + 2] = course.terms[pair + 1] as number;
  itemPairs.terms.set(itemsBefore.terms.subarray(1));
  // To four decimals, as they are stored.
  const scaledTable = (table: PairTable): PairTable => ({
    ...table,
    terms: sharedFloats(scaled(table.terms).map(round4)),
  });
  return {
    model,
    skillTerms: sharedFloats(scaled(skillTermsOf(blocks, streaks))),
    itemTerms: sharedFloats(scaled(itemTermsOf(blocks))),
    pairs: scaledTable(pairs),
    itemPairs: scaledTable(itemPairs),
  };
}

export interface Calibration {
  readonly shift: number;
  readonly spread: number;
}

function skillTermsOf(
  { skills, skillRuns: runs }: FitMemory['blocks'],
  streaks: FitMemory['streaks'],
): number[] {
  const terms: number[] = [];
  const shared = streakTerms(streaks.shared);
  for (let skill = 0; skill < skills.terms.length / skills.width; skill++) {
    terms.push(...skills.terms.subarray(skill * skills.width, (skill + 1) * skills.width));
    const own = streakTerms(streaks.own.subarray(skill * streakSteps, (skill + 1) * streakSteps));
    terms.push(...shared.map((term, i) => term + (own[i] as number)));
    terms.push(...runs.terms.subarray(skill * skillRuns + 1, (skill + 1) * skillRuns + 1));
  }
  return terms;
}

/** An item's intercept is not published: its counters stand for it. */
function itemTermsOf({ items, itemRuns: runs }: FitMemory['blocks']): number[] {
  const terms: number[] = [];
  for (let item = 0; item < items.terms.length / items.width; item++) {
    terms.push(...items.terms.subarray(item * items.width + 1, (item + 1) * items.width));
    terms.push(...runs.terms.subarray(item * itemRuns + 1, (item + 1) * itemRuns + 1));
  }
  return terms;
}

export type FittedPrediction = Readonly<ReturnType<typeof fittedPrediction>>;
