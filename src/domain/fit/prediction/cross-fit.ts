/** Finds the optional parts and the scale of log-odds that help unseen learners. */
import {
  type AnswerLog,
  collectAnswerIndices,
  copyRanges,
  iterateLearnerRanges,
  type LearnerSelection,
  selectLearners,
  sharedArrays,
} from '../../base/answer-log.js';
import { clamp, sigmoid } from '../../base/common.js';
import { predictionConstants } from '../../base/prediction-constants.js';
import { computeAnswerLoss } from '../../base/prediction-metrics.js';
import { previousItemColumn, rowWidth } from '../../prediction/features.js';
import { logOddsWithoutItem } from '../../prediction/prediction-model.js';
import { createFitMemory, type FitMemory, setRetriesAllowed } from './fit-memory.js';
import { buildPrediction, type Calibration } from './fitted-prediction.js';
import { buildPartSteps, buildSweepSteps, type FitStep, type PartName } from './model-parts.js';
import { moveRanges, runStep } from './newton-steps.js';
import { type FeatureStore, readRelatedSkills, readTerms } from './replay-log.js';

const { crossFit: rules, calibration } = predictionConstants.fit;

export const identityCalibration: Calibration = { shift: 0, spread: 1 };

/** Renumbers items, so that arrays by item stay small. */
export interface CrossSample {
  readonly log: AnswerLog;
  readonly rows: Float32Array;
}

export interface CrossFold {
  readonly memory: FitMemory;
  readonly unseenLearners: LearnerSelection;
}

export function sampleCrossLog(log: AnswerLog, training: LearnerSelection, store: FeatureStore): CrossSample {
  const share = Math.min(1, rules.answers / Math.max(1, collectAnswerIndices(log, training).length));
  let taken = 0;
  const learners = selectLearners(log, (learner) => {
    if (training[learner] !== 1) return false;
    taken += share;
    return Math.floor(taken) > Math.floor(taken - share);
  });
  const indices = collectAnswerIndices(log, learners);
  const rows = sharedArrays.floats(rowWidth * indices.length);
  for (const [i, index] of indices.entries())
    rows.set(store.rows.subarray(index * rowWidth, (index + 1) * rowWidth), i * rowWidth);
  return renumberItems({ log: copyRanges(log, [...iterateLearnerRanges(log, learners)]), rows });
}

function renumberItems({ log, rows }: CrossSample): CrossSample {
  const numbers = new Uint32Array(log.items + 1);
  let items = 0;
  for (const item of log.item) if (item > 0 && numbers[item] === 0) numbers[item] = ++items;
  for (const [index, item] of log.item.entries()) {
    log.item[index] = numbers[item] as number;
    const before = index * rowWidth + previousItemColumn;
    rows[before] = numbers[rows[before] as number] as number;
  }
  return { log: { ...log, items }, rows };
}

export function createCrossFold({ log, rows }: CrossSample, itemVariance: number, fold: number): CrossFold {
  const isInFold = (learner: number): boolean => learner % rules.parts === fold;
  const memory = createFitMemory(
    log,
    selectLearners(log, (learner) => !isInFold(learner)),
    { rows },
    itemVariance,
  );
  moveRanges(memory, 'weights', 0, memory.ranges);
  return { memory, unseenLearners: selectLearners(log, isInFold) };
}

/** Adds the last of `parts`. Writes the unseen learners' `logits`. @returns their loss */
export function extendCrossFold(
  { log, rows }: CrossSample,
  { memory, unseenLearners }: CrossFold,
  parts: readonly PartName[],
  logits: Float64Array,
): number {
  setRetriesAllowed(memory, parts.includes('retries'));
  for (const step of buildCrossSteps(parts.at(-1))) runStep(memory, step);
  const fitted = buildPrediction(memory, 1, identityCalibration);
  const { items } = memory.blocks;
  const related = readRelatedSkills(log, fitted);
  let loss = 0;
  for (const index of collectAnswerIndices(log, unseenLearners)) {
    const terms = readTerms(log, index, fitted, related);
    const itemIntercept = items.terms[(log.item[index] as number) * items.width] as number;
    const eta = itemIntercept + logOddsWithoutItem(fitted.model, terms, rows, index * rowWidth);
    logits[index] = eta;
    loss += computeAnswerLoss(sigmoid(eta), log.correct[index] as number);
  }
  return loss;
}

const buildCrossSteps = (added: PartName | undefined): FitStep[] =>
  added === undefined
    ? Array.from({ length: rules.sweeps }, (_, sweep) =>
        buildSweepSteps([], sweep < rules.freshSweeps),
      ).flat()
    : [...buildPartSteps(added, true), ...buildSweepSteps([], false), ...buildPartSteps(added, false)];

/** Newton's method for sigmoid(a + b eta), with a ridge of b to 1. Full steps may diverge. */
export function fitCalibration({ correct }: AnswerLog, logits: Float64Array): Calibration {
  const { ridge, low, high, maxStep } = calibration;
  let [shift, spread] = [0, 1];
  for (let round = 0; round < 8; round++) {
    let [g0, g1, h00, h01, h11] = [0, ridge * (1 - spread), 1e-6, 0, ridge];
    for (const [index, eta] of logits.entries()) {
      const p = sigmoid(shift + spread * eta);
      const d = (correct[index] as number) - p;
      const w = p * (1 - p);
      g0 += d;
      g1 += d * eta;
      h00 += w;
      h01 += w * eta;
      h11 += w * eta * eta;
    }
    const det = h00 * h11 - h01 * h01;
    shift += clamp((h11 * g0 - h01 * g1) / det, -maxStep, maxStep);
    spread = clamp(spread + clamp((h00 * g1 - h01 * g0) / det, -maxStep, maxStep), low, high);
  }
  return { shift, spread };
}

type TermArray = Float32Array | Float64Array;

export const saveTerms = (fold: CrossFold): TermArray[] => listTermArrays(fold).map(copyTermArray);

export function restoreTerms(fold: CrossFold, saved: readonly TermArray[]): void {
  for (const [i, figures] of listTermArrays(fold).entries()) figures.set(saved[i] as TermArray);
}

const listTermArrays = ({ memory: { blocks, pairs, streaks, logits } }: CrossFold): TermArray[] => [
  ...Object.values(blocks).map(({ terms }) => terms),
  pairs.terms,
  streaks.shared,
  streaks.own,
  logits,
];

function copyTermArray(figures: TermArray): TermArray {
  const copy =
    figures instanceof Float32Array
      ? sharedArrays.floats(figures.length)
      : sharedArrays.doubles(figures.length);
  copy.set(figures);
  return copy;
}
