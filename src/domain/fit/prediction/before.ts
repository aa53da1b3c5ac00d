/** What was practised just before: terms of a skill with each skill before it, and with the learner's form on that. */
import { sigmoid } from '../../base/common.js';
import { descend, mirror, newQuadratic } from '../../base/descend.js';
import { courseModel, predictionModel } from '../../base/params.js';
import { beforeColumn, formColumn, rowWidth, skillsBefore } from '../../prediction/features.js';
import { fadings, skillPairTerms } from '../../prediction/related.js';
import type { FitMemory } from './blocks.js';

const { fit: rules } = predictionModel;
const descent = { maxRounds: 20, tolerance: 1e-3, ridge: 0 };

/**
 * A Newton step of both kinds of terms, one after the other, for the skills `from` to `to` - 1. No other skill's answers
 * depend on them, so that ranges may run side by side; a row has few values, and one skill's Hessian is held at a time.
 */
export function stepBefore(memory: FitMemory, from: number, to: number): void {
  const local = new Uint32Array(memory.blocks.skills.starts.length);
  for (let skill = from; skill < to; skill++) {
    const start = memory.pairs.starts[skill] as number;
    const count = (memory.pairs.starts[skill + 1] as number) - start;
    if (count === 0) continue;
    const keys = memory.pairs.keys.subarray(start, start + count);
    for (const [i, key] of keys.entries()) local[key] = i + 1;
    for (const kind of [0, 1] as const) stepKind(memory, skill, start, count, local, kind);
    for (const key of keys) local[key] = 0;
  }
}

/** @param local place of each skill among the `count` pairs of this one, from 1; 0: none @param kind 1: by the form */
function stepKind(
  { logits, correct, rows, blocks, pairs }: FitMemory,
  skill: number,
  start: number,
  count: number,
  local: Uint32Array,
  kind: 0 | 1,
): void {
  const { order, starts } = blocks.skills;
  const { terms } = pairs;
  const problem = newQuadratic(count);
  const { gradient, hessian, low, high, solution } = problem;
  const found = new Uint32Array(skillsBefore);
  const values = new Float64Array(skillsBefore);
  const read = (place: number): number => readEntries(rows, place, local, kind, found, values);
  const [first, end] = [starts[skill] as number, starts[skill + 1] as number];
  for (let i = first; i < end; i++) {
    const place = order[i] as number;
    const p = sigmoid(logits[place] as number);
    const slope = p - (correct[place] as number);
    const entries = read(place);
    for (let a = 0; a < entries; a++) {
      const [at, value] = [found[a] as number, values[a] as number];
      gradient[at] = (gradient[at] as number) + slope * value;
      const weighted = p * (1 - p) * value;
      for (let b = 0; b <= a; b++) {
        const other = found[b] as number;
        const cell = at > other ? at * count + other : other * count + at;
        hessian[cell] = (hessian[cell] as number) + weighted * (values[b] as number);
      }
    }
  }
  mirror(hessian, count);
  const ridge = kind === 0 ? rules.beforeRidge : rules.formRidge;
  const before = new Float64Array(count);
  for (let j = 0; j < count; j++) {
    const term = terms[(start + j) * skillPairTerms + kind] as number;
    before[j] = term;
    solution[j] = term;
    gradient[j] = (gradient[j] as number) + ridge * term;
    hessian[j * count + j] = (hessian[j * count + j] as number) + ridge;
    low[j] = term - rules.maxPairStep;
    high[j] = term + rules.maxPairStep;
  }
  descend(problem, descent);
  for (let j = 0; j < count; j++) {
    terms[(start + j) * skillPairTerms + kind] = solution[j] as number;
    before[j] = (terms[(start + j) * skillPairTerms + kind] as number) - (before[j] as number);
  }
  for (let i = first; i < end; i++) {
    const place = order[i] as number;
    const entries = read(place);
    let sum = logits[place] as number;
    for (let a = 0; a < entries; a++) sum += (values[a] as number) * (before[found[a] as number] as number);
    logits[place] = sum;
  }
}

function readEntries(
  rows: Float32Array,
  place: number,
  local: Uint32Array,
  kind: 0 | 1,
  found: Uint32Array,
  values: Float64Array,
): number {
  const row = place * rowWidth;
  let entries = 0;
  for (let i = 0; i < skillsBefore; i++) {
    const key = rows[row + beforeColumn + i] as number;
    if (key === 0) break;
    const at = local[key] as number;
    if (at === 0) continue;
    found[entries] = at - 1;
    const fading = fadings[i] as number;
    values[entries++] =
      kind === 0 ? fading : fading * ((rows[row + formColumn + i] as number) - courseModel.usualForm);
  }
  return entries;
}
