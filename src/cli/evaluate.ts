/** Tells how well the models foretell the answers of a file. */
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createFitPool } from '../compute/fit-pool.js';
import type { AnswerLog } from '../domain/answer-log.js';
import { type Closers, StartError } from '../lifecycle.js';
import { evaluationPage } from '../services/evaluate/page.js';
import { predictAll } from '../services/evaluate/predict.js';
import { resultsOf } from '../services/evaluate/results.js';
import { foldsOf, type Split, splitByFold } from '../services/evaluate/split.js';
import type { AnswerTable } from '../services/evaluate/table.js';
import { type Trained, trainModels } from '../services/evaluate/train.js';
import { type CommandContext, startCommand } from './command.js';
import {
  type EvaluateArguments,
  evaluateHelp,
  readEvaluateArguments,
  unwritableReport,
} from './evaluate-options.js';
import { type LeftOut, notesOn, readTable } from './evaluate-read.js';
import { type Counts, evaluationJson, evaluationText, type Summary } from './evaluate-report.js';
import { openFile } from './import-file.js';
import { createProgress, type Progress } from './import-report.js';

/** @param argv arguments after the command */
export const main = (argv: readonly string[]): Promise<void> =>
  startCommand(
    { name: 'evaluate', help: evaluateHelp, read: readEvaluateArguments, work: evaluateFile },
    argv,
  );

async function evaluateFile(context: CommandContext, args: EvaluateArguments): Promise<void> {
  const progress = createProgress(context.closers);
  const stopped = (): boolean => context.closers.closing;
  const { table, leftOut } = await readTable(openFile(args.file), progress, stopped);
  if (stopped()) return;
  progress.show('');
  for (const note of notesOn(table, leftOut)) process.stderr.write(`${note}\n`);
  const summary = await evaluateTable(context, args, table, leftOut, progress);
  progress.show('');
  if (summary === null) return;
  process.stdout.write(`${args.json ? evaluationJson(summary) : evaluationText(summary)}\n`);
  if (args.report !== null) writeReport(args.report, pageOf(summary, table));
}

/** Its place was looked at before the run; a disk may be full by now. The figures are printed then. */
function writeReport(path: string, page: string): void {
  try {
    writeFileSync(path, page);
  } catch (cause) {
    throw unwritableReport(path, cause);
  }
}

/** @returns null if a signal came */
async function evaluateTable(
  { closers }: CommandContext,
  args: EvaluateArguments,
  table: AnswerTable,
  leftOut: LeftOut,
  progress: Progress,
): Promise<Summary | null> {
  const split = divide(table, args);
  const threads = args.threads ?? worthyThreads(split.training);
  const trained = await train(closers, split.training, threads, progress);
  if (trained === null) return null;
  progress.show('predicting');
  await nextTurn();
  const since = performance.now();
  const { predictions, monotone } = predictAll(split, trained.models);
  const predictSeconds = (performance.now() - since) / 1000;
  return {
    file: args.file,
    fold: args.fold,
    split: splitOf(table),
    test: countsOf(split.test),
    train: countsOf(split.training),
    leftOut: leftOut.rows,
    fit: { ...trained.figures, predictSeconds, threads },
    monotone,
    results: resultsOf(split, predictions),
  };
}

/** Below this a second thread takes longer to start than it saves. */
const manyAnswers = 1_000_000;

const worthyThreads = ({ correct }: AnswerLog): number =>
  correct.length < manyAnswers ? 1 : availableParallelism();

/** Trains in threads, so that this one stays awake for signals. @returns null if one came */
async function train(
  closers: Closers,
  log: AnswerLog,
  threads: number,
  progress: Progress,
): Promise<Trained | null> {
  const pool = createFitPool({ threads, redisUrl: '', clickhouseUrl: '', beside: false });
  closers.add('threads of the fit', () => pool.close());
  try {
    return await trainModels(log, pool, (step) => progress.show(`fitting: ${step}`));
  } catch (error) {
    // Stopped threads leave their work undone.
    if (closers.closing) return null;
    throw error;
  }
}

/** @throws StartError where there is nobody to predict, or nobody to learn from */
function divide(table: AnswerTable, { fold }: EvaluateArguments): Split {
  const folds = foldsOf(table);
  if (!folds.includes(fold)) {
    const present = [...new Set(folds)].sort((a, b) => a - b).join(', ');
    throw new StartError(`No learner is in fold ${fold}; there are learners in ${present}`);
  }
  const split = splitByFold(table, folds, fold);
  if (split.training.correct.length > 0) return split;
  throw new StartError(`Every learner is in fold ${fold}, so that nobody is left to train on`);
}

const countsOf = ({ correct, starts }: Split['test']): Counts => ({
  rows: correct.length,
  learners: starts.length - 1,
});

function splitOf({ folds, learners }: AnswerTable): Summary['split'] {
  if (folds.size === 0) return 'hash';
  return folds.size === learners.all.length ? 'fold' : 'mixed';
}

const pageOf = ({ file, fold, test, train, results }: Summary, { skills }: AnswerTable): string =>
  evaluationPage({ file: basename(file), fold, test, training: train, skillIds: skills.all }, results);
