import { sigmoid } from '../../base/probability.js';
import {
  type Block,
  type BlockName,
  type FitMemory,
  type FitStep,
  rangeAnswers,
  sumsPerMember,
} from './blocks.js';

/**
 * Sums up the log likelihood to second order by the terms of a block's members, over the ranges `from` to `to` - 1
 * of the answers in the block's order. Ranges may run side by side: a range's members are next to each other, so the
 * sums of member m in range r stand in a place m + r of their own. Where the step is not fresh, the Hessian stays as
 * an earlier pass left it.
 */
export function sumRanges(
  { blocks, logits, correct }: FitMemory,
  { name, fresh }: FitStep,
  from: number,
  to: number,
): void {
  const block = blocks[name];
  const { width, means, sums, order, rows, stride, isPacked } = block;
  const values = new Float64Array(width).fill(1);
  eachPart(block, from, to, (member, range, start, end) => {
    const sum = (member + range) * sumsPerMember(width);
    sums.fill(0, sum, sum + (fresh ? sumsPerMember(width) : width));
    for (let i = start; i < end; i++) {
      const place = order[i] as number;
      const row = (isPacked ? i : place) * stride - 1;
      const p = sigmoid(logits[place] as number);
      const slope = (correct[place] as number) - p;
      sums[sum] = (sums[sum] as number) + slope;
      for (let j = 1; j < width; j++) {
        const value = (rows[row + j] as number) - (means[j] as number);
        values[j] = value;
        sums[sum + j] = (sums[sum + j] as number) + slope * value;
      }
      if (fresh) addProducts(sums, sum + width, values, p * (1 - p));
    }
  });
}

/** Adds the lower triangle of an answer's part of the Hessian to `sums` from `at` on. */
function addProducts(sums: Float64Array, at: number, values: Float64Array, curvature: number): void {
  let next = at;
  for (let j = 0; j < values.length; j++) {
    const weight = curvature * (values[j] as number);
    for (let k = 0; k <= j; k++) {
      sums[next] = (sums[next] as number) + weight * (values[k] as number);
      next++;
    }
  }
}

/** Adds the block's last moves to the log-odds of the answers in the ranges `from` to `to` - 1. */
export function moveRanges({ blocks, logits }: FitMemory, name: BlockName, from: number, to: number): void {
  const block = blocks[name];
  const { width, means, moves, order, rows, stride, isPacked } = block;
  eachPart(block, from, to, (member, _, start, end) => {
    const term = member * width;
    for (let i = start; i < end; i++) {
      const place = order[i] as number;
      const row = (isPacked ? i : place) * stride - 1;
      let sum = (logits[place] as number) + (moves[term] as number);
      for (let j = 1; j < width; j++) {
        sum += (moves[term + j] as number) * ((rows[row + j] as number) - (means[j] as number));
      }
      logits[place] = sum;
    }
  });
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
