const maxRounds = 2000;
const tolerance = 1e-9;
/** Keeps a coefficient in place that nothing tells. */
const tinyRidge = 1e-9;

/**
 * Lowest point of a quadratic whose later coefficients may not be negative, by coordinate descent.
 *
 * @param hessian symmetric, by rows
 * @param gradient at `start`
 * @param free so many coefficients at the beginning may have any sign
 */
export function descend(
  hessian: Float64Array,
  gradient: Float64Array,
  start: readonly number[],
  free: number,
): number[] {
  const width = start.length;
  const slope = gradient.slice();
  const solution = [...start];
  for (let round = 0; round < maxRounds; round++) {
    let largest = 0;
    for (let j = 0; j < width; j++) {
      const old = solution[j] as number;
      const aim = old - (slope[j] as number) / ((hessian[j * width + j] as number) + tinyRidge);
      const move = (j < free ? aim : Math.max(0, aim)) - old;
      solution[j] = old + move;
      for (let i = 0; i < width; i++)
        slope[i] = (slope[i] as number) + (hessian[j * width + i] as number) * move;
      largest = Math.max(largest, Math.abs(move));
    }
    if (largest < tolerance) break;
  }
  return solution;
}
