/** Heavy steps of a fit: pure functions, which other threads run on shared columns. */

import type { AnswerLog, Learners } from '../base/answer-log.js';
import type { TenantModel } from '../catalogue/tenant-model.js';
import { measureTimes } from '../tracing/pace.js';
import { fitJudgedAccuracy } from './accuracy/fit.js';
import { chooseFitOptions, fitRange } from './bkt/fit.js';
import { heldOutLogLoss, shiftsOf, type TracedModel } from './bkt/trace.js';
import { growTrees } from './bkt/trees.js';
import { stepBefore } from './prediction/before.js';
import { newFitMemory } from './prediction/blocks.js';
import {
  calibrate,
  crossLog,
  growCrossPart,
  openCrossPart,
  restoreTerms,
  saveTerms,
} from './prediction/cross-fit.js';
import { fittedPrediction } from './prediction/fitted.js';
import { fitOffsets } from './prediction/offsets.js';
import {
  countItems,
  type ItemFigures,
  judgeServed,
  predictRange,
  replayLearners,
} from './prediction/replay.js';
import { moveRanges, solveStep, sumRanges } from './prediction/steps.js';
import { moveStreaks, solveStreaks, sumStreaks } from './prediction/streaks.js';

const fitStages = {
  measureTimes,
  chooseFitOptions,
  growTrees,
  fitRange,
  heldOutLogLoss,
  fitOffsets: (log: AnswerLog, learners: Learners, model: TracedModel) =>
    fitOffsets(log, learners, shiftsOf(log, model)),
  replayLearners,
  newFitMemory,
  sumRanges,
  solveStep,
  moveRanges,
  stepBefore,
  sumStreaks,
  solveStreaks,
  moveStreaks,
  crossLog,
  openCrossPart,
  growCrossPart,
  saveTerms,
  restoreTerms,
  calibrate,
  fittedPrediction,
  predictRange,
  countItems,
  judgeServed,
  fitJudgedAccuracy,
} as const;

type Stages = typeof fitStages;
export type StageName = keyof Stages;
export type StageArguments = { [Name in StageName]: Parameters<Stages[Name]> };
export type StageResults = { [Name in StageName]: Awaited<ReturnType<Stages[Name]>> };

export interface StageRunner {
  run<Name extends StageName>(name: Name, ...args: StageArguments[Name]): Promise<StageResults[Name]>;
  readonly threads: number;
}

const byName: {
  [Name in StageName]: (...args: StageArguments[Name]) => StageResults[Name] | Promise<StageResults[Name]>;
} = fitStages;

export const runHere: StageRunner = { threads: 1, run: async (name, ...args) => byName[name](...args) };

const rangesPerThread = 4;

/** @param starts start of each member, and the end of the last */
export function inRanges<Result>(
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
  readonly training: Learners;
  /** The new model may not be worse than the current one. */
  readonly current: TenantModel;
  readonly currentItems?: ItemFigures | null;
  /** `fittedAt` is RFC 3339. */
  readonly version: number;
  readonly fittedAt: string;
}

export interface FitWork extends FitInput {
  readonly heldOut: Learners;
  readonly stages: StageRunner;
  readonly onStep: (step: string) => void;
}
