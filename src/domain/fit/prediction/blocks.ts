/** Terms in shared memory, fitted by block Newton steps. */
import { type AnswerLog, type Learners, placesOf, shared, sortedBy } from '../../base/answer-log.js';
import { predictionModel } from '../../base/prediction-constants.js';
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
import { itemRuns, skillRuns } from '../../prediction/model.js';
import { skillPairTerms } from '../../prediction/related.js';
import { itemPatterns, maxItemRun } from '../../tracing/traces.js';
import { newPairTable, type PairTable, pairMember } from './pair-tables.js';
import { type BlockName, type PartName, partBlocks } from './parts.js';
import { newStreaks } from './streaks.js';

const { fit: rules } = predictionModel;

export type FitMemory = ReturnType<typeof newFitMemory>;

/** Fixed, so that results are equal for any number of threads. */
export const rangeAnswers = 1 << 12;

export function newFitMemory(
  log: AnswerLog,
  learners: Learners,
  { rows }: { readonly rows: Float32Array },
  itemVariance: number,
) {
  const places = placesOf(log, learners);
  const { correct, skill, item, skills, items } = log;
  const answers = { places, rows, ...momentsOf(rows, places) };
  const { pairs, itemPairs } = pairTablesOf(log, rows, places);
  const skillOf = shared.counts(items + 1);
  for (const place of places) skillOf[item[place] as number] = skill[place] as number;
  const itemRidge = Math.max(rules.itemRidge, 1 / itemVariance);
  // Items that differ less need a stronger ridge.
  const slopeRidge = (column: number): number =>
    (itemRidge / rules.itemRidge) *
    (column === columnOf('ability') ? rules.itemAbilityRidge : rules.itemSlopeRidge);
  // The block of weights has one member, 0.
  const all = shared.counts(correct.length);
  const blocks: Record<BlockName, Block> = {
    weights: newBlock(answers, all, 0, 1, allColumns, 0, () => rules.ridge),
    skills: newBlock(answers, skill, 0, skills, skillColumns, rules.skillRidge, () => rules.slopeRidge),
    items: newBlock(answers, item, 1, items + 1, itemColumns, itemRidge, slopeRidge),
    ...tableBlocks(log, answers, pairs, itemPairs),
  };
  startWeights(blocks.weights, correct, places);
  // Log-odds by answer index, from the current terms.
  const logits = shared.doubles(correct.length);
  const streaks = newStreaks(skills);
  return { correct, logits, rows, ranges: rangesOf(places), skillOf, blocks, pairs, itemPairs, streaks };
}

function pairTablesOf({ skill, item, skills, items }: AnswerLog, rows: Float32Array, places: Uint32Array) {
  const bySkill = sortedBy(skill, skills, places);
  const byItem = sortedBy(item, items + 1, places);
  return {
    pairs: newPairTable(rows, rowWidth, bySkill, skillPairColumns, skillPairTerms, rules.skillPairs),
    itemPairs: newPairTable(rows, rowWidth, byItem, [itemBeforeColumn], 1, rules.itemPairs),
  };
}

type Answers = { readonly places: Uint32Array; readonly rows: Float32Array } & ReturnType<typeof momentsOf>;

export function occurs({ blocks, pairs }: FitMemory, part: PartName): boolean {
  if (part === 'streaks') return true;
  if (part === 'before') return pairs.keys.length > 0;
  return partBlocks[part].some((name) => blocks[name].order.length > 0);
}

/** In these blocks, answers of member 0 have no term. */
function tableBlocks(
  { correct, skill, item, skills, items }: AnswerLog,
  answers: Answers,
  pairs: PairTable,
  itemPairs: PairTable,
) {
  const { places, rows } = answers;
  const table = (size: number, ridge: number, memberOf: (place: number) => number): Block => {
    const members = shared.counts(correct.length);
    for (const place of places) members[place] = memberOf(place);
    return newBlock(answers, members, 1, size + 1, [], ridge, () => 0);
  };
  const at = (place: number, column: number): number => rows[place * rowWidth + column] as number;
  const runMember = (place: number, owner: number, longest: number): number => {
    const run = at(place, runColumn);
    return run === 0 ? 0 : owner * longest + Math.min(run, longest);
  };
  return {
    runs: table(maxItemRun, rules.runRidge, (place) => runMember(place, 0, maxItemRun)),
    course: table(pairs.keys.length, rules.courseRidge * answersEach(rows, places), (place) =>
      pairMember(pairs, skill[place] as number, at(place, courseColumn)),
    ),
    skillRuns: table(skills * skillRuns, rules.skillRunRidge, (place) =>
      runMember(place, skill[place] as number, skillRuns),
    ),
    itemRuns: table((items + 1) * itemRuns, rules.itemRunRidge, (place) =>
      runMember(place, item[place] as number, itemRuns),
    ),
    patterns: table(itemPatterns, rules.patternRidge, (place) => at(place, patternColumn)),
    itemsBefore: table(itemPairs.keys.length, rules.itemPairRidge, (place) =>
      pairMember(itemPairs, item[place] as number, at(place, itemBeforeColumn)),
    ),
  };
}

const skillPairColumns = [courseColumn, ...Array.from({ length: skillsBefore }, (_, i) => beforeColumn + i)];

function answersEach(rows: Float32Array, places: Uint32Array): number {
  const first = places.reduce((sum, place) => sum + (rows[place * rowWidth + streakColumn] === 0 ? 1 : 0), 0);
  return places.length / Math.max(1, first);
}

const allColumns = features.map((_, column) => column);

const rangesOf = (places: Uint32Array): number => Math.ceil(places.length / rangeAnswers);

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

/** @param first first member with terms */
function newBlock(
  { places, rows, means, sds }: Answers,
  members: Uint32Array,
  first: 0 | 1,
  size: number,
  columns: readonly number[],
  interceptRidge: number,
  ridgeOf: (column: number) => number,
) {
  const width = 1 + columns.length;
  const own = first === 0 ? places : places.filter((place) => (members[place] as number) >= first);
  const sorted = sortedBy(members, size, own);
  const isPacked = columns.length < features.length;
  const sdOf = (column: number): number => sds[column] as number;
  return {
    ...sorted,
    first,
    /** Features, `stride` apart: packed in the block's order, or by answer index. */
    rows: isPacked ? packedRows(rows, columns, sorted.order) : rows,
    stride: isPacked ? columns.length : rowWidth,
    isPacked,
    width,
    columns,
    means: Float64Array.of(0, ...columns.map((column) => means[column] as number)),
    ridges: Float64Array.of(interceptRidge, ...columns.map((c) => ridgeOf(c) * sdOf(c) * sdOf(c))),
    centres: new Float64Array(width),
    maxMoves: Float64Array.of(rules.maxGroupStep, ...columns.map((c) => rules.maxGroupStep / sdOf(c))),
    terms: shared.doubles(size * width),
    moves: shared.doubles(size * width),
    sums: shared.doubles((size + rangesOf(own)) * sumsPerMember(width)),
  };
}

/** Reading distant rows is slow. */
function packedRows(rows: Float32Array, columns: readonly number[], order: Uint32Array): Float32Array {
  const stride = columns.length;
  const packed = shared.floats(stride * order.length);
  for (let i = 0; i < order.length; i++) {
    const from = (order[i] as number) * rowWidth;
    for (let j = 0; j < stride; j++) packed[i * stride + j] = rows[from + (columns[j] as number)] as number;
  }
  return packed;
}

export const sumsPerMember = (width: number): number => width + (width * (width + 1)) / 2;

/** With few answers, only the bias may change. */
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

export function allowRetries({ blocks: { weights } }: FitMemory, isAllowed: boolean): void {
  const own = weights.maxMoves[2] as number;
  for (const column of retryColumns) weights.maxMoves[1 + column] = isAllowed ? own : 0;
}
