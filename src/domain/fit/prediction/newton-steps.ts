import { sigmoid } from '../../base/common.js';
import {
  type BoxedQuadratic,
  createQuadratic,
  minimizeQuadratic,
  mirrorTriangle,
} from '../../base/coordinate-descent.js';
import { features, skillColumns } from '../../prediction/features.js';
import { type Block, computeSumsSize, type FitMemory, rangeAnswers } from './fit-memory.js';
import type { BlockName, FitStep } from './model-parts.js';
import { stepPreviousSkills } from './previous-skills.js';
import { moveStreaks, solveStreaks, sumStreaks } from './streak-steps.js';

const batchSize = 4;

const createBatch = (width: number) => ({
  width,
  values: new Float64Array(batchSize * width).fill(1),
  slopes: new Float64Array(batchSize),
  curvatures: new Float64Array(batchSize),
});
type AnswerBatch = ReturnType<typeof createBatch>;

/**
 * Ranges may run in parallel. Answers are sorted by member, so the pairs of member m and range r that occur have
 * different sums m + r, where their results are stored. Without `fresh`, the Hessian stays.
 */
export function sumRanges(
  memory: FitMemory,
  name: BlockName,
  fresh: boolean,
  from: number,
  to: number,
): void {
  const block = memory.blocks[name];
  const { width, sums } = block;
  const size = computeSumsSize(width);
  const batch = createBatch(width);
  forEachPart(block, from, to, (member, range, start, end) => {
    const sum = (member + range) * size;
    sums.fill(0, sum, sum + (fresh ? size : width));
    for (let i = start; i < end; i += batchSize) {
      readBatch(memory, block, batch, i, Math.min(batchSize, end - i));
      const { slopes } = batch;
      const [s0, s1] = [slopes[0] as number, slopes[1] as number];
      const [s2, s3] = [slopes[2] as number, slopes[3] as number];
      addRow(batch, sums, sum, width, s0, s1, s2, s3);
      if (fresh) addHessian(batch, sums, sum + width);
    }
  });
}

function readBatch(
  { logits, correct }: FitMemory,
  { width, means, order, rows, stride, isPacked }: Block,
  { values, slopes, curvatures }: AnswerBatch,
  from: number,
  count: number,
): void {
  for (let k = 0; k < count; k++) {
    const index = order[from + k] as number;
    const row = (isPacked ? from + k : index) * stride - 1;
    const value = k * width;
    for (let j = 1; j < width; j++) values[value + j] = (rows[row + j] as number) - (means[j] as number);
    const p = sigmoid(logits[index] as number);
    slopes[k] = (correct[index] as number) - p;
    curvatures[k] = p * (1 - p);
  }
  slopes.fill(0, count);
  curvatures.fill(0, count);
}

function addHessian(batch: AnswerBatch, sums: Float64Array, at: number): void {
  const { width, values, curvatures } = batch;
  let next = at;
  for (let i = 0; i < width; i++) {
    const w0 = (curvatures[0] as number) * (values[i] as number);
    const w1 = (curvatures[1] as number) * (values[width + i] as number);
    const w2 = (curvatures[2] as number) * (values[2 * width + i] as number);
    const w3 = (curvatures[3] as number) * (values[3 * width + i] as number);
    addRow(batch, sums, next, i + 1, w0, w1, w2, w3);
    next += i + 1;
  }
}

function addRow(
  { width, values }: AnswerBatch,
  sums: Float64Array,
  at: number,
  count: number,
  w0: number,
  w1: number,
  w2: number,
  w3: number,
): void {
  for (let j = 0; j < count; j++)
    sums[at + j] =
      (sums[at + j] as number) +
      w0 * (values[j] as number) +
      w1 * (values[width + j] as number) +
      w2 * (values[2 * width + j] as number) +
      w3 * (values[3 * width + j] as number);
}

export function moveRanges({ logits, blocks }: FitMemory, name: BlockName, from: number, to: number): void {
  const { width, means, moves, order, rows, stride, isPacked } = blocks[name];
  forEachPart(blocks[name], from, to, (member, _, start, end) => {
    const term = member * width;
    for (let i = start; i < end; i++) {
      const index = order[i] as number;
      const row = (isPacked ? i : index) * stride - 1;
      let sum = (logits[index] as number) + (moves[term] as number);
      for (let j = 1; j < width; j++)
        sum += (moves[term + j] as number) * ((rows[row + j] as number) - (means[j] as number));
      logits[index] = sum;
    }
  });
}

function forEachPart(
  block: Block,
  from: number,
  to: number,
  visit: (member: number, range: number, start: number, end: number) => void,
): void {
  const { order, starts } = block;
  for (let range = from; range < to; range++) {
    const last = Math.min(order.length, (range + 1) * rangeAnswers);
    let at = range * rangeAnswers;
    for (let member = findMember(starts, at); at < last; member++) {
      const end = Math.min(last, starts[member + 1] as number);
      visit(member, range, at, end);
      at = end;
    }
  }
}

function findMember(starts: Uint32Array, at: number): number {
  let [low, high] = [0, starts.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if ((starts[middle] as number) <= at) low = middle;
    else high = middle;
  }
  return low;
}

const descent = { maxRounds: 3000, tolerance: 1e-7, ridge: 0 };
export function solveStep(memory: FitMemory, name: BlockName): void {
  const block = memory.blocks[name];
  const { first, width, terms, moves, starts, centres } = block;
  const problem = createQuadratic(width);
  const ofCombinations = name === 'skills' ? averageCombinations(memory) : centres;
  moves.fill(0);
  for (let member = first; member + 1 < starts.length; member++) {
    if (starts[member] === starts[member + 1]) continue;
    const at = member * width;
    collectSums(problem, block, member);
    applyLimits(problem, memory, name, member, member < memory.singleSkills ? centres : ofCombinations);
    minimizeQuadratic(problem, descent);
    for (let j = 0; j < width; j++) {
      moves[at + j] = (problem.solution[j] as number) - (terms[at + j] as number);
      terms[at + j] = problem.solution[j] as number;
    }
  }
}

function collectSums(
  { gradient, hessian }: BoxedQuadratic,
  { width, sums, starts }: Block,
  member: number,
): void {
  const size = computeSumsSize(width);
  const last = Math.floor(((starts[member + 1] as number) - 1) / rangeAnswers);
  gradient.fill(0);
  hessian.fill(0);
  for (let range = Math.floor((starts[member] as number) / rangeAnswers); range <= last; range++) {
    const from = (member + range) * size;
    let at = from + width;
    for (let i = 0; i < width; i++) {
      gradient[i] = (gradient[i] as number) - (sums[from + i] as number);
      for (let j = 0; j <= i; j++)
        hessian[i * width + j] = (hessian[i * width + j] as number) + (sums[at++] as number);
    }
  }
  mirrorTriangle(hessian, width);
}

/** Mean terms of an answer with several skills: terms of combinations are drawn to them. */
function averageCombinations({ blocks: { skills }, singleSkills }: FitMemory): Float64Array {
  const { width, terms, starts } = skills;
  const sums = new Float64Array(width);
  const answers = (starts.at(-1) as number) - (starts[singleSkills] as number);
  if (answers === 0) return sums;
  for (let set = singleSkills; set + 1 < starts.length; set++) {
    const share = ((starts[set + 1] as number) - (starts[set] as number)) / answers;
    for (let j = 0; j < width; j++)
      sums[j] = (sums[j] as number) + share * (terms[set * width + j] as number);
  }
  return sums;
}

/** Keeps the curvature positive, even for certain answers. */
const tinyRidge = 1e-6;

/** Adds ridges; limits the step and the sign of the total weight. */
function applyLimits(
  problem: BoxedQuadratic,
  memory: FitMemory,
  name: BlockName,
  member: number,
  centres: Float64Array,
): void {
  const { gradient, hessian, low, high, solution } = problem;
  const { width, columns, terms, ridges, maxMoves } = memory.blocks[name];
  for (let j = 0; j < width; j++) {
    const term = terms[member * width + j] as number;
    const ridge = ridges[j] as number;
    solution[j] = term;
    gradient[j] = (gradient[j] as number) + ridge * (term - (centres[j] as number));
    hessian[j * width + j] = (hessian[j * width + j] as number) + ridge + tinyRidge;
    low[j] = term - (maxMoves[j] as number);
    high[j] = term + (maxMoves[j] as number);
    const column = columns[j - 1];
    const sign = column === undefined ? 0 : (features[column]?.sign ?? 0);
    if (column === undefined || sign === 0) continue;
    const zero = -computeLowerWeight(memory, name, member, column);
    const bound = sign > 0 ? Math.max : Math.min;
    low[j] = bound(low[j] as number, zero);
    high[j] = bound(high[j] as number, zero);
  }
}

/** The weight, plus the skill's slope for an item. */
function computeLowerWeight(
  { blocks, skillOf }: FitMemory,
  name: BlockName,
  member: number,
  column: number,
): number {
  if (name === 'weights') return 0;
  const weight = blocks.weights.terms[1 + column] as number;
  const inSkill = skillColumns.indexOf(column);
  if (name === 'skills' || inSkill < 0) return weight;
  const skill = skillOf[member] as number;
  return weight + (blocks.skills.terms[skill * blocks.skills.width + 1 + inSkill] as number);
}

export function runStep(memory: FitMemory, step: FitStep): void {
  const skills = memory.blocks.skills.starts.length - 1;
  if (step.kind === 'before') {
    stepPreviousSkills(memory, 0, skills);
    return;
  }
  if (step.kind === 'streaks') {
    sumStreaks(memory, 0, skills);
    solveStreaks(memory);
    moveStreaks(memory, 0, skills);
    return;
  }
  sumRanges(memory, step.name, step.fresh, 0, memory.ranges);
  solveStep(memory, step.name);
  moveRanges(memory, step.name, 0, memory.ranges);
}
