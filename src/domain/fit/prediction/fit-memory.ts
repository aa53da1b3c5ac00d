/** Terms in shared memory, fitted by block Newton steps. */
import {
  type AnswerLog,
  collectAnswerIndices,
  countSkillSets,
  groupByMember,
  type LearnerSelection,
  sharedArrays,
} from '../../base/answer-log.js';
import { predictionConstants } from '../../base/prediction-constants.js';
import {
  courseColumn,
  features,
  findColumn,
  itemColumns,
  patternColumn,
  previousItemColumn,
  previousSkillColumn,
  previousSkillCount,
  rowWidth,
  runColumn,
  skillColumns,
  streakColumn,
} from '../../prediction/features.js';
import { itemRunCount, skillRunCount } from '../../prediction/prediction-model.js';
import { skillPairWidth } from '../../prediction/related-terms.js';
import { itemPatternCount, maxItemRun } from '../../tracing/traces.js';
import { type BlockName, type PartName, partBlocks } from './model-parts.js';
import { buildFrequentPairs, findPairMember, type PairTable } from './pair-tables.js';
import { createStreaks } from './streak-steps.js';

const { fit: rules } = predictionConstants;

export type FitMemory = ReturnType<typeof createFitMemory>;

/** Fixed, so that results are equal for any number of threads. */
export const rangeAnswers = 1 << 12;

export function createFitMemory(
  log: AnswerLog,
  learners: LearnerSelection,
  { rows }: { readonly rows: Float32Array },
  itemVariance: number,
) {
  const indices = collectAnswerIndices(log, learners);
  const { correct, skill, item, items } = log;
  const skills = countSkillSets(log);
  const answers = { indices, rows, ...computeMoments(rows, indices) };
  const { pairs, itemPairs } = buildPairTables(log, rows, indices);
  const skillOf = sharedArrays.counts(items + 1);
  for (const index of indices) skillOf[item[index] as number] = skill[index] as number;
  const itemRidge = Math.max(rules.itemRidge, 1 / itemVariance);
  // Items that differ less need a stronger ridge.
  const slopeRidge = (column: number): number =>
    (itemRidge / rules.itemRidge) *
    (column === findColumn('ability') ? rules.itemAbilityRidge : rules.itemSlopeRidge);
  // The block of weights has one member, 0.
  const all = sharedArrays.counts(correct.length);
  const blocks: Record<BlockName, Block> = {
    weights: createBlock(answers, all, 0, 1, allColumns, 0, () => rules.ridge),
    skills: createBlock(answers, skill, 0, skills, skillColumns, rules.skillRidge, () => rules.slopeRidge),
    items: createBlock(answers, item, 1, items + 1, itemColumns, itemRidge, slopeRidge),
    ...createTableBlocks(log, answers, pairs, itemPairs),
  };
  initializeWeights(blocks.weights, correct, indices);
  // Log-odds by answer index, from the current terms.
  const logits = sharedArrays.doubles(correct.length);
  const streaks = createStreaks(skills);
  const ranges = countRanges(indices);
  const shared = { correct, logits, rows, ranges, skillOf, blocks, pairs, itemPairs, streaks };
  return { ...shared, singleSkills: log.skills };
}

function buildPairTables(log: AnswerLog, rows: Float32Array, indices: Uint32Array) {
  const bySkill = groupByMember(log.skill, countSkillSets(log), indices);
  const byItem = groupByMember(log.item, log.items + 1, indices);
  return {
    pairs: buildFrequentPairs(rows, rowWidth, bySkill, skillPairColumns, skillPairWidth, rules.skillPairs),
    itemPairs: buildFrequentPairs(rows, rowWidth, byItem, [previousItemColumn], 1, rules.itemPairs),
  };
}

type BlockAnswers = { readonly indices: Uint32Array; readonly rows: Float32Array } & ReturnType<
  typeof computeMoments
>;

export function hasAnswersFor({ blocks, pairs }: FitMemory, part: PartName): boolean {
  if (part === 'streaks') return true;
  if (part === 'before') return pairs.keys.length > 0;
  return partBlocks[part].some((name) => blocks[name].order.length > 0);
}

/** Member 0 of these blocks means: no term. */
function createTableBlocks(log: AnswerLog, answers: BlockAnswers, pairs: PairTable, itemPairs: PairTable) {
  const { correct, skill, item, items } = log;
  const { indices, rows } = answers;
  const table = (size: number, ridge: number, memberOf: (index: number) => number): Block => {
    const members = sharedArrays.counts(correct.length);
    for (const index of indices) members[index] = memberOf(index);
    return createBlock(answers, members, 1, size + 1, [], ridge, () => 0);
  };
  const at = (index: number, column: number): number => rows[index * rowWidth + column] as number;
  const runMember = (index: number, owner: number, longest: number): number => {
    const run = at(index, runColumn);
    return run === 0 ? 0 : owner * longest + Math.min(run, longest);
  };
  return {
    runs: table(maxItemRun, rules.runRidge, (index) => runMember(index, 0, maxItemRun)),
    course: table(pairs.keys.length, rules.courseRidge * averageSkillAnswers(rows, indices), (index) =>
      findPairMember(pairs, skill[index] as number, at(index, courseColumn)),
    ),
    skillRuns: table(countSkillSets(log) * skillRunCount, rules.skillRunRidge, (index) =>
      runMember(index, skill[index] as number, skillRunCount),
    ),
    itemRuns: table((items + 1) * itemRunCount, rules.itemRunRidge, (index) =>
      runMember(index, item[index] as number, itemRunCount),
    ),
    patterns: table(itemPatternCount, rules.patternRidge, (index) => at(index, patternColumn)),
    itemsBefore: table(itemPairs.keys.length, rules.itemPairRidge, (index) =>
      findPairMember(itemPairs, item[index] as number, at(index, previousItemColumn)),
    ),
  };
}

const skillPairColumns = [
  courseColumn,
  ...Array.from({ length: previousSkillCount }, (_, i) => previousSkillColumn + i),
];

/** Mean answers of a learner on a skill. Only first answers have a streak of 0. */
function averageSkillAnswers(rows: Float32Array, indices: Uint32Array): number {
  const first = indices.reduce(
    (sum, index) => sum + (rows[index * rowWidth + streakColumn] === 0 ? 1 : 0),
    0,
  );
  return indices.length / Math.max(1, first);
}

const allColumns = features.map((_, column) => column);

const countRanges = (indices: Uint32Array): number => Math.ceil(indices.length / rangeAnswers);

function computeMoments(rows: Float32Array, indices: Uint32Array) {
  const sums = new Float64Array(features.length);
  const squares = new Float64Array(features.length);
  for (const index of indices) {
    const from = index * rowWidth;
    for (let column = 0; column < sums.length; column++) {
      const value = rows[from + column] as number;
      sums[column] = (sums[column] as number) + value;
      squares[column] = (squares[column] as number) + value * value;
    }
  }
  const answers = Math.max(1, indices.length);
  const means = sums.map((sum) => sum / answers);
  const sds = squares.map((square, column) => {
    const variance = square / answers - (means[column] as number) ** 2;
    return Math.max(Math.sqrt(Math.max(0, variance)), rules.minSd);
  });
  return { means, sds };
}

export type Block = ReturnType<typeof createBlock>;

/** @param first first member with terms */
function createBlock(
  { indices, rows, means, sds }: BlockAnswers,
  members: Uint32Array,
  first: 0 | 1,
  size: number,
  columns: readonly number[],
  interceptRidge: number,
  ridgeOf: (column: number) => number,
) {
  const width = 1 + columns.length;
  const memberAnswers =
    first === 0 ? indices : indices.filter((index) => (members[index] as number) >= first);
  const sorted = groupByMember(members, size, memberAnswers);
  const isPacked = columns.length < features.length;
  const sdOf = (column: number): number => sds[column] as number;
  return {
    ...sorted,
    first,
    /** Features, `stride` apart: packed in the block's order, or by answer index. */
    rows: isPacked ? packRows(rows, columns, sorted.order) : rows,
    stride: isPacked ? columns.length : rowWidth,
    isPacked,
    width,
    columns,
    means: Float64Array.of(0, ...columns.map((column) => means[column] as number)),
    ridges: Float64Array.of(interceptRidge, ...columns.map((c) => ridgeOf(c) * sdOf(c) * sdOf(c))),
    centres: new Float64Array(width),
    maxMoves: Float64Array.of(rules.maxGroupStep, ...columns.map((c) => rules.maxGroupStep / sdOf(c))),
    terms: sharedArrays.doubles(size * width),
    moves: sharedArrays.doubles(size * width),
    /** Gradient, then the lower triangle of the Hessian by rows; see `computeSumsSize`. */
    sums: sharedArrays.doubles((size + countRanges(memberAnswers)) * computeSumsSize(width)),
  };
}

/** Reading distant rows is slow. */
function packRows(rows: Float32Array, columns: readonly number[], order: Uint32Array): Float32Array {
  const stride = columns.length;
  const packed = sharedArrays.floats(stride * order.length);
  for (let i = 0; i < order.length; i++) {
    const from = (order[i] as number) * rowWidth;
    for (let j = 0; j < stride; j++) packed[i * stride + j] = rows[from + (columns[j] as number)] as number;
  }
  return packed;
}

export const computeSumsSize = (width: number): number => width + (width * (width + 1)) / 2;

/** With few answers, only the bias may change. */
function initializeWeights(block: Block, correct: Uint8Array, indices: Uint32Array): void {
  const right = indices.reduce((sum, index) => sum + (correct[index] as number), 1);
  const bias = Math.log(right / (indices.length + 2 - right));
  const start = [bias, ...features.map((feature) => feature.start)];
  for (const figures of [block.terms, block.moves, block.centres]) figures.set(start);
  block.maxMoves.fill(indices.length < rules.minAnswers ? 0 : Number.POSITIVE_INFINITY);
  block.maxMoves[0] = Number.POSITIVE_INFINITY;
}

const retryColumns = (['firstTryAbility', 'recentFirstTries', 'retryAbility', 'recentRetries'] as const).map(
  findColumn,
);

export function setRetriesAllowed({ blocks: { weights } }: FitMemory, isAllowed: boolean): void {
  const stepLimit = weights.maxMoves[2] as number;
  for (const column of retryColumns) weights.maxMoves[1 + column] = isAllowed ? stepLimit : 0;
}
