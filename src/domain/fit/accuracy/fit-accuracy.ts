import { accuracyConstants as constants } from '../../base/accuracy-constants.js';
import type { AnswerLog, LearnerSelection } from '../../base/answer-log.js';
import { clamp, sigmoid } from '../../base/common.js';
import {
  type BoxedQuadratic,
  createQuadratic,
  minimizeQuadratic,
  mirrorTriangle,
} from '../../base/coordinate-descent.js';
import { fitConstants } from '../../base/fit-constants.js';
import { computeShareLoss } from '../../base/prediction-metrics.js';
import {
  type AccuracyModel,
  computeAccuracyInterval,
  computeChanceVariance,
  computeExpectedShare,
  computeFigures,
  computeMemory,
  computeVarianceParts,
  figureCount,
  forecastAccuracy,
  type HorizonUnit,
  initialAccuracyModel,
  stabiliseShare,
  sumVarianceParts,
  variancePartCount,
} from '../../prediction/accuracy-model.js';
import type { FeatureStore } from '../prediction/replay-log.js';
import {
  collectTracedCases,
  detectHorizonUnit,
  minPastMs,
  type Observation,
  type TracedCase,
} from './accuracy-cases.js';
import { calibrateSurface } from './calibrate-surface.js';

const { fit: rules } = constants;

/** Cases with the outcomes known at a moment (Unix milliseconds). */
export interface PastCases {
  readonly at: number;
  readonly cases: readonly TracedCase[];
}

/** @param pasts ascending @returns null for too few cases or learners */
export function fitAccuracy(
  cases: readonly TracedCase[],
  unit: HorizonUnit,
  pasts: readonly PastCases[] = [],
): AccuracyModel | null {
  const learners = new Set(cases.map(({ learner }) => learner));
  if (learners.size < rules.minLearners || cases.length < rules.minCases) return null;
  const sum = cases.reduce((total, { right, answers }) => total + right / answers, 0);
  const mean = clamp(sum / cases.length, constants.shareBounds.low, constants.shareBounds.high);
  const base = { ...initialAccuracyModel, unit, learners: learners.size, cases: cases.length, mean };
  const rows = buildRows(cases, mean);
  const model = { ...base, ...fitExpected(base, rows, learners.size) };
  const observed = predictCases(model, cases, rows, learners, pasts);
  const variance = fitVariance(observed);
  return { ...model, variance, surface: calibrateSurface({ ...model, variance }, observed) };
}

/** Predicts each case from earlier answers, else from other learners. */
function predictCases(
  start: AccuracyModel,
  cases: readonly TracedCase[],
  rows: CaseRows,
  learners: ReadonlySet<number>,
  pasts: readonly PastCases[],
): Observation[] {
  const parts = new Map([...learners].map((learner, i) => [learner, i % rules.parts]));
  const partOf = cases.map(({ learner }) => parts.get(learner) as number);
  const fitOn = (knownRows: CaseRows, learnerCount: number): AccuracyModel => ({
    ...start,
    ...fitExpected(start, knownRows, learnerCount),
  });
  const byPart = Array.from({ length: rules.parts }, (_, part) => {
    const learnerCount = [...parts.values()].filter((assignedPart) => assignedPart !== part).length;
    return fitOn({ ...rows, takesPart: (i) => partOf[i] !== part }, learnerCount);
  });
  const byPast = pasts
    .filter((past) => past.cases.length >= rules.minCases)
    .map((past) => {
      const learnerCount = new Set(past.cases.map(({ learner }) => learner)).size;
      return { at: past.at, model: fitOn(buildRows(past.cases, start.mean), learnerCount) };
    });
  return cases.map((one, i) => {
    const past = byPast.findLast(({ at }) => at <= one.at);
    const model = past?.model ?? (byPart[partOf[i] as number] as AccuracyModel);
    return { ...one, expected: computeExpectedShare(model, one, one.span) };
  });
}

const coverageLevel = 0.8;

export function measureAccuracy(model: AccuracyModel, cases: readonly TracedCase[]) {
  let loss = 0;
  let inside = 0;
  for (const one of cases) {
    const { span, answers, right } = one;
    const share = right / answers;
    const forecast = forecastAccuracy(model, one, span);
    const { low, high } = computeAccuracyInterval(model, forecast, answers, coverageLevel);
    loss += computeShareLoss(forecast.expected, share);
    if (low <= share && share <= high) inside++;
  }
  return { logLoss: loss / cases.length, coverage80: inside / cases.length };
}

type AccuracyQuality = ReturnType<typeof measureAccuracy>;

/** `reason` is empty if published. */
export function fitAccuracyChecked(
  log: AnswerLog,
  training: LearnerSelection,
  heldOut: LearnerSelection,
  store: FeatureStore,
  current: AccuracyModel,
) {
  const unit = detectHorizonUnit(log);
  const trainingCases = collectTracedCases(log, unit, training, store);
  const pasts = selectPastTimes(trainingCases, unit).map((at) => ({
    at,
    cases: collectTracedCases(log, unit, training, store, at),
  }));
  const fitted = fitAccuracy(trainingCases, unit, pasts);
  const cases = collectTracedCases(log, unit, heldOut, store);
  // The initial model is valid for both units.
  const active = current.cases === 0 ? { ...current, unit } : current;
  const before = cases.length > 0 && active.unit === unit ? measureAccuracy(active, cases) : null;
  const after = cases.length > 0 && fitted !== null ? measureAccuracy(fitted, cases) : null;
  const reason = fitted === null ? 'too few learners with enough answers' : findRegression(before, after);
  return {
    model: reason === '' && fitted !== null ? fitted : active,
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

export type AccuracyReport = ReturnType<typeof fitAccuracyChecked>['report'];

/** Empty if the fit is no worse, or not comparable. NaN is worse. */
function findRegression(before: AccuracyQuality | null, after: AccuracyQuality | null): string {
  if (after === null || before === null) return '';
  if (!(after.logLoss - before.logLoss <= fitConstants.heldOutSlack)) return 'held-out log loss is worse';
  const miscalibration = ({ coverage80 }: AccuracyQuality): number =>
    Math.max(0, Math.abs(coverage80 - coverageLevel) - constants.coverageSlack);
  return miscalibration(after) <= miscalibration(before) ? '' : 'held-out coverage is worse';
}

export function selectPastTimes(cases: readonly TracedCase[], unit: HorizonUnit): number[] {
  if (unit === 'answers') return [];
  const times = Float64Array.from(cases, ({ at }) => at).sort();
  const first = times[0] ?? 0;
  return rules.pasts
    .map((share) => times[Math.floor(share * times.length)] ?? first)
    .filter((time) => time - first >= minPastMs);
}

type ExpectedCoefficients = Pick<AccuracyModel, 'bias' | 'trend' | 'lasting' | 'fading'>;

/** Bias and trend may have any sign. Their ridge matters on logs without information. */
const freeCoefficients = 2;
const freeRidge = 0.01;
const width = freeCoefficients + 2 * figureCount;
const maxSteps = 25;
const tolerance = 1e-6;
const descent = { maxRounds: 2000, tolerance: 1e-9, ridge: 1e-9 };

interface CaseRows {
  readonly rows: Float64Array;
  readonly shares: Float64Array;
  readonly takesPart?: (place: number) => boolean;
}

function buildRows(cases: readonly TracedCase[], mean: number): CaseRows {
  const rows = new Float64Array(cases.length * width);
  for (const [i, one] of cases.entries()) rows.set(buildRow(one, mean), i * width);
  return { rows, shares: Float64Array.from(cases, ({ right, answers }) => right / answers) };
}

/** Newton's method with a ridge to the initial model. */
function fitExpected(
  from: AccuracyModel,
  { rows, shares, takesPart = () => true }: CaseRows,
  learners: number,
): ExpectedCoefficients {
  const ridge = constants.fit.ridgeLearners / learners;
  let at = toCoefficients(from);
  for (let step = 0; step < maxSteps; step++) {
    const problem = createQuadratic(width);
    for (const [i, share] of shares.entries()) if (takesPart(i)) addCase(problem, rows, i * width, share, at);
    const next = newtonStep(problem, at, ridge);
    const moved = Math.max(...next.map((value, j) => Math.abs(value - (at[j] as number))));
    at = next;
    if (moved < tolerance) break;
  }
  const [bias = 0, trend = 0, ...weights] = at;
  return { bias, trend, lasting: weights.slice(0, figureCount), fading: weights.slice(figureCount) };
}

function buildRow({ trace, span }: TracedCase, mean: number): number[] {
  const figures = computeFigures(trace, mean);
  const memory = computeMemory(span);
  return [1, Math.log1p(span), ...figures, ...figures.map((figure) => memory * figure)];
}

const toCoefficients = (model: ExpectedCoefficients): number[] =>
  [model.bias, model.trend].concat(model.lasting, model.fading);
const centres = toCoefficients(initialAccuracyModel);

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
    const scaledRidge =
      (j < freeCoefficients ? freeRidge * ridge : ridge) * (hessian[j * width + j] as number);
    gradient[j] = (gradient[j] as number) + scaledRidge * ((at[j] as number) - (centres[j] as number));
    hessian[j * width + j] = (hessian[j * width + j] as number) + scaledRidge;
  }
  mirrorTriangle(hessian, width);
  solution.set(at);
  low.fill(Number.NEGATIVE_INFINITY, 0, freeCoefficients);
  return minimizeBounded(problem);
}

/** Lower bounds are 0 unless the caller sets them: weights and variance parts are never negative. */
function minimizeBounded(problem: BoxedQuadratic): number[] {
  problem.high.fill(Number.POSITIVE_INFINITY);
  minimizeQuadratic(problem, descent);
  return [...problem.solution];
}

const varianceRounds = 3;
const startVariance = 0.02;

function fitVariance(observed: readonly Observation[]): number[] {
  const moments = observed.map(({ expected, history, span, answers, right }) => ({
    parts: computeVarianceParts(expected, history, span),
    chance: computeChanceVariance(answers),
    square: (stabiliseShare(right / answers) - stabiliseShare(expected)) ** 2,
  }));
  const size = variancePartCount;
  let variance: number[] = new Array(size).fill(startVariance / size);
  for (let round = 0; round < varianceRounds; round++) {
    // The gradient is taken at 0, where the search starts.
    const problem = createQuadratic(size);
    const { gradient, hessian } = problem;
    for (const { parts, chance, square } of moments) {
      const weight = (sumVarianceParts(variance, parts) + chance) ** -2;
      for (let j = 0; j < size; j++) {
        const part = weight * (parts[j] as number);
        gradient[j] = (gradient[j] as number) - part * (square - chance);
        for (let k = 0; k <= j; k++)
          hessian[j * size + k] = (hessian[j * size + k] as number) + part * (parts[k] as number);
      }
    }
    mirrorTriangle(hessian, size);
    variance = minimizeBounded(problem);
  }
  return variance;
}
