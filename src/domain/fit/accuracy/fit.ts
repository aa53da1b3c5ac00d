/** Fits the forecast of the share of right answers on what came after the moments of training learners. */
import type { AnswerLog, Learners } from '../../base/answer-log.js';
import { clamp } from '../../base/common.js';
import { shareLogLoss } from '../../base/metrics.js';
import { accuracyConstants as constants, fitModel } from '../../base/params.js';
import {
  type AccuracyModel,
  accuracyInterval,
  expectedShare,
  forecastAccuracy,
  type HorizonUnit,
  startAccuracy,
} from '../../prediction/accuracy-model.js';
import type { FeatureStore } from '../prediction/replay.js';
import { calibrate } from './calibrate.js';
import { type Observation, type TracedCase, tracedCases, unitOf } from './cases.js';
import { fitExpected, fitVariance } from './regress.js';

const { fit: rules } = constants;

/** The same cases in the same order give the same figures. @returns null for too few cases or learners */
export function fitAccuracy(cases: readonly TracedCase[], unit: HorizonUnit): AccuracyModel | null {
  const learners = new Set(cases.map(({ learner }) => learner));
  if (learners.size < rules.minLearners || cases.length < rules.minCases) return null;
  const sum = cases.reduce((total, { right, answers }) => total + right / answers, 0);
  const mean = clamp(sum / cases.length, constants.shareBounds.low, constants.shareBounds.high);
  const base = { ...startAccuracy, unit, learners: learners.size, cases: cases.length, mean };
  const model = { ...base, ...fitExpected(base, cases, learners.size) };
  const observed = observe(model, cases, learners);
  const variance = fitVariance(observed);
  return { ...model, variance, ...calibrate({ ...model, variance }, observed) };
}

/**
 * Every case against the share expected by a fit on other learners: on its own learners a fit looks better than it
 * is, the more so the fewer they are. @param start fitted on all; where the fits on parts begin
 */
function observe(
  start: AccuracyModel,
  cases: readonly TracedCase[],
  learners: ReadonlySet<number>,
): Observation[] {
  const parts = new Map([...learners].map((learner, i) => [learner, i % rules.parts]));
  const models = Array.from({ length: rules.parts }, (_, part): AccuracyModel => {
    const others = cases.filter(({ learner }) => parts.get(learner) !== part);
    return { ...start, ...fitExpected(start, others, learners.size * (1 - 1 / rules.parts)) };
  });
  return cases.map((one) => {
    const model = models[parts.get(one.learner) ?? 0] ?? start;
    return { ...one, expected: expectedShare(model, one.trace, one.horizon) };
  });
}

const judgedLevel = 0.8;

type AccuracyQuality = ReturnType<typeof judgeAccuracy>;

/**
 * How well forecasts do on learners whom the fit did not see: mean log loss of single answers, each case counted once,
 * and the share of cases inside the 80 % interval. @param cases at least one, with horizons in the model's unit
 */
export function judgeAccuracy(model: AccuracyModel, cases: readonly TracedCase[]) {
  let loss = 0;
  let inside = 0;
  for (const { trace, horizon, answers, right } of cases) {
    const share = right / answers;
    const forecast = forecastAccuracy(model, { trace }, horizon);
    const { low, high } = accuracyInterval(model, forecast, answers, judgedLevel);
    loss += shareLogLoss(forecast.expected, share);
    if (low <= share && share <= high) inside++;
  }
  return { logLoss: loss / cases.length, coverage80: inside / cases.length };
}

const miscalibration = ({ coverage80 }: AccuracyQuality): number =>
  Math.max(0, Math.abs(coverage80 - judgedLevel) - constants.coverageSlack);

/**
 * Fits on the training learners, and judges by the others. @param store as the served probability was replayed
 * @returns what is to be served, the new figures or those in force; and what `judgeAccuracy` says of both on the
 *   held-out learners, null where not measured
 */
export function fitJudgedAccuracy(
  log: AnswerLog,
  training: Learners,
  heldOut: Learners,
  store: FeatureStore,
  current: AccuracyModel,
) {
  const unit = unitOf(log);
  const fitted = fitAccuracy(tracedCases(log, unit, training, store), unit);
  const cases = tracedCases(log, unit, heldOut, store);
  // Figures from before a fit are rough enough for either unit.
  const inForce = current.cases === 0 ? { ...current, unit } : current;
  const before = cases.length > 0 && inForce.unit === unit ? judgeAccuracy(inForce, cases) : null;
  const after = cases.length > 0 && fitted !== null ? judgeAccuracy(fitted, cases) : null;
  const reason = heldBackBecause(fitted, before, after);
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

/**
 * Why new figures are not published; empty where they are: without held-out cases, or where the figures in force are
 * in another unit, nothing speaks against them. A loss that is no number counts as worse.
 */
function heldBackBecause(
  fitted: AccuracyModel | null,
  before: AccuracyQuality | null,
  after: AccuracyQuality | null,
): string {
  if (fitted === null) return 'too few learners with enough answers';
  if (after === null || before === null) return '';
  if (!(after.logLoss - before.logLoss <= fitModel.heldOutSlack)) return 'held-out log loss is worse';
  return miscalibration(after) <= miscalibration(before) ? '' : 'held-out coverage is worse';
}
