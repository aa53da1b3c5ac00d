/** Terms of a skill with each previous skill, and with the moving average on it. */
import { sigmoid } from '../../base/common.js';
import {
  type BoxedQuadratic,
  createQuadratic,
  minimizeQuadratic,
  mirrorTriangle,
} from '../../base/coordinate-descent.js';
import { courseConstants, predictionConstants } from '../../base/prediction-constants.js';
import { formColumn, previousSkillColumn, previousSkillCount, rowWidth } from '../../prediction/features.js';
import { recencyWeights, skillPairWidth } from '../../prediction/related-terms.js';
import type { FitMemory } from './fit-memory.js';

const { fit: rules } = predictionConstants;
const descent = { maxRounds: 20, tolerance: 1e-3, ridge: 0 };

const pairTermKinds = [
  { term: 0, ridge: rules.beforeRidge },
  { term: 1, ridge: rules.formRidge },
] as const;

type PairTermKind = (typeof pairTermKinds)[number];

interface SkillPairs {
  readonly start: number;
  readonly count: number;
  readonly indices: Uint32Array;
}

const createEntries = () => ({
  count: 0,
  pairs: new Uint32Array(previousSkillCount),
  values: new Float64Array(previousSkillCount),
});

type Entries = ReturnType<typeof createEntries>;

/** Skills share no answers, so ranges may run in parallel. */
export function stepPreviousSkills(memory: FitMemory, from: number, to: number): void {
  const { pairs, blocks } = memory;
  const { order, starts } = blocks.skills;
  /** Pair + 1 by skill number; 0 if none. */
  const pairOf = new Uint32Array(starts.length);
  for (let skill = from; skill < to; skill++) {
    const start = pairs.starts[skill] as number;
    const count = (pairs.starts[skill + 1] as number) - start;
    if (count === 0) continue;
    const skillPairs = { start, count, indices: order.subarray(starts[skill], starts[skill + 1]) };
    const keys = pairs.keys.subarray(start, start + count);
    for (const [pair, key] of keys.entries()) pairOf[key] = pair + 1;
    for (const kind of pairTermKinds) stepPairTerms(memory, skillPairs, pairOf, kind);
    for (const key of keys) pairOf[key] = 0;
  }
}

function stepPairTerms(
  memory: FitMemory,
  skillPairs: SkillPairs,
  pairOf: Uint32Array,
  kind: PairTermKind,
): void {
  const { rows, logits } = memory;
  const { indices } = skillPairs;
  const problem = createQuadratic(skillPairs.count);
  const entries = createEntries();
  for (let i = 0; i < indices.length; i++) {
    const index = indices[i] as number;
    readEntries(entries, rows, index, pairOf, kind);
    if (entries.count > 0) addAnswer(problem, entries, memory, index);
  }
  const moves = solvePairTerms(memory, skillPairs, kind, problem);
  for (let i = 0; i < indices.length; i++) {
    const index = indices[i] as number;
    readEntries(entries, rows, index, pairOf, kind);
    let sum = logits[index] as number;
    for (let a = 0; a < entries.count; a++)
      sum += (entries.values[a] as number) * (moves[entries.pairs[a] as number] as number);
    logits[index] = sum;
  }
}

function readEntries(
  entries: Entries,
  rows: Float32Array,
  index: number,
  pairOf: Uint32Array,
  { term }: PairTermKind,
): void {
  const row = index * rowWidth;
  let count = 0;
  for (let i = 0; i < previousSkillCount; i++) {
    const key = rows[row + previousSkillColumn + i] as number;
    if (key === 0) break;
    const pair = pairOf[key] as number;
    if (pair === 0) continue;
    const form = term === 0 ? 1 : (rows[row + formColumn + i] as number) - courseConstants.usualForm;
    entries.pairs[count] = pair - 1;
    entries.values[count++] = (recencyWeights[i] as number) * form;
  }
  entries.count = count;
}

function addAnswer(
  { gradient, hessian }: BoxedQuadratic,
  { count, pairs, values }: Entries,
  { logits, correct }: FitMemory,
  index: number,
): void {
  const width = gradient.length;
  const p = sigmoid(logits[index] as number);
  const slope = p - (correct[index] as number);
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

function solvePairTerms(
  { pairs: { terms } }: FitMemory,
  { start, count }: SkillPairs,
  { term, ridge }: PairTermKind,
  problem: BoxedQuadratic,
): Float64Array {
  const { gradient, hessian, low, high, solution } = problem;
  mirrorTriangle(hessian, count);
  const at = (pair: number): number => (start + pair) * skillPairWidth + term;
  for (let pair = 0; pair < count; pair++) {
    const before = terms[at(pair)] as number;
    solution[pair] = before;
    gradient[pair] = (gradient[pair] as number) + ridge * before;
    hessian[pair * count + pair] = (hessian[pair * count + pair] as number) + ridge;
    low[pair] = before - rules.maxPairStep;
    high[pair] = before + rules.maxPairStep;
  }
  minimizeQuadratic(problem, descent);
  return solution.map((value, pair) => {
    const before = terms[at(pair)] as number;
    terms[at(pair)] = value;
    // Read again, because the array rounds to single precision.
    return (terms[at(pair)] as number) - before;
  });
}
