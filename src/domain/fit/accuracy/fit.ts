/** Fits the forecast of the share of right answers on what came after the moments of training learners. */
import { accuracyConstants as constants } from '../../base/params.js';
import { clamp } from '../../base/probability.js';
import type { AccuracyTrace } from '../../prediction/accuracy-figures.js';
import {
  type AccuracyModel,
  expectedShare,
  type HorizonUnit,
  startAccuracy,
} from '../../prediction/accuracy-model.js';
import { calibrate } from './calibrate.js';
import type { AccuracyCase } from './cases.js';
import { type FittedExpected, fitExpected, type Observation } from './fit-expected.js';
import { fitVariance } from './fit-variance.js';

/** A case with what the learner's state told at its moment. */
export interface TracedCase extends AccuracyCase {
  readonly trace: AccuracyTrace;
}

const { fit: rules } = constants;

/**
 * The same cases in the same order give the same figures.
 *
 * @returns null for too few cases or learners
 */
export function fitAccuracy(cases: readonly TracedCase[], unit: HorizonUnit): AccuracyModel | null {
  const learners = new Set(cases.map(({ learner }) => learner));
  if (learners.size < rules.minLearners || cases.length < rules.minCases) return null;
  const mean = meanShare(cases);
  const base = { ...startAccuracy, unit, learners: learners.size, cases: cases.length, mean };
  const fitted = fitExpected(base, cases, learners.size);
  const model = { ...base, ...fitted };
  return { ...model, ...fitSpread(model, observe(base, fitted, cases, learners)) };
}

function meanShare(cases: readonly TracedCase[]): number {
  const sum = cases.reduce((total, { right, answers }) => total + right / answers, 0);
  return clamp(sum / cases.length, constants.shareBounds.low, constants.shareBounds.high);
}

function fitSpread(model: AccuracyModel, observed: readonly Observation[]) {
  const variance = fitVariance(observed);
  return { variance, ...calibrate({ ...model, variance }, observed) };
}

/**
 * Every case against the share expected by a fit on other learners: on its own learners a fit looks better than it
 * is, the more so the fewer they are.
 */
function observe(
  base: AccuracyModel,
  start: FittedExpected,
  cases: readonly TracedCase[],
  learners: ReadonlySet<number>,
): Observation[] {
  const parts = new Map([...learners].map((learner, i) => [learner, i % rules.parts]));
  const models = Array.from({ length: rules.parts }, (_, part) => {
    const others = cases.filter(({ learner }) => parts.get(learner) !== part);
    return { ...base, ...fitExpected({ ...base, ...start }, others, learners.size * (1 - 1 / rules.parts)) };
  });
  return cases.map((one) => {
    const model = models[parts.get(one.learner) as number] as AccuracyModel;
    return { ...one, expected: expectedShare(model, one.trace, one.horizon) };
  });
}
