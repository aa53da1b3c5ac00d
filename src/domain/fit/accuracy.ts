/**
 * The part of a fit that forecasts shares of right answers: its cases come from the replay that the served
 * probability was fitted on, so that each learner's figures are those that serving had at the moment.
 */

import type { AnswerLog, LearnerFilter } from '../base/answer-log.js';
import { accuracyConstants as constants, fitModel } from '../base/params.js';
import type { AccuracyTrace } from '../prediction/accuracy-figures.js';
import type { AccuracyModel, HorizonUnit } from '../prediction/accuracy-model.js';
import { columnOf, rowWidth } from '../prediction/features.js';
import { accuracyCases, unitOf } from './accuracy/cases.js';
import { fitAccuracy, type TracedCase } from './accuracy/fit.js';
import { type AccuracyQuality, judgeAccuracy, miscalibration } from './accuracy/judge.js';
import type { FeatureStore } from './prediction/replay.js';
import type { FitReport } from './report.js';
import type { Training } from './served.js';

export interface AccuracyFit {
  /** What is to be served: the new figures, or those in force. */
  readonly model: AccuracyModel;
  readonly report: FitReport['accuracy'];
}

/** Fits on the training learners, and judges by the others. */
export function fitAccuracyStage(
  log: AnswerLog,
  training: Training,
  store: FeatureStore,
  current: AccuracyModel,
): AccuracyFit {
  const unit = unitOf(log);
  const fitted = fitAccuracy(casesFor(log, training, 1, unit, store), unit);
  const heldOut = casesFor(log, training, 0, unit, store);
  const learners = new Set(heldOut.map(({ learner }) => learner)).size;
  const isJudged = heldOut.length > 0;
  const inForce = inUnit(current, unit);
  const before = isJudged && inForce.unit === unit ? judgeAccuracy(inForce, heldOut) : null;
  const after = isJudged && fitted !== null ? judgeAccuracy(fitted, heldOut) : null;
  const reason = heldBackBecause(fitted, before, after);
  return {
    model: reason === '' && fitted !== null ? fitted : inForce,
    report: {
      cases: heldOut.length,
      learners,
      oldLogLoss: before?.logLoss ?? null,
      newLogLoss: after?.logLoss ?? null,
      oldCoverage80: before?.coverage80 ?? null,
      newCoverage80: after?.coverage80 ?? null,
      published: reason === '',
      reason,
    },
  };
}

/** Figures from before a fit are rough enough for either unit. */
const inUnit = (model: AccuracyModel, unit: HorizonUnit): AccuracyModel =>
  model.cases === 0 ? { ...model, unit } : model;

/**
 * Why new figures are not published; empty where they are. Without held-out cases, or where the figures in force are
 * in another unit, they are published without judgement: nothing speaks against them. A loss that is no number counts
 * as worse.
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

/** @param role of the learners: 1 for those who train, 0 for the others */
function casesFor(
  log: AnswerLog,
  training: Training,
  role: 0 | 1,
  unit: HorizonUnit,
  store: FeatureStore,
): TracedCase[] {
  const traces = new Map<number, AccuracyTrace>();
  return accuracyCases(log, unit, evenly(training, role)).map((one) => {
    const place = (log.starts[one.learner] as number) + one.history;
    const trace = traces.get(place) ?? traceAt(log, one.learner, place, store);
    traces.set(place, trace);
    return { ...one, trace };
  });
}

/** Of many learners some, evenly over all. */
function evenly(training: Training, role: 0 | 1): LearnerFilter {
  const all = training.reduce((count, own) => count + (own === role ? 1 : 0), 0);
  const every = Math.ceil(all / constants.fit.maxLearners);
  let met = 0;
  const taken = Uint8Array.from(training, (own) => (own === role && met++ % every === 0 ? 1 : 0));
  return (learner) => taken[learner] === 1;
}

const columns = {
  ability: columnOf('ability'),
  recent: columnOf('recentAnswers'),
  slow: columnOf('slowAnswers'),
} as const;

/** The figures that the answer at this place was predicted from. */
function traceAt(
  { starts, correct }: AnswerLog,
  learner: number,
  place: number,
  { rows }: FeatureStore,
): AccuracyTrace {
  const start = starts[learner] as number;
  const right = correct.subarray(start, place).reduce((sum, value) => sum + value, 0);
  const figure = (column: number): number => rows[place * rowWidth + column] as number;
  return {
    ability: figure(columns.ability),
    recent: figure(columns.recent),
    slow: figure(columns.slow),
    right,
    wrong: place - start - right,
  };
}
