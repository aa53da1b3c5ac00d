/**
 * The heavy steps of a fit, each pure and with plain data in and out, so that any of them may run in another thread
 * over the shared columns.
 */

import type { AnswerLog, LearnerFilter } from '../base/answer-log.js';
import { fitAccuracyStage } from './accuracy.js';
import { chooseFitOptions } from './bkt/choose.js';
import { type FitOptions, type FitRound, fitRange } from './bkt/fit.js';
import { heldOutLogLoss, type TracedModel } from './bkt/held-out.js';
import { type AnswerTrees, growTrees } from './bkt/trees.js';
import { fittedPrediction } from './prediction/fit.js';
import { newFitMemory } from './prediction/fit-blocks.js';
import { solveStep } from './prediction/fit-solve.js';
import { moveRanges, sumRanges } from './prediction/fit-sums.js';
import { fitOffsets } from './prediction/offsets.js';
import type { FeatureStore } from './prediction/replay.js';
import { countItems, judgeServed, predictRange, replayRange, type Training, traceBkt } from './served.js';
import { measureTimes } from './times.js';

export type { Training };

const trainers =
  (training: Training): LearnerFilter =>
  (learner) =>
    training[learner] === 1;

const heldOut =
  (training: Training): LearnerFilter =>
  (learner) =>
    training[learner] === 0;

const below = (seconds: readonly number[]) => (skill: number) => seconds[skill] ?? 0;

const fitStages = {
  measureTimes,
  /** @param rapidBelow per skill, seconds */
  choose: (log: AnswerLog, training: Training, rapidBelow: readonly number[]) =>
    chooseFitOptions(log, trainers(training), { rapidBelow: below(rapidBelow) }),
  grow: (log: AnswerLog, training: Training, rapidBelow: readonly number[], withDifficulty: boolean) =>
    growTrees(log, trainers(training), { rapidBelow: below(rapidBelow), withDifficulty }),
  fitRange: (trees: AnswerTrees, from: number, to: number, round: FitRound, options: FitOptions) =>
    fitRange(trees, from, to, round, options),
  compareBkt: (log: AnswerLog, training: Training, candidate: TracedModel, current: TracedModel) =>
    heldOutLogLoss(log, heldOut(training), candidate, current),
  traceBkt,
  fitOffsets: (log: AnswerLog, training: Training, shifts: Float32Array | null) =>
    fitOffsets(log, trainers(training), shifts),
  replayRange,
  startTerms: (log: AnswerLog, training: Training, store: FeatureStore, itemVariance: number) =>
    newFitMemory(log, trainers(training), store, itemVariance),
  sumRanges,
  solveStep,
  moveRanges,
  fittedPrediction,
  predictRange,
  countItems,
  judgeServed,
  fitAccuracy: fitAccuracyStage,
} as const;

type Stages = typeof fitStages;
export type StageName = keyof Stages;
export type StageArguments = { [Name in StageName]: Parameters<Stages[Name]> };
export type StageResults = { [Name in StageName]: ReturnType<Stages[Name]> };

/** Runs a stage, wherever. */
export interface StageRunner {
  run<Name extends StageName>(name: Name, ...args: StageArguments[Name]): Promise<StageResults[Name]>;
  /** How many stages run side by side. */
  readonly threads: number;
}

/** The table once more, in the form in which the compiler ties a name to its arguments. */
const byName: { [Name in StageName]: (...args: StageArguments[Name]) => StageResults[Name] } = fitStages;

export const runStage = <Name extends StageName>(
  name: Name,
  args: StageArguments[Name],
): StageResults[Name] => byName[name](...args);

/** In this very thread. */
export const runHere: StageRunner = {
  threads: 1,
  run: async (name, ...args) => runStage(name, args),
};
