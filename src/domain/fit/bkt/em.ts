import { clamp, logit, sigmoid } from '../../base/common.js';
import {
  type BktParameters,
  type FitBounds,
  fitModel,
  guessSlipMargin,
  type Range,
  wrongAnswerShare,
} from '../../base/params.js';
import { filterForward, odds, oddsRange, type SkillTree, smoothBackward, type Workspace } from './filter.js';

/** What a fit is held by: hard bounds, and the strengths of the pull to the prior means, each above 0. */
export interface FitRules {
  readonly bounds: FitBounds;
  readonly strengths: BktParameters;
  /** Relative gain of the penalised log likelihood at which a fit stops, and the most iterations. */
  readonly tolerance?: number;
  readonly maxIterations?: number;
}

export interface SkillEstimate {
  readonly parameters: BktParameters;
  /** Log likelihood plus the log density of the prior, up to a constant. */
  readonly objective: number;
  readonly iterations: number;
}

export const parametersBy = (of: (name: keyof BktParameters) => number): BktParameters => ({
  pInit: of('pInit'),
  pLearn: of('pLearn'),
  pGuess: of('pGuess'),
  pSlip: of('pSlip'),
});

/** Within the bounds, and nowhere degenerate: 1 - slip > guess by the margin, P* below its share of pInit. */
export function constrain(wanted: BktParameters, bounds: FitBounds): BktParameters {
  const guess = within(wanted.pGuess, bounds.pGuess);
  const slip = within(wanted.pSlip, bounds.pSlip);
  const excess = Math.max(0, guess + slip - (1 - guessSlipMargin)) / 2;
  const pGuess = guess - excess;
  const pSlip = slip - excess;
  const pInit = within(wanted.pInit, bounds.pInit);
  const most = (wrongAnswerShare * pInit * (1 - pSlip - pGuess)) / (1 - pGuess);
  return { pInit, pLearn: Math.min(within(wanted.pLearn, bounds.pLearn), most), pGuess, pSlip };
}

const within = (x: number, { low, high }: Range): number => clamp(x, low, high);

/**
 * Maximum a posteriori estimate of one skill's parameters by expectation maximisation, from one start. Keeps the
 * best it has seen: a step may lead down where P* bounds learning, where the truncation of difficulties moves with
 * guess and slip, and after long pauses, whose starting values a step takes for fixed. Halving such steps gained
 * nothing on real logs.
 */
export function fitSkill(
  tree: SkillTree,
  start: BktParameters,
  means: BktParameters,
  rules: FitRules,
  work: Workspace,
): SkillEstimate {
  const { bounds, strengths, tolerance = fitModel.tolerance, maxIterations = fitModel.maxIterations } = rules;
  const objectiveOf = (parameters: BktParameters): number => {
    let sum = filterForward(tree, parameters, work, { bounds });
    for (const name of ['pInit', 'pLearn', 'pGuess', 'pSlip'] as const) {
      const [p, mean] = [parameters[name], means[name]];
      sum += strengths[name] * (mean * Math.log(p) + (1 - mean) * Math.log(1 - p));
    }
    return sum;
  };
  /** One E-step and one M-step. The filter has run with these parameters, and its results are in the workspace. */
  const improve = (parameters: BktParameters): BktParameters => {
    const sums = smoothBackward(tree, parameters.pLearn, work);
    const pooled = (name: keyof BktParameters, hits: number, all: number): number =>
      (hits + means[name] * strengths[name]) / (all + strengths[name]);
    const emissions =
      tree.odds === null
        ? {
            pGuess: pooled('pGuess', sums.unknownRight, sums.unknown),
            pSlip: pooled('pSlip', sums.known - sums.knownRight, sums.known),
          }
        : shiftedEmissions(tree, tree.odds, parameters, means, rules, work.before);
    const pInit = pooled('pInit', sums.startsKnown, sums.starts);
    const pLearn = pooled('pLearn', sums.learned, sums.learned + sums.notLearned);
    return constrain({ pInit, pLearn, ...emissions }, bounds);
  };
  let best = constrain(start, bounds);
  let objective = objectiveOf(best);
  let iterations = 0;
  while (iterations < maxIterations) {
    const next = improve(best);
    const reached = objectiveOf(next);
    iterations++;
    const gain = reached - objective;
    if (gain > 0) {
      best = next;
      objective = reached;
    }
    if (gain <= tolerance * Math.abs(objective)) break;
  }
  return { parameters: best, objective, iterations };
}

/**
 * M-step of guess and slip with question difficulty: two logistic regressions on an intercept, the difficulty an
 * offset and the expected visits the weights; two Newton steps each. @param mastered sequences, by node
 */
function shiftedEmissions(
  { size, correct, through }: SkillTree,
  shifts: Float64Array,
  parameters: BktParameters,
  means: BktParameters,
  { bounds, strengths }: FitRules,
  mastered: Float64Array,
): { pGuess: number; pSlip: number } {
  const range = oddsRange(parameters, bounds);
  let { pGuess, pSlip } = parameters;
  for (let step = 0; step < 2; step++) {
    const [guessOdds, slipOdds] = [odds(pGuess), odds(pSlip)];
    let [guess, guessCurve, slip, slipCurve] = [0, 0, 0, 0];
    for (let node = 0; node < size; node++) {
      const shift = clamp(shifts[node] as number, range.low, range.high);
      const g = guessOdds / (guessOdds + shift);
      const s = (slipOdds * shift) / (1 + slipOdds * shift);
      const known = mastered[node] as number;
      const unknown = (through[node] as number) - known;
      const y = correct[node] as number;
      guess += unknown * (y - g);
      guessCurve += unknown * g * (1 - g);
      slip += known * (1 - y - s);
      slipCurve += known * s * (1 - s);
    }
    pGuess = newton(pGuess, guess, guessCurve, means.pGuess, strengths.pGuess);
    pSlip = newton(pSlip, slip, slipCurve, means.pSlip, strengths.pSlip);
  }
  return { pGuess, pSlip };
}

/** Logits. A longer Newton step starts too far from the optimum for its quadratic to hold. */
const longestStep = 1;

function newton(p: number, slope: number, curve: number, mean: number, strength: number): number {
  const step = (slope + strength * (mean - p)) / (curve + strength * p * (1 - p));
  return sigmoid(logit(p) + clamp(step, -longestStep, longestStep));
}
