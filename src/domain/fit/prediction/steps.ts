import { sigmoid } from '../../base/common.js';
import { type BoxedQuadratic, descend, mirror, newQuadratic } from '../../base/descend.js';
import { features, skillColumns } from '../../prediction/features.js';
import { stepBefore } from './before.js';
import { type Block, type FitMemory, rangeAnswers, sumsPerMember } from './blocks.js';
import type { BlockName, FitStep } from './parts.js';
import { moveStreaks, solveStreaks, sumStreaks } from './streaks.js';

const together = 4;

const newBatch = (width: number) => ({
  width,
  values: new Float64Array(together * width).fill(1),
  slopes: new Float64Array(together),
  curvatures: new Float64Array(together),
});
type Batch = ReturnType<typeof newBatch>;

/** Ranges may run in parallel: member m in range r has the sums m + r. Without `fresh`, the Hessian stays. */
export function sumRanges(
  memory: FitMemory,
  name: BlockName,
  fresh: boolean,
  from: number,
  to: number,
): void {
  const block = memory.blocks[name];
  const { width, sums } = block;
  const size = sumsPerMember(width);
  const batch = newBatch(width);
  eachPart(block, from, to, (member, range, start, end) => {
    const sum = (member + range) * size;
    sums.fill(0, sum, sum + (fresh ? size : width));
    for (let i = start; i < end; i += together) {
      readBatch(memory, block, batch, i, Math.min(together, end - i));
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
  { values, slopes, curvatures }: Batch,
  from: number,
  count: number,
): void {
  for (let k = 0; k < count; k++) {
    const place = order[from + k] as number;
    const row = (isPacked ? from + k : place) * stride - 1;
    const value = k * width;
    for (let j = 1; j < width; j++) values[value + j] = (rows[row + j] as number) - (means[j] as number);
    const p = sigmoid(logits[place] as number);
    slopes[k] = (correct[place] as number) - p;
    curvatures[k] = p * (1 - p);
  }
  slopes.fill(0, count);
  curvatures.fill(0, count);
}

function addHessian(batch: Batch, sums: Float64Array, at: number): void {
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
  { width, values }: Batch,
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
  eachPart(blocks[name], from, to, (member, _, start, end) => {
    const term = member * width;
    for (let i = start; i < end; i++) {
      const place = order[i] as number;
      const row = (isPacked ? i : place) * stride - 1;
      let sum = (logits[place] as number) + (moves[term] as number);
      for (let j = 1; j < width; j++)
        sum += (moves[term + j] as number) * ((rows[row + j] as number) - (means[j] as number));
      logits[place] = sum;
    }
  });
}

function eachPart(
  block: Block,
  from: number,
  to: number,
  visit: (member: number, range: number, start: number, end: number) => void,
): void {
  const { order, starts } = block;
  for (let range = from; range < to; range++) {
    const last = Math.min(order.length, (range + 1) * rangeAnswers);
    let at = range * rangeAnswers;
    for (let member = memberAt(starts, at); at < last; member++) {
      const end = Math.min(last, starts[member + 1] as number);
      visit(member, range, at, end);
      at = end;
    }
  }
}

function memberAt(starts: Uint32Array, at: number): number {
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
  const { first, width, terms, moves, starts } = block;
  const problem = newQuadratic(width);
  moves.fill(0);
  for (let member = first; member + 1 < starts.length; member++) {
    if (starts[member] === starts[member + 1]) continue;
    const at = member * width;
    addUp(problem, block, member);
    limit(problem, memory, name, member);
    descend(problem, descent);
    for (let j = 0; j < width; j++) {
      moves[at + j] = (problem.solution[j] as number) - (terms[at + j] as number);
      terms[at + j] = problem.solution[j] as number;
    }
  }
}

function addUp({ gradient, hessian }: BoxedQuadratic, { width, sums, starts }: Block, member: number): void {
  const size = sumsPerMember(width);
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
  mirror(hessian, width);
}

/** Keeps the curvature positive, even for certain answers. */
const tinyRidge = 1e-6;

/** Adds ridges; limits the step and the sign of the total weight. */
function limit(problem: BoxedQuadratic, memory: FitMemory, name: BlockName, member: number): void {
  const { gradient, hessian, low, high, solution } = problem;
  const { width, columns, terms, ridges, centres, maxMoves } = memory.blocks[name];
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
    const zero = -weightBelow(memory, name, member, column);
    const bound = sign > 0 ? Math.max : Math.min;
    low[j] = bound(low[j] as number, zero);
    high[j] = bound(high[j] as number, zero);
  }
}

/** The weight, plus the skill's slope for an item. */
function weightBelow(
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
    stepBefore(memory, 0, skills);
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
