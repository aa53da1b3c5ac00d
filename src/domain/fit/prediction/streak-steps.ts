/** Streak terms are sums of steps with fixed signs, so a correct answer lowers no prediction. */
import { type AnswerLog, sharedArrays } from '../../base/answer-log.js';
import { sigmoid } from '../../base/common.js';
import { createQuadratic, minimizeQuadratic } from '../../base/coordinate-descent.js';
import { predictionConstants } from '../../base/prediction-constants.js';
import { rowWidth, streakColumn } from '../../prediction/features.js';
import { streakCount } from '../../prediction/prediction-model.js';
import { maxStreak } from '../../tracing/traces.js';

const { fit: rules } = predictionConstants;
const descent = { maxRounds: 200, tolerance: 1e-5, ridge: 0 };

export const streakSteps = 2 * maxStreak;
/** Steps below `maxStreak` lead from 0 down, the others up. */
const includesStep = (step: number, streakIndex: number): boolean =>
  step < maxStreak ? streakIndex <= step : streakIndex > step;

export const createStreaks = (skills: number) => ({
  slopes: sharedArrays.doubles(skills * streakCount),
  curvatures: sharedArrays.doubles(skills * streakCount),
  moves: sharedArrays.doubles(skills * streakCount),
  shared: sharedArrays.doubles(streakSteps),
  own: sharedArrays.doubles(skills * streakSteps),
});

/** The part of the fit's memory that the streak terms read and write. */
interface StreakMemory extends Pick<AnswerLog, 'correct'> {
  readonly logits: Float64Array;
  readonly rows: Float32Array;
  readonly blocks: { readonly skills: { readonly order: Uint32Array; readonly starts: Uint32Array } };
  readonly streaks: ReturnType<typeof createStreaks>;
}

export function sumStreaks(
  { logits, correct, rows, blocks, streaks }: StreakMemory,
  from: number,
  to: number,
): void {
  const { order, starts } = blocks.skills;
  const { slopes, curvatures } = streaks;
  slopes.fill(0, from * streakCount, to * streakCount);
  curvatures.fill(0, from * streakCount, to * streakCount);
  for (let skill = from; skill < to; skill++)
    for (let i = starts[skill] as number; i < (starts[skill + 1] as number); i++) {
      const index = order[i] as number;
      const p = sigmoid(logits[index] as number);
      const at = skill * streakCount + maxStreak + (rows[index * rowWidth + streakColumn] as number);
      slopes[at] = (slopes[at] as number) + (correct[index] as number) - p;
      curvatures[at] = (curvatures[at] as number) + p * (1 - p);
    }
}

export function solveStreaks({ streaks }: Pick<StreakMemory, 'streaks'>): void {
  const { slopes, curvatures, moves } = streaks;
  const sumOver = (sums: Float64Array): Float64Array => {
    const all = new Float64Array(streakCount);
    for (let i = 0; i < sums.length; i++)
      all[i % streakCount] = (all[i % streakCount] as number) + (sums[i] as number);
    return all;
  };
  const zero = new Float64Array(streakSteps);
  const moved = solveStreakSteps(
    sumOver(slopes),
    sumOver(curvatures),
    streaks.shared,
    zero,
    rules.ridge * rules.streakVariance,
  );
  for (let i = 0; i < slopes.length; i++) {
    const move = moved[i % streakCount] as number;
    slopes[i] = (slopes[i] as number) - (curvatures[i] as number) * move;
    moves[i] = move;
  }
}

export function moveStreaks(memory: StreakMemory, from: number, to: number): void {
  const { logits, rows, blocks, streaks } = memory;
  const { order, starts } = blocks.skills;
  for (let skill = from; skill < to; skill++) {
    const at = skill * streakCount;
    const skillSteps = streaks.own.subarray(skill * streakSteps, (skill + 1) * streakSteps);
    const moves = streaks.moves.subarray(at, at + streakCount);
    const moved = solveStreakSteps(
      streaks.slopes.subarray(at, at + streakCount),
      streaks.curvatures.subarray(at, at + streakCount),
      skillSteps,
      streaks.shared,
      rules.slopeRidge * rules.streakVariance,
    );
    for (let i = 0; i < streakCount; i++) moves[i] = (moves[i] as number) + (moved[i] as number);
    for (let i = starts[skill] as number; i < (starts[skill + 1] as number); i++) {
      const index = order[i] as number;
      const streak = maxStreak + (rows[index * rowWidth + streakColumn] as number);
      logits[index] = (logits[index] as number) + (moves[streak] as number);
    }
  }
}

/** Preserves the sign of term + base. @returns moves by streak */
function solveStreakSteps(
  slopes: Float64Array,
  curvatures: Float64Array,
  terms: Float64Array,
  base: Float64Array,
  ridge: number,
): Float64Array {
  const problem = createQuadratic(streakSteps);
  const { gradient, hessian, low, high, solution } = problem;
  for (let a = 0; a < streakSteps; a++) {
    const term = terms[a] as number;
    gradient[a] = ridge * term;
    hessian[a * streakSteps + a] = ridge;
    solution[a] = term;
    const zero = -(base[a] as number);
    low[a] = a < maxStreak ? -10 : zero;
    high[a] = a < maxStreak ? zero : 10;
    for (let streakIndex = 0; streakIndex < streakCount; streakIndex++) {
      if (!includesStep(a, streakIndex)) continue;
      gradient[a] = (gradient[a] as number) - (slopes[streakIndex] as number);
      for (let b = 0; b < streakSteps; b++)
        if (includesStep(b, streakIndex))
          hessian[a * streakSteps + b] =
            (hessian[a * streakSteps + b] as number) + (curvatures[streakIndex] as number);
    }
  }
  minimizeQuadratic(problem, descent);
  const moves = new Float64Array(streakSteps);
  for (let a = 0; a < streakSteps; a++) {
    moves[a] = (solution[a] as number) - (terms[a] as number);
    terms[a] = solution[a] as number;
  }
  return sumStreakSteps(moves);
}

export const sumStreakSteps = (steps: ArrayLike<number>): Float64Array =>
  Float64Array.from({ length: streakCount }, (_, streakIndex) => {
    let sum = 0;
    for (let step = 0; step < streakSteps; step++)
      if (includesStep(step, streakIndex)) sum += steps[step] as number;
    return sum;
  });
