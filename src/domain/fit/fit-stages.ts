/**
 * Heavy steps of a fit, which may run in other threads. A step may write shared arrays. Everything else is copied to
 * the thread, so its changes are lost.
 */

import type { AnswerLog, LearnerSelection } from '../base/answer-log.js';
import type { TenantModel } from '../catalogue/tenant-model.js';
import { measureTimes } from '../tracing/response-times.js';
import { calibrateIntervals } from './accuracy/calibrate-intervals.js';
import { fitAccuracyChecked } from './accuracy/fit-accuracy.js';
import { growTrees } from './bkt/answer-trees.js';
import { chooseFitOptions, fitSkillRange } from './bkt/fit-trees.js';
import { compareHeldOutLoss, computeShifts, type TracedModel } from './bkt/trace-log.js';
import { fitGrowth } from './fit-growth.js';
import { fitOffsets } from './prediction/ability-offsets.js';
import {
  createCrossFold,
  extendCrossFold,
  fitCalibration,
  restoreTerms,
  sampleCrossLog,
  saveTerms,
} from './prediction/cross-fit.js';
import { createFitMemory } from './prediction/fit-memory.js';
import { buildPrediction } from './prediction/fitted-prediction.js';
import { moveRanges, solveStep, sumRanges } from './prediction/newton-steps.js';
import { stepPreviousSkills } from './prediction/previous-skills.js';
import {
  countItems,
  type ItemFigures,
  measureServedLoss,
  predictRange,
  replayLearners,
} from './prediction/replay-log.js';
import { moveStreaks, solveStreaks, sumStreaks } from './prediction/streak-steps.js';

const fitStages = {
  measureTimes,
  chooseFitOptions,
  growTrees,
  fitSkillRange,
  compareHeldOutLoss,
  fitOffsets: (log: AnswerLog, learners: LearnerSelection, model: TracedModel) =>
    fitOffsets(log, learners, computeShifts(log, model)),
  replayLearners,
  createFitMemory,
  sumRanges,
  solveStep,
  moveRanges,
  stepPreviousSkills,
  sumStreaks,
  solveStreaks,
  moveStreaks,
  sampleCrossLog,
  createCrossFold,
  extendCrossFold,
  saveTerms,
  restoreTerms,
  fitCalibration,
  buildPrediction,
  predictRange,
  countItems,
  measureServedLoss,
  fitAccuracyChecked,
  calibrateIntervals,
  fitGrowth,
} as const;

type Stages = typeof fitStages;
export type StageName = keyof Stages;
export type StageArguments = { [Name in StageName]: Parameters<Stages[Name]> };
export type StageResults = { [Name in StageName]: Awaited<ReturnType<Stages[Name]>> };

export interface StageRunner {
  run<Name extends StageName>(name: Name, ...args: StageArguments[Name]): Promise<StageResults[Name]>;
  readonly threads: number;
}

const stagesByName: {
  [Name in StageName]: (...args: StageArguments[Name]) => StageResults[Name] | Promise<StageResults[Name]>;
} = fitStages;

export const localRunner: StageRunner = {
  threads: 1,
  run: async (name, ...args) => stagesByName[name](...args),
};

const rangesPerThread = 4;

/** @param starts start of each member, and the end of the last */
export function runInRanges<Result>(
  { threads }: StageRunner,
  starts: Uint32Array,
  run: (from: number, to: number) => Promise<Result>,
): Promise<Result[]> {
  const members = starts.length - 1;
  const parts = threads === 1 ? 1 : threads * rangesPerThread;
  const share = Math.max(1, (starts[members] as number) / parts);
  const running: Promise<Result>[] = [];
  let from = 0;
  for (let to = 1; to <= members; to++) {
    if ((starts[to] as number) - (starts[from] as number) < share && to < members) continue;
    running.push(run(from, to));
    from = to;
  }
  return Promise.all(running);
}

export interface FitInput {
  readonly log: AnswerLog;
  readonly skillIds: readonly string[];
  readonly training: LearnerSelection;
  /** The new model may not be worse than the current one. */
  readonly current: TenantModel;
  readonly currentItems?: ItemFigures | null;
  /** `fittedAt` is RFC 3339. */
  readonly version: number;
  readonly fittedAt: string;
}

export interface FitWork extends FitInput {
  readonly heldOut: LearnerSelection;
  readonly stages: StageRunner;
  readonly onStep: (step: string) => void;
}
