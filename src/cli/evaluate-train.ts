/** Divides a file's learners, and trains on one part in threads. */
import { availableParallelism } from 'node:os';
import { createFitPool } from '../compute/fit-pool.js';
import type { AnswerLog } from '../domain/base/answer-log.js';
import { type Split, splitByFold } from '../lab/evaluate/split.js';
import type { AnswerTable } from '../lab/evaluate/table.js';
import { type Trained, trainModels } from '../lab/evaluate/train.js';
import { type Closers, StartError } from '../lifecycle.js';
import type { Progress } from './import-report.js';

/** @throws StartError where there is nobody to predict, or nobody to learn from */
export function divide(table: AnswerTable, folds: Uint16Array, fold: number): Split {
  if (!folds.includes(fold)) {
    throw new StartError(
      `No learner is in fold ${fold}; there are learners in ${foldsPresent(folds).join(', ')}`,
    );
  }
  const split = splitByFold(table, folds, fold);
  if (split.training.correct.length > 0) return split;
  throw new StartError(`Every learner is in fold ${fold}, so that nobody is left to train on`);
}

/** Each once, ascending. */
export const foldsPresent = (folds: Uint16Array): number[] => [...new Set(folds)].sort((a, b) => a - b);

/** Below this a second thread takes longer to start than it saves. */
const manyAnswers = 1_000_000;

export const worthyThreads = ({ correct }: AnswerLog): number =>
  correct.length < manyAnswers ? 1 : availableParallelism();

/**
 * Starts threads to train in, so that this one stays awake for signals.
 *
 * @returns trains on a log; null if a signal came
 */
export function openTrainer(
  closers: Closers,
  threads: number,
  progress: Progress,
): (log: AnswerLog) => Promise<Trained | null> {
  const pool = createFitPool({ threads, redisUrl: '', clickhouseUrl: '', beside: false });
  closers.add('threads of the fit', () => pool.close());
  return async (log) => {
    try {
      return await trainModels(log, pool, (step) => progress.show(`fitting: ${step}`));
    } catch (error) {
      // Stopped threads leave their work undone.
      if (closers.closing) return null;
      throw error;
    }
  };
}
