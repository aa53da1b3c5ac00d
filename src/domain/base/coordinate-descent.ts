export const createQuadratic = (width: number) => ({
  gradient: new Float64Array(width),
  /** Symmetric, stored by rows. */
  hessian: new Float64Array(width * width),
  low: new Float64Array(width),
  high: new Float64Array(width),
  solution: new Float64Array(width),
});

export type BoxedQuadratic = ReturnType<typeof createQuadratic>;

interface DescentOptions {
  readonly maxRounds: number;
  readonly tolerance: number;
  /** Added to the curvature, which may be 0. */
  readonly ridge: number;
}

export function minimizeQuadratic(
  problem: BoxedQuadratic,
  { maxRounds, tolerance, ridge }: DescentOptions,
): void {
  const { gradient, hessian, low, high, solution } = problem;
  const width = solution.length;
  for (let round = 0; round < maxRounds; round++) {
    let largest = 0;
    for (let j = 0; j < width; j++) {
      const old = solution[j] as number;
      const aim = old - (gradient[j] as number) / ((hessian[j * width + j] as number) + ridge);
      const next = Math.min(Math.max(aim, low[j] as number), high[j] as number);
      const move = next - old;
      if (move === 0) continue;
      solution[j] = next;
      for (let i = 0; i < width; i++)
        gradient[i] = (gradient[i] as number) + (hessian[j * width + i] as number) * move;
      largest = Math.max(largest, Math.abs(move));
    }
    if (largest < tolerance) return;
  }
}

export function mirrorTriangle(matrix: Float64Array, width: number): void {
  for (let i = 0; i < width; i++)
    for (let j = 0; j < i; j++) matrix[j * width + i] = matrix[i * width + j] as number;
}
