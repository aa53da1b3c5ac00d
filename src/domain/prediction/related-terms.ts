/** Terms of a skill with other skills, and of an item with previous items. */
import { courseConstants } from '../base/prediction-constants.js';
import { type FeatureRow, previousSkillColumn, previousSkillCount } from './features.js';

export interface RelatedTerms {
  /** Ascending. */
  readonly keys: ArrayLike<number>;
  /** `skillPairWidth` per other skill, or one per item. */
  readonly terms: ArrayLike<number>;
}

export const emptyRelatedTerms: RelatedTerms = { keys: [], terms: [] };

/** Terms of a pair: practised before, moving average on it, course. */
export const skillPairWidth = 3;

export function findKeyIndex(keys: ArrayLike<number>, key: number): number {
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

export const recencyWeights = Float64Array.from(
  { length: previousSkillCount },
  (_, i) => courseConstants.fading ** i,
);

/** The term may have any sign, because answers on the skill itself do not change it. */
export function sumPreviousSkills({ keys, terms }: RelatedTerms, rows: FeatureRow, from: number): number {
  if (keys.length === 0) return 0;
  let sum = 0;
  for (let i = 0; i < previousSkillCount; i++) {
    const key = rows[from + previousSkillColumn + i] as number;
    if (key === 0) break;
    const index = findKeyIndex(keys, key);
    if (index < 0) continue;
    const form =
      (rows[from + previousSkillColumn + previousSkillCount + i] as number) - courseConstants.usualForm;
    const at = index * skillPairWidth;
    sum += (recencyWeights[i] as number) * ((terms[at] as number) + (terms[at + 1] as number) * form);
  }
  return sum;
}

export function findCourseTerm({ keys, terms }: RelatedTerms, course: number): number {
  const index = course === 0 ? -1 : findKeyIndex(keys, course);
  return index < 0 ? 0 : (terms[index * skillPairWidth + 2] as number);
}
