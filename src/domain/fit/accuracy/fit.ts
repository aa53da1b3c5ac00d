import { accuracyConstants as constants } from '../../base/accuracy-constants.js';
import type { AnswerLog, Learners } from '../../base/answer-log.js';
import { clamp, sigmoid } from '../../base/common.js';
import { type BoxedQuadratic, descend, mirror, newQuadratic } from '../../base/descend.js';
import { fitModel } from '../../base/fit-constants.js';
import { shareLogLoss } from '../../base/metrics.js';
import {
  type AccuracyModel,
  accuracyInterval,
  chanceVariance,
  expectedShare,
  figureCount,
  figuresOf,
  forecastAccuracy,
  type HorizonUnit,
  memoryOf,
  stabilised,
  startAccuracy,
  sumOfParts,
  variancePartCount,
  varianceParts,
} from '../../prediction/accuracy-model.js';
import type { FeatureStore } from '../prediction/replay.js';
import { calibrate } from './calibrate.js';
import { leastPast, type Observation, type TracedCase, tracedCases, unitOf } from './cases.js';

const { fit: rules } = constants;

/** Cases with the outcomes known at a moment (Unix milliseconds). */
export interface Past {
  readonly at: number;
  readonly cases: readonly TracedCase[];
}

/** @param pasts ascending @returns null for too few cases or learners */
export function fitAccuracy(
  cases: readonly TracedCase[],
  unit: HorizonUnit,
  pasts: readonly Past[] = [],
): AccuracyModel | null {
  const learners = new Set(cases.map(({ learner }) => learner));
  if (learners.size < rules.minLearners || cases.length < rules.minCases) return null;
  const sum = cases.reduce((total, { right, answers }) => total + right / answers, 0);
  const mean = clamp(sum / cases.length, constants.shareBounds.low, constants.shareBounds.high);
  const base = { ...startAccuracy, unit, learners: learners.size, cases: cases.length, mean };
  const rows = rowsOf(cases, mean);
  const model = { ...base, ...fitExpected(base, rows, learners.size) };
  const observed = observe(model, cases, rows, learners, pasts);
  const variance = fitVariance(observed);
  return { ...model, variance, surface: calibrate({ ...model, variance }, observed) };
}

/** Predicts each case from earlier answers, else from other learners. */
function observe(
  start: AccuracyModel,
  cases: readonly TracedCase[],
  rows: CaseRows,
  learners: ReadonlySet<number>,
  pasts: readonly Past[],
): Observation[] {
  const parts = new Map([...learners].map((learner, i) => [learner, i % rules.parts]));
  const partOf = cases.map(({ learner }) => parts.get(learner) as number);
  const fitOn = (known: CaseRows, people: number): AccuracyModel => ({
    ...start,
    ...fitExpected(start, known, people),
  });
  const byPart = Array.from({ length: rules.parts }, (_, part) => {
    const people = [...parts.values()].filter((own) => own !== part).length;
    return fitOn({ ...rows, takesPart: (i) => partOf[i] !== part }, people);
  });
  const byPast = pasts
    .filter((past) => past.cases.length >= rules.minCases)
    .map((past) => {
      const people = new Set(past.cases.map(({ learner }) => learner)).size;
      return { at: past.at, model: fitOn(rowsOf(past.cases, start.mean), people) };
    });
  return cases.map((one, i) => {
    const past = byPast.findLast(({ at }) => at <= one.at);
    const model = past?.model ?? (byPart[partOf[i] as number] as AccuracyModel);
    return { ...one, expected: expectedShare(model, one, one.span) };
  });
}

const judgedLevel = 0.8;

export function judgeAccuracy(model: AccuracyModel, cases: readonly TracedCase[]) {
  let loss = 0;
  let inside = 0;
  for (const one of cases) {
    const { span, answers, right } = one;
    const share = right / answers;
    const forecast = forecastAccuracy(model, one, span);
    const { low, high } = accuracyInterval(model, forecast, answers, judgedLevel);
    loss += shareLogLoss(forecast.expected, share);
    if (low <= share && share <= high) inside++;
  }
  return { logLoss: loss / cases.length, coverage80: inside / cases.length };
}

type AccuracyQuality = ReturnType<typeof judgeAccuracy>;

/** `reason` is empty if published. */
export function fitJudgedAccuracy(
  log: AnswerLog,
  training: Learners,
  heldOut: Learners,
  store: FeatureStore,
  current: AccuracyModel,
) {
  const unit = unitOf(log);
  const known = tracedCases(log, unit, training, store);
  const pasts = pastTimes(known, unit).map((at) => ({
    at,
    cases: tracedCases(log, unit, training, store, at),
  }));
  const fitted = fitAccuracy(known, unit, pasts);
  const cases = tracedCases(log, unit, heldOut, store);
  // The initial model is valid for both units.
  const inForce = current.cases === 0 ? { ...current, unit } : current;
  const before = cases.length > 0 && inForce.unit === unit ? judgeAccuracy(inForce, cases) : null;
  const after = cases.length > 0 && fitted !== null ? judgeAccuracy(fitted, cases) : null;
  const reason = fitted === null ? 'too few learners with enough answers' : worseBy(before, after);
  return {
    model: reason === '' && fitted !== null ? fitted : inForce,
    report: {
      cases: cases.length,
      learners: new Set(cases.map(({ learner }) => learner)).size,
      oldLogLoss: before?.logLoss ?? null,
      newLogLoss: after?.logLoss ?? null,
      oldCoverage80: before?.coverage80 ?? null,
      newCoverage80: after?.coverage80 ?? null,
      published: reason === '',
      reason,
    },
  };
}

export type AccuracyReport = ReturnType<typeof fitJudgedAccuracy>['report'];

/** Empty if the fit is no worse, or not comparable. NaN is worse. */
function worseBy(before: AccuracyQuality | null, after: AccuracyQuality | null): string {
  if (after === null || before === null) return '';
  if (!(after.logLoss - before.logLoss <= fitModel.heldOutSlack)) return 'held-out log loss is worse';
  const miscalibration = ({ coverage80 }: AccuracyQuality): number =>
    Math.max(0, Math.abs(coverage80 - judgedLevel) - constants.coverageSlack);
  return miscalibration(after) <= miscalibration(before) ? '' : 'held-out coverage is worse';
}

export function pastTimes(cases: readonly TracedCase[], unit: HorizonUnit): number[] {
  if (unit === 'answers') return [];
  const times = Float64Array.from(cases, ({ at }) => at).sort();
  const first = times[0] ?? 0;
  return rules.pasts
    .map((share) => times[Math.floor(share * times.length)] ?? first)
    .filter((time) => time - first >= leastPast);
}

type Expected = Pick<AccuracyModel, 'bias' | 'trend' | 'lasting' | 'fading'>;

/** Bias and trend may have any sign. Their ridge matters on logs without information. */
const free = 2;
const freeRidge = 0.01;
const width = free + 2 * figureCount;
const maxSteps = 25;
const tolerance = 1e-6;
const descent = { maxRounds: 2000, tolerance: 1e-9, ridge: 1e-9 };

interface CaseRows {
  readonly rows: Float64Array;
  readonly shares: Float64Array;
  readonly takesPart?: (place: number) => boolean;
}

function rowsOf(cases: readonly TracedCase[], mean: number): CaseRows {
  const rows = new Float64Array(cases.length * width);
  for (const [i, one] of cases.entries()) rows.set(rowOf(one, mean), i * width);
  return { rows, shares: Float64Array.from(cases, ({ right, answers }) => right / answers) };
}

/** Newton's method with a ridge to the initial model. */
function fitExpected(
  from: AccuracyModel,
  { rows, shares, takesPart = () => true }: CaseRows,
  learners: number,
): Expected {
  const ridge = constants.fit.ridgeLearners / learners;
  let at = coefficientsOf(from);
  for (let step = 0; step < maxSteps; step++) {
    const problem = newQuadratic(width);
    for (const [i, share] of shares.entries()) if (takesPart(i)) addCase(problem, rows, i * width, share, at);
    const next = newtonStep(problem, at, ridge);
    const moved = Math.max(...next.map((value, j) => Math.abs(value - (at[j] as number))));
    at = next;
    if (moved < tolerance) break;
  }
  const [bias = 0, trend = 0, ...weights] = at;
  return { bias, trend, lasting: weights.slice(0, figureCount), fading: weights.slice(figureCount) };
}

function rowOf({ trace, span }: TracedCase, mean: number): number[] {
  const figures = figuresOf(trace, mean);
  const memory = memoryOf(span);
  return [1, Math.log1p(span), ...figures, ...figures.map((figure) => memory * figure)];
}

const coefficientsOf = (model: Expected): number[] =>
  [model.bias, model.trend].concat(model.lasting, model.fading);
const centres = coefficientsOf(startAccuracy);

function addCase(
  { gradient, hessian }: BoxedQuadratic,
  rows: Float64Array,
  from: number,
  share: number,
  at: readonly number[],
): void {
  let logOdds = 0;
  for (let j = 0; j < width; j++) logOdds += (at[j] as number) * (rows[from + j] as number);
  const expected = sigmoid(logOdds);
  const curvature = expected * (1 - expected);
  for (let j = 0; j < width; j++) {
    const figure = rows[from + j] as number;
    gradient[j] = (gradient[j] as number) + (expected - share) * figure;
    const scaled = curvature * figure;
    for (let k = 0; k <= j; k++)
      hessian[j * width + k] = (hessian[j * width + k] as number) + scaled * (rows[from + k] as number);
  }
}

function newtonStep(problem: BoxedQuadratic, at: readonly number[], ridge: number): number[] {
  const { gradient, hessian, solution, low } = problem;
  for (let j = 0; j < width; j++) {
    const own = (j < free ? freeRidge * ridge : ridge) * (hessian[j * width + j] as number);
    gradient[j] = (gradient[j] as number) + own * ((at[j] as number) - (centres[j] as number));
    hessian[j * width + j] = (hessian[j * width + j] as number) + own;
  }
  mirror(hessian, width);
  solution.set(at);
  low.fill(Number.NEGATIVE_INFINITY, 0, free);
  return lowestPoint(problem);
}

function lowestPoint(problem: BoxedQuadratic): number[] {
  problem.high.fill(Number.POSITIVE_INFINITY);
  descend(problem, descent);
  return [...problem.solution];
}

const varianceRounds = 3;
const startVariance = 0.02;

function fitVariance(observed: readonly Observation[]): number[] {
  const moments = observed.map(({ expected, history, span, answers, right }) => ({
    parts: varianceParts(expected, history, span),
    chance: chanceVariance(answers),
    square: (stabilised(right / answers) - stabilised(expected)) ** 2,
  }));
  const size = variancePartCount;
  let variance: number[] = new Array(size).fill(startVariance / size);
  for (let round = 0; round < varianceRounds; round++) {
    // The gradient is taken at 0, where the search starts.
    const problem = newQuadratic(size);
    const { gradient, hessian } = problem;
    for (const { parts, chance, square } of moments) {
      const weight = (sumOfParts(variance, parts) + chance) ** -2;
      for (let j = 0; j < size; j++) {
        const part = weight * (parts[j] as number);
        gradient[j] = (gradient[j] as number) - part * (square - chance);
        for (let k = 0; k <= j; k++)
          hessian[j * size + k] = (hessian[j * size + k] as number) + part * (parts[k] as number);
      }
    }
    mirror(hessian, size);
    variance = lowestPoint(problem);
  }
  return variance;
}
