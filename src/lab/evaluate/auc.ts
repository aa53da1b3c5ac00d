/** How sure an area under the ROC curve is. */

export interface AucEstimate {
  /** See `Metrics.auc`; null where all answers are alike. */
  readonly auc: number | null;
  /** Half the width of the 95 % interval over learners; null with the area, or for a single learner. */
  readonly margin: number | null;
}

/**
 * Area under the ROC curve with its standard error over learners, whose answers are not independent of one another
 * (Obuchowski 1997, Biometrics 53: 567, in the linear form with one term a learner).
 *
 * @param correct 1 for a right answer, 0 for a wrong one
 * @param predictions of each
 * @param learner of each, numbers from 0
 */
export function estimateAuc(
  correct: Uint8Array,
  predictions: Float64Array,
  learner: Uint32Array,
): AucEstimate {
  const right = predictions.filter((_, i) => correct[i] === 1).sort();
  const wrong = predictions.filter((_, i) => correct[i] !== 1).sort();
  if (right.length === 0 || wrong.length === 0) return { auc: null, margin: null };
  const placements = predictions.map((p, i) =>
    correct[i] === 1 ? shareBelow(wrong, p) : 1 - shareBelow(right, p),
  );
  const auc = placements.reduce((sum, value, i) => sum + (correct[i] === 1 ? value : 0), 0) / right.length;
  const influence = new Map<number, number>();
  placements.forEach((value, i) => {
    const own = (value - auc) / (correct[i] === 1 ? right.length : wrong.length);
    influence.set(learner[i] as number, (influence.get(learner[i] as number) ?? 0) + own);
  });
  const learners = influence.size;
  const squares = [...influence.values()].reduce((sum, value) => sum + value ** 2, 0);
  const margin = learners < 2 ? null : 1.96 * Math.sqrt((learners / (learners - 1)) * squares);
  return { auc, margin };
}

/** Share of the sorted values below `value`, ties counted half. */
function shareBelow(sorted: Float64Array, value: number): number {
  return (
    (firstIndex(sorted, (one) => one >= value) + firstIndex(sorted, (one) => one > value)) / 2 / sorted.length
  );
}

/** Index of the first value for which `holds`; it holds for all after it. */
function firstIndex(sorted: Float64Array, holds: (value: number) => boolean): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(sorted[middle] as number)) high = middle;
    else low = middle + 1;
  }
  return low;
}
