/** Terms of a skill with each previous skill, and with the moving average on it. */
import { sigmoid } from '../../base/common.js';
import { type BoxedQuadratic, descend, mirror, newQuadratic } from '../../base/descend.js';
import { courseModel, predictionModel } from '../../base/prediction-constants.js';
import { beforeColumn, formColumn, rowWidth, skillsBefore } from '../../prediction/features.js';
import { fadings, skillPairTerms } from '../../prediction/related.js';
import type { FitMemory } from './blocks.js';

const { fit: rules } = predictionModel;
const descent = { maxRounds: 20, tolerance: 1e-3, ridge: 0 };

const kinds = [
  { term: 0, ridge: rules.beforeRidge },
  { term: 1, ridge: rules.formRidge },
] as const;

type Kind = (typeof kinds)[number];

interface OwnPairs {
  readonly start: number;
  readonly count: number;
  readonly places: Uint32Array;
}

const newEntries = () => ({
  count: 0,
  pairs: new Uint32Array(skillsBefore),
  values: new Float64Array(skillsBefore),
});

type Entries = ReturnType<typeof newEntries>;

/** Skills share no answers, so ranges may run in parallel. */
export function stepBefore(memory: FitMemory, from: number, to: number): void {
  const { pairs, blocks } = memory;
  const { order, starts } = blocks.skills;
  /** Pair + 1 by skill number; 0 if none. */
  const pairOf = new Uint32Array(starts.length);
  for (let skill = from; skill < to; skill++) {
    const start = pairs.starts[skill] as number;
    const count = (pairs.starts[skill + 1] as number) - start;
    if (count === 0) continue;
    const own = { start, count, places: order.subarray(starts[skill], starts[skill + 1]) };
    const keys = pairs.keys.subarray(start, start + count);
    for (const [pair, key] of keys.entries()) pairOf[key] = pair + 1;
    for (const kind of kinds) stepKind(memory, own, pairOf, kind);
    for (const key of keys) pairOf[key] = 0;
  }
}

function stepKind(memory: FitMemory, own: OwnPairs, pairOf: Uint32Array, kind: Kind): void {
  const { rows, logits } = memory;
  const { places } = own;
  const problem = newQuadratic(own.count);
  const entries = newEntries();
  for (let i = 0; i < places.length; i++) {
    const place = places[i] as number;
    readEntries(entries, rows, place, pairOf, kind);
    if (entries.count > 0) addAnswer(problem, entries, memory, place);
  }
  const moves = solve(memory, own, kind, problem);
  for (let i = 0; i < places.length; i++) {
    const place = places[i] as number;
    readEntries(entries, rows, place, pairOf, kind);
    let sum = logits[place] as number;
    for (let a = 0; a < entries.count; a++)
      sum += (entries.values[a] as number) * (moves[entries.pairs[a] as number] as number);
    logits[place] = sum;
  }
}

function readEntries(
  entries: Entries,
  rows: Float32Array,
  place: number,
  pairOf: Uint32Array,
  { term }: Kind,
): void {
  const row = place * rowWidth;
  let count = 0;
  for (let i = 0; i < skillsBefore; i++) {
    const key = rows[row + beforeColumn + i] as number;
    if (key === 0) break;
    const pair = pairOf[key] as number;
    if (pair === 0) continue;
    const form = term === 0 ? 1 : (rows[row + formColumn + i] as number) - courseModel.usualForm;
    entries.pairs[count] = pair - 1;
    entries.values[count++] = (fadings[i] as number) * form;
  }
  entries.count = count;
}

function addAnswer(
  { gradient, hessian }: BoxedQuadratic,
  { count, pairs, values }: Entries,
  { logits, correct }: FitMemory,
  place: number,
): void {
  const width = gradient.length;
  const p = sigmoid(logits[place] as number);
  const slope = p - (correct[place] as number);
  for (let a = 0; a < count; a++) {
    const [at, value] = [pairs[a] as number, values[a] as number];
    gradient[at] = (gradient[at] as number) + slope * value;
    const weighted = p * (1 - p) * value;
    for (let b = 0; b <= a; b++) {
      const other = pairs[b] as number;
      const cell = at > other ? at * width + other : other * width + at;
      hessian[cell] = (hessian[cell] as number) + weighted * (values[b] as number);
    }
  }
}

function solve(
  { pairs: { terms } }: FitMemory,
  { start, count }: OwnPairs,
  { term, ridge }: Kind,
  problem: BoxedQuadratic,
): Float64Array {
  const { gradient, hessian, low, high, solution } = problem;
  mirror(hessian, count);
  const at = (pair: number): number => (start + pair) * skillPairTerms + term;
  for (let pair = 0; pair < count; pair++) {
    const before = terms[at(pair)] as number;
    solution[pair] = before;
    gradient[pair] = (gradient[pair] as number) + ridge * before;
    hessian[pair * count + pair] = (hessian[pair * count + pair] as number) + ridge;
    low[pair] = before - rules.maxPairStep;
    high[pair] = before + rules.maxPairStep;
  }
  descend(problem, descent);
  return solution.map((value, pair) => {
    const before = terms[at(pair)] as number;
    terms[at(pair)] = value;
    return (terms[at(pair)] as number) - before;
  });
}
