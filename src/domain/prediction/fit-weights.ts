import { predictionModel } from '../params.js';
import { sigmoid } from '../probability.js';
import { features, rowWidth } from './features.js';
import type { FitData } from './fit-data.js';

/** The weights of one fit in standardised units: the bias, then one per feature. */
export type Weights = Float64Array;

const size = features.length + 1;

/** Start of a fit: the bias of the overall share, the features' own start values. */
export function startWeights({ scales, places, correct }: FitData): Weights {
  let right = 1;
  for (const place of places) right += correct[place] as number;
  const weights = new Float64Array(size);
  weights[0] = Math.log(right / (places.length + 2 - right));
  for (const [column, { start }] of features.entries())
    weights[column + 1] = start / (scales[column] as number);
  return weights;
}

/** Adds what the weights say to the log-odds of every answer. */
export function addWeights(data: FitData, weights: Weights): void {
  const { logits, places } = data;
  const row = new Float64Array(size);
  for (let answer = 0; answer < places.length; answer++) {
    readRow(data, places[answer] as number, row);
    let sum = logits[answer] as number;
    for (let j = 0; j < size; j++) sum += (weights[j] as number) * (row[j] as number);
    logits[answer] = sum;
  }
}

/** 1 for the bias, then the standardised features. */
function readRow({ rows, means, scales }: FitData, place: number, row: Float64Array): void {
  const from = place * rowWidth;
  row[0] = 1;
  for (let j = 1; j < size; j++) {
    const value = rows[from + j - 1] as number;
    row[j] = (value - (means[j - 1] as number)) * (scales[j - 1] as number);
  }
}

/**
 * One Newton step of the weights, given all other terms: the log loss to second order plus the ridge towards the
 * start, lowered inside the box of signs.
 *
 * @param start centre of the ridge
 * @param frozen only the bias moves
 */
export function stepWeights(data: FitData, weights: Weights, start: Weights, frozen: boolean): void {
  const { gradient, hessian } = secondOrder(data);
  for (let j = 0; j < size; j++) {
    const ridge = j === 0 ? 0 : predictionModel.fit.ridge;
    hessian[j * size + j] = (hessian[j * size + j] as number) + ridge + tinyRidge;
    gradient[j] = (gradient[j] as number) + ridge * ((weights[j] as number) - (start[j] as number));
  }
  descend(hessian, gradient, weights, frozen ? 1 : size);
}

/** Keeps the bias's quadratic a quadratic where every answer is certain. */
const tinyRidge = 1e-6;

interface SecondOrder {
  readonly gradient: Float64Array;
  /** Symmetric, by rows. */
  readonly hessian: Float64Array;
}

/** Of the summed log loss by the weights. */
function secondOrder(data: FitData): SecondOrder {
  const { places, correct, logits } = data;
  const gradient = new Float64Array(size);
  const hessian = new Float64Array(size * size);
  const row = new Float64Array(size);
  for (let answer = 0; answer < places.length; answer++) {
    const place = places[answer] as number;
    readRow(data, place, row);
    const p = sigmoid(logits[answer] as number);
    addOuter(hessian, gradient, row, p - (correct[place] as number), p * (1 - p));
  }
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < i; j++) hessian[j * size + i] = hessian[i * size + j] as number;
  }
  return { gradient, hessian };
}

/** Lower triangle only. */
function addOuter(
  hessian: Float64Array,
  gradient: Float64Array,
  row: Float64Array,
  slope: number,
  curvature: number,
): void {
  for (let i = 0; i < size; i++) {
    const value = row[i] as number;
    gradient[i] = (gradient[i] as number) + slope * value;
    const scaled = curvature * value;
    const at = i * size;
    for (let j = 0; j <= i; j++) hessian[at + j] = (hessian[at + j] as number) + scaled * (row[j] as number);
  }
}

const maxRounds = 3000;
const tolerance = 1e-7;

/** Minimum of the quadratic inside the signs by coordinate descent, in place; the first `free` weights move. */
function descend(hessian: Float64Array, gradient: Float64Array, weights: Weights, free: number): void {
  for (let round = 0; round < maxRounds; round++) {
    let largest = 0;
    for (let j = 0; j < free; j++) {
      const old = weights[j] as number;
      const next = signed(old - (gradient[j] as number) / (hessian[j * size + j] as number), j);
      const move = next - old;
      if (move === 0) continue;
      weights[j] = next;
      for (let i = 0; i < size; i++) {
        gradient[i] = (gradient[i] as number) + (hessian[j * size + i] as number) * move;
      }
      largest = Math.max(largest, Math.abs(move));
    }
    if (largest < tolerance) return;
  }
}

function signed(weight: number, j: number): number {
  const sign = features[j - 1]?.sign ?? 0;
  return sign * weight < 0 ? 0 : weight;
}
