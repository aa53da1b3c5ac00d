/** Terms of a skill with other skills, and of an item with previous items. */
import { courseModel } from '../base/prediction-constants.js';
import { beforeColumn, type FeatureRow, skillsBefore } from './features.js';

export interface Related {
  /** Ascending. */
  readonly keys: ArrayLike<number>;
  /** `skillPairWidth` per other skill, or one per item. */
  readonly terms: ArrayLike<number>;
}

export const unrelated: Related = { keys: [], terms: [] };

/** Terms of a pair: practised before, moving average on it, course. */
export const skillPairTerms = 3;

export function findKey(keys: ArrayLike<number>, key: number): number {
  let [low, high] = [0, keys.length - 1];
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const found = keys[middle] as number;
    if (found === key) return middle;
    if (found < key) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

export const fadings = Float64Array.from({ length: skillsBefore }, (_, i) => courseModel.fading ** i);

/** The term may have any sign, because answers on the skill itself do not change it. */
export function beforeTerm({ keys, terms }: Related, rows: FeatureRow, from: number): number {
  if (keys.length === 0) return 0;
  let sum = 0;
  for (let i = 0; i < skillsBefore; i++) {
    const key = rows[from + beforeColumn + i] as number;
    if (key === 0) break;
    const place = findKey(keys, key);
    if (place < 0) continue;
    const form = (rows[from + beforeColumn + skillsBefore + i] as number) - courseModel.usualForm;
    const at = place * skillPairTerms;
    sum += (fadings[i] as number) * ((terms[at] as number) + (terms[at + 1] as number) * form);
  }
  return sum;
}

export function courseTerm({ keys, terms }: Related, course: number): number {
  const place = course === 0 ? -1 : findKey(keys, course);
  return place < 0 ? 0 : (terms[place * skillPairTerms + 2] as number);
}
