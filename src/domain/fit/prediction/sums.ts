import { sigmoid } from '../../base/probability.js';
import {
  type Block,
  type BlockName,
  type FitMemory,
  type FitStep,
  rangeAnswers,
  sumsPerMember,
} from './blocks.js';

/** Answers that are added to the sums at once: sums are then read and written less often. */
const together = 4;

/**
 * Sums up the log likelihood to second order by the terms of a block's members, over the ranges `from` to `to` - 1
 * of the answers in the block's order. Ranges may run side by side: a range's members are next to each other, so the
 * sums of member m in range r stand in a place m + r of their own.
 */
export function sumRanges(memory: FitMemory, { name, fresh }: FitStep, from: number, to: number): void {
  const block = memory.blocks[name];
  const batch = newBatch(block.width);
  eachPart(block, from, to, (member, range, start, end) => {
    const sum = (member + range) * sumsPerMember(block.width);
    if (fresh) sumMember(memory, block, batch, sum, start, end);
    else sumSlopes(memory, block, sum, start, end);
  });
}

/** Adds the block's last moves to the log-odds of the answers in the ranges `from` to `to` - 1. */
export function moveRanges(memory: FitMemory, name: BlockName, from: number, to: number): void {
  const block = memory.blocks[name];
  eachPart(block, from, to, (member, _, start, end) =>
    moveMember(memory, block, member * block.width, start, end),
  );
}

/** Visits the answers of each member in each range: the places from `start` to `end` - 1 of the block's order. */
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
    for (let member = memberAt(block, at); at < last; member++) {
      const end = Math.min(last, starts[member + 1] as number);
      visit(member, range, at, end);
      at = end;
    }
  }
}

/** The member to whom a place in the block's order belongs: the last one that begins there or before. */
function memberAt({ starts }: Block, at: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if ((starts[middle] as number) <= at) low = middle;
    else high = middle;
  }
  return low;
}

function moveMember(
  { logits }: FitMemory,
  { width, means, moves, order, rows, stride, isPacked }: Block,
  term: number,
  from: number,
  to: number,
): void {
  for (let i = from; i < to; i++) {
    const place = order[i] as number;
    const row = (isPacked ? i : place) * stride - 1;
    let sum = (logits[place] as number) + (moves[term] as number);
    for (let j = 1; j < width; j++) {
      sum += (moves[term + j] as number) * ((rows[row + j] as number) - (means[j] as number));
    }
    logits[place] = sum;
  }
}

function sumMember(
  { logits, correct }: FitMemory,
  { width, means, sums, order, rows, stride, isPacked }: Block,
  batch: Batch,
  sum: number,
  from: number,
  to: number,
): void {
  const { values, slopes, curvatures } = batch;
  sums.fill(0, sum, sum + sumsPerMember(width));
  for (let i = from; i < to; i += together) {
    const count = Math.min(together, to - i);
    for (let k = 0; k < count; k++) {
      const place = order[i + k] as number;
      const row = (isPacked ? i + k : place) * stride - 1;
      const value = k * width;
      values[value] = 1;
      for (let j = 1; j < width; j++) values[value + j] = (rows[row + j] as number) - (means[j] as number);
      const p = sigmoid(logits[place] as number);
      slopes[k] = (correct[place] as number) - p;
      curvatures[k] = p * (1 - p);
    }
    slopes.fill(0, count);
    curvatures.fill(0, count);
    addBatch(batch, sums, sum);
  }
}

/** The gradient alone; the Hessian stays as an earlier pass left it. */
function sumSlopes(
  { logits, correct }: FitMemory,
  { width, means, sums, order, rows, stride, isPacked }: Block,
  sum: number,
  from: number,
  to: number,
): void {
  sums.fill(0, sum, sum + width);
  for (let i = from; i < to; i++) {
    const place = order[i] as number;
    const row = (isPacked ? i : place) * stride - 1;
    const slope = (correct[place] as number) - sigmoid(logits[place] as number);
    sums[sum] = (sums[sum] as number) + slope;
    for (let j = 1; j < width; j++) {
      sums[sum + j] = (sums[sum + j] as number) + slope * ((rows[row + j] as number) - (means[j] as number));
    }
  }
}

/** A few answers of one member: rows of values, slopes and curvatures of the log likelihood. */
interface Batch {
  readonly width: number;
  readonly values: Float64Array;
  readonly slopes: Float64Array;
  readonly curvatures: Float64Array;
}

const newBatch = (width: number): Batch => ({
  width,
  values: new Float64Array(together * width),
  slopes: new Float64Array(together),
  curvatures: new Float64Array(together),
});

/** Adds the answers to the gradient and the Hessian from `sums[from]` on. */
function addBatch(batch: Batch, sums: Float64Array, from: number): void {
  const { width, values, slopes, curvatures } = batch;
  const s0 = slopes[0] as number;
  const s1 = slopes[1] as number;
  const s2 = slopes[2] as number;
  const s3 = slopes[3] as number;
  const c0 = curvatures[0] as number;
  const c1 = curvatures[1] as number;
  const c2 = curvatures[2] as number;
  const c3 = curvatures[3] as number;
  let at = from + width;
  for (let i = 0; i < width; i++) {
    const v0 = values[i] as number;
    const v1 = values[width + i] as number;
    const v2 = values[2 * width + i] as number;
    const v3 = values[3 * width + i] as number;
    sums[from + i] = (sums[from + i] as number) + s0 * v0 + s1 * v1 + s2 * v2 + s3 * v3;
    const w0 = c0 * v0;
    const w1 = c1 * v1;
    const w2 = c2 * v2;
    const w3 = c3 * v3;
    for (let j = 0; j <= i; j++) {
      sums[at] =
        (sums[at] as number) +
        w0 * (values[j] as number) +
        w1 * (values[width + j] as number) +
        w2 * (values[2 * width + j] as number) +
        w3 * (values[3 * width + j] as number);
      at++;
    }
  }
}
