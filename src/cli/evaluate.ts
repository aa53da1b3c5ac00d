/** Tells how well the models foretell the answers of a file. */
import { basename } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { evaluationPage } from '../lab/evaluate/page.js';
import { predictAll } from '../lab/evaluate/predict.js';
import { resultsOf } from '../lab/evaluate/results.js';
import { foldsOf, type Split } from '../lab/evaluate/split.js';
import type { AnswerTable } from '../lab/evaluate/table.js';
import { type CommandContext, commandOf } from './command.js';
import { type EvaluateArguments, evaluateHelp, readEvaluateArguments } from './evaluate-options.js';
import { type LeftOut, readAnswers } from './evaluate-read.js';
import { type Counts, evaluationJson, evaluationText, type Summary } from './evaluate-report.js';
import { divide, openTrainer, worthyThreads } from './evaluate-train.js';
import { createProgress, type Progress } from './import-report.js';
import { writeReport } from './report-file.js';

export const main = commandOf({
  name: 'evaluate',
  help: evaluateHelp,
  read: readEvaluateArguments,
  work: evaluateFile,
});

async function evaluateFile(context: CommandContext, args: EvaluateArguments): Promise<void> {
  const progress = createProgress(context);
  const read = await readAnswers(args.file, context, progress);
  if (read === null) return;
  const { table, leftOut } = read;
  const summary = await evaluateTable(context, args, table, leftOut, progress);
  progress.show('');
  if (summary === null) return;
  context.stdout.write(`${args.json ? evaluationJson(summary) : evaluationText(summary)}\n`);
  if (args.report !== null) writeReport(args.report, pageOf(summary, table));
}

/** @returns null if a signal came */
async function evaluateTable(
  { closers }: CommandContext,
  args: EvaluateArguments,
  table: AnswerTable,
  leftOut: LeftOut,
  progress: Progress,
): Promise<Summary | null> {
  const split = divide(table, foldsOf(table), args.fold);
  const threads = args.threads ?? worthyThreads(split.training);
  const trained = await openTrainer(closers, threads, progress)(split.training);
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
