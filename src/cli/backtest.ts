/** Tells how far forecasts of the share of right answers can be relied on, on a file of answers. */
import { basename } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { forecastFold, type ScoredCase } from '../lab/backtest/forecasts.js';
import { backtestPage } from '../lab/backtest/page.js';
import { resultsOf } from '../lab/backtest/results.js';
import { foldsOf } from '../lab/evaluate/split.js';
import type { AnswerTable } from '../lab/evaluate/table.js';
import { StartError } from '../lifecycle.js';
import { type BacktestArguments, backtestHelp, readBacktestArguments } from './backtest-options.js';
import { backtestJson, backtestText } from './backtest-report.js';
import { type CommandContext, commandOf } from './command.js';
import { readAnswers } from './evaluate-read.js';
import { divide, foldsPresent, openTrainer, worthyThreads } from './evaluate-train.js';
import { createProgress, type Progress } from './import-report.js';
import { writeReport } from './report-file.js';

export const main = commandOf({
  name: 'backtest',
  help: backtestHelp,
  read: readBacktestArguments,
  work: backtestFile,
});

async function backtestFile(context: CommandContext, args: BacktestArguments): Promise<void> {
  const since = performance.now();
  const progress = createProgress(context);
  const read = await readAnswers(args.file, context, progress);
  if (read === null) return;
  const forecasts = await forecastTable(context, args, read.table, progress);
  if (forecasts === null) return;
  progress.show('bootstrap');
  const results = await resultsOf(forecasts.scored);
  if (context.closers.closing) return;
  progress.show('');
  const seconds = (performance.now() - since) / 1000;
  const summary = { file: basename(args.file), fold: args.fold, unit: forecasts.unit, seconds, results };
  context.stdout.write(`${args.json ? backtestJson(summary) : backtestText(summary)}\n`);
  if (args.report !== null) writeReport(args.report, backtestPage(summary));
}

interface Forecasts {
  readonly unit: 'days' | 'answers';
  readonly scored: readonly ScoredCase[];
}

/** @returns null if a signal came. @throws StartError where nothing can be forecast */
async function forecastTable(
  context: CommandContext,
  args: BacktestArguments,
  table: AnswerTable,
  progress: Progress,
): Promise<Forecasts | null> {
  const { closers } = context;
  const folds = args.fold === null ? crossFolds(table, context) : foldsOf(table);
  const scored: ScoredCase[] = [];
  const units = new Set<Forecasts['unit']>();
  let train: ReturnType<typeof openTrainer> | undefined;
  for (const fold of args.fold === null ? foldsPresent(folds) : [args.fold]) {
    const split = divide(table, folds, fold);
    train ??= openTrainer(closers, args.threads ?? worthyThreads(split.training), progress);
    const trained = await train(split.training);
    if (trained === null) return null;
    progress.show(`forecasting fold ${fold}`);
    await nextTurn();
    if (closers.closing) return null;
    const { served } = trained.models;
    units.add(served.model.accuracy.unit);
    // One by one: arguments of a call lie on the stack, and there may be millions.
    for (const one of forecastFold(split, served, fold)) scored.push(one);
  }
  const [unit] = units;
  if (unit === undefined || scored.length === 0) throw new StartError(nothingToForecast);
  return { unit, scored };
}

/** Folds to forecast in turn: those of the file, unless it has all learners in one. */
function crossFolds(table: AnswerTable, { stderr }: CommandContext): Uint16Array {
  const told = foldsOf(table);
  const byHash = foldsOf({ ...table, folds: new Map() });
  const [fold, another] = foldsPresent(told);
  if (another !== undefined || foldsPresent(byHash).length === 1) return told;
  stderr.write(`Every learner is in fold ${fold}: folds are 1 to 5 by a hash of user_id instead\n`);
  return byHash;
}

const nothingToForecast = 'No learner has enough answers after another for a forecast to be held against';
