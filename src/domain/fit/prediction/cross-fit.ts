/** Finds the optional parts and the scale of log-odds that help unseen learners. */
import {
  type AnswerLog,
  type Learners,
  learnersWhere,
  logOfPlaces,
  placesByLearner,
  placesOf,
  shared,
} from '../../base/answer-log.js';
import { clamp, sigmoid } from '../../base/common.js';
import { answerLoss } from '../../base/metrics.js';
import { predictionModel } from '../../base/prediction-constants.js';
import { itemBeforeColumn, rowWidth } from '../../prediction/features.js';
import { logOddsWithoutItem } from '../../prediction/model.js';
import { allowRetries, type FitMemory, newFitMemory } from './blocks.js';
import { type Calibration, fittedPrediction } from './fitted.js';
import { type FitStep, type PartName, partSteps, sweepSteps } from './parts.js';
import { type FeatureStore, relatedSkills, termsFor } from './replay.js';
import { moveRanges, runStep } from './steps.js';

const { crossFit: rules, calibration } = predictionModel.fit;

export const uncalibrated: Calibration = { shift: 0, spread: 1 };

/** Items are renumbered, because the whole log may be much larger. */
export interface CrossLog {
  readonly log: AnswerLog;
  readonly rows: Float32Array;
}

export interface CrossPart {
  readonly memory: FitMemory;
  readonly others: Learners;
}

export function crossLog(log: AnswerLog, training: Learners, store: FeatureStore): CrossLog {
  const share = Math.min(1, rules.answers / Math.max(1, placesOf(log, training).length));
  let taken = 0;
  const learners = learnersWhere(log, (learner) => {
    if (training[learner] !== 1) return false;
    taken += share;
    return Math.floor(taken) > Math.floor(taken - share);
  });
  const places = placesOf(log, learners);
  const rows = shared.floats(rowWidth * places.length);
  for (const [i, place] of places.entries())
    rows.set(store.rows.subarray(place * rowWidth, (place + 1) * rowWidth), i * rowWidth);
  return withOwnItems({ log: logOfPlaces(log, [...placesByLearner(log, learners)]), rows });
}

function withOwnItems({ log, rows }: CrossLog): CrossLog {
  const numbers = new Uint32Array(log.items + 1);
  let items = 0;
  for (const item of log.item) if (item > 0 && numbers[item] === 0) numbers[item] = ++items;
  for (const [place, item] of log.item.entries()) {
    log.item[place] = numbers[item] as number;
    const before = place * rowWidth + itemBeforeColumn;
    rows[before] = numbers[rows[before] as number] as number;
  }
  return { log: { ...log, items }, rows };
}

export function openCrossPart({ log, rows }: CrossLog, itemVariance: number, part: number): CrossPart {
  const isOther = (learner: number): boolean => learner % rules.parts === part;
  const memory = newFitMemory(
    log,
    learnersWhere(log, (learner) => !isOther(learner)),
    { rows },
    itemVariance,
  );
  moveRanges(memory, 'weights', 0, memory.ranges);
  return { memory, others: learnersWhere(log, isOther) };
}

/** Adds the last of `parts`. @returns the loss of the unseen learners */
export function growCrossPart(
  { log, rows }: CrossLog,
  { memory, others }: CrossPart,
  parts: readonly PartName[],
  logits: Float64Array,
): number {
  allowRetries(memory, parts.includes('retries'));
  for (const step of crossSteps(parts.at(-1))) runStep(memory, step);
  const fitted = fittedPrediction(memory, 1, uncalibrated);
  const { items } = memory.blocks;
  const related = relatedSkills(log, fitted);
  let loss = 0;
  for (const place of placesOf(log, others)) {
    const terms = termsFor(log, place, fitted, related);
    const own = items.terms[(log.item[place] as number) * items.width] as number;
    const eta = own + logOddsWithoutItem(fitted.model, terms, rows, place * rowWidth);
    logits[place] = eta;
    loss += answerLoss(sigmoid(eta), log.correct[place] as number);
  }
  return loss;
}

const crossSteps = (added: PartName | undefined): FitStep[] =>
  added === undefined
    ? Array.from({ length: rules.sweeps }, (_, sweep) => sweepSteps([], sweep < rules.freshSweeps)).flat()
    : [...partSteps(added, true), ...sweepSteps([], false), ...partSteps(added, false)];

/** Newton's method for sigmoid(a + b eta), with a ridge of b to 1. Full steps may diverge. */
export function calibrate({ correct }: AnswerLog, logits: Float64Array): Calibration {
  const { ridge, low, high, maxStep } = calibration;
  let [shift, spread] = [0, 1];
  for (let round = 0; round < 8; round++) {
    let [g0, g1, h00, h01, h11] = [0, ridge * (1 - spread), 1e-6, 0, ridge];
    for (const [place, eta] of logits.entries()) {
      const p = sigmoid(shift + spread * eta);
      const d = (correct[place] as number) - p;
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

type Figures = Float32Array | Float64Array;

export const saveTerms = (part: CrossPart): Figures[] => figuresOf(part).map(copyOf);

export function restoreTerms(part: CrossPart, saved: readonly Figures[]): void {
  for (const [i, figures] of figuresOf(part).entries()) figures.set(saved[i] as Figures);
}

const figuresOf = ({ memory: { blocks, pairs, streaks, logits } }: CrossPart): Figures[] => [
  ...Object.values(blocks).map(({ terms }) => terms),
  pairs.terms,
  streaks.shared,
  streaks.own,
  logits,
];

function copyOf(figures: Figures): Figures {
  const copy =
    figures instanceof Float32Array ? shared.floats(figures.length) : shared.doubles(figures.length);
  copy.set(figures);
  return copy;
}
