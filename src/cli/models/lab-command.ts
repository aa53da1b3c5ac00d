import { accessSync, constants, statSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, resolve } from 'node:path';
import { createFitPool } from '../../compute/job-pools.js';
import type { AnswerLog } from '../../domain/base/answer-log.js';
import { type AnswerTable, createAnswerTable, type Split, splitByFold } from '../../lab/evaluate/answers.js';
import { type TrainedModels, trainModels } from '../../lab/evaluate/train.js';
import { formatNumber } from '../../lab/report/format.js';
import { createRunInfo, type RunInfo } from '../../lab/report/run-info.js';
import { StartError } from '../../lifecycle.js';
import { computeSum, distinct } from '../../lists.js';
import type { ReadOptions } from '../../services/answer-log/options.js';
import { createProfile } from '../../services/answer-log/profile.js';
import { maxFold } from '../../services/answer-log/rows.js';
import { openAnswerLog } from '../answer-log/open-log.js';
import { logOptions, toReadOptions } from '../answer-log/options.js';
import { rejectUnusable } from '../answer-log/profile-log.js';
import { defineArguments, flag, integerOption, option, requireFile } from '../support/arguments.js';
import { type CommandContext, defineCommand } from '../support/command.js';

const maxThreads = 256;

interface LabArguments {
  readonly file: string;
  readonly options: ReadOptions;
  readonly fold: number | null;
  readonly threads: number | null;
}

interface LabCommand<Result> {
  readonly name: string;
  /** Texts of --help: before the options, of --fold, and after the options. */
  readonly about: string;
  readonly fold: string;
  readonly examples: readonly string[];
  readonly notes: string;
  /** @returns null after a signal */
  readonly measure: (
    context: CommandContext,
    args: LabArguments,
    answers: LoadedAnswers,
  ) => Promise<Result | null>;
  readonly json: (result: Result, run: RunInfo) => string;
  readonly text: (result: Result, run: RunInfo) => string;
  readonly page: (result: Result, run: RunInfo) => string;
}

export const defineLabCommand = <Result>({
  name,
  about,
  fold,
  examples,
  notes,
  measure,
  ...formats
}: LabCommand<Result>) =>
  defineCommand({
    name,
    ...defineArguments({
      usage: `npm run ${name} -- FILE [options]`,
      about,
      options: {
        fold: integerOption(0, maxFold, fold),
        report: option(
          'HTML',
          'write an HTML page with charts and tables, which needs no network',
          checkReportPath,
        ),
        threads: integerOption(
          1,
          maxThreads,
          `threads of the fit, 1 to ${maxThreads} (default: 1; from 1,000,000 answers on, one per core)`,
        ),
        json: flag('print the metrics as one line of JSON'),
        ...logOptions,
      },
      examples,
      notes,
      read: (values, given) => ({
        ...requireFile(values, given),
        options: toReadOptions(values),
        command: ['npm run', name, '--', ...given.argv].join(' '),
      }),
    }),
    run: async (context, args) => {
      const run = createRunInfo(args.command);
      const answers = await readAnswers(args, context);
      const result = answers && (await measure(context, args, answers));
      if (result === null || context.closers.closing) return;
      context.print(args.json ? formats.json(result, run) : formats.text(result, run));
      const { report } = args;
      if (report !== null) withReportErrors(report, () => writeFileSync(report, formats.page(result, run)));
    },
  });

const checkReportPath = (path: string): string =>
  withReportErrors(path, () => {
    const target = resolve(path);
    accessSync(dirname(target), constants.W_OK);
    const existing = statSync(target, { throwIfNoEntry: false });
    if (existing?.isDirectory()) throw new Error('it is a directory');
    if (existing !== undefined) accessSync(target, constants.W_OK);
    return target;
  });

function withReportErrors<Value>(path: string, work: () => Value): Value {
  try {
    return work();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new StartError(`--report ${path} cannot be written: ${reason}`, { cause });
  }
}

const maxExamples = 5;

type LoadedAnswers = NonNullable<Awaited<ReturnType<typeof readAnswers>>>;

/** @returns null after a signal @throws StartError for an unreadable file, or one without valid rows */
async function readAnswers(
  { file, options }: LabArguments,
  { closers, stderr, showProgress }: CommandContext,
) {
  const since = performance.now();
  const log = await openAnswerLog(file, options);
  const table = createAnswerTable();
  const profile = createProfile();
  const examples: string[] = [];
  let bytes = 0;
  const onBytes = (chunk: Buffer): void => {
    bytes += chunk.length;
  };
  for await (const { rows } of log.readPages(Date.now(), onBytes)) {
    if (closers.closing) return null;
    for (const { row } of rows) {
      profile.add(row);
      if (row.answer !== null) table.add(row.answer);
      else if (!row.isFiltered && examples.length < maxExamples)
        examples.push(`  line ${row.line}: ${row.message}`);
    }
    const share = Math.floor((100 * bytes) / Math.max(1, log.bytes));
    showProgress(`reading: ${share} %, ${formatNumber(table.columns.learner.length)} answers`);
  }
  if (closers.closing) return null;
  showProgress('');
  const found = profile.read();
  const leftOut = computeSum(Object.values(found.leftOut));
  rejectUnusable(file, found, options);
  const notes = [
    `${file}: format ${log.format.name}`,
    ...log.warnings,
    ...buildNotes(table, leftOut, examples),
  ];
  for (const note of notes) stderr.write(`${note}\n`);
  return { table, leftOut, since };
}

function buildNotes(table: AnswerTable, leftOut: number, examples: readonly string[]): string[] {
  const conflicts = table.foldConflicts();
  const withoutFold = table.folds.size > 0 ? table.learners.length - table.folds.size : 0;
  const note = (count: number, one: string, several: string, rest: string): string[] =>
    count > 0 ? [`${formatNumber(count)} ${count === 1 ? one : several} ${rest}`] : [];
  return [
    ...note(leftOut, 'invalid row', 'invalid rows', 'skipped:'),
    ...examples,
    ...(leftOut > maxExamples ? [`  and ${formatNumber(leftOut - maxExamples)} more`] : []),
    ...note(
      conflicts,
      'row has',
      'rows have',
      "a different fold than the learner's first row; the first fold is used",
    ),
    ...note(withoutFold, 'learner has', 'learners have', 'no fold; a hash of user_id assigns folds 1 to 5'),
  ];
}

/** @throws StartError without test or training learners */
export function requireSplit(table: AnswerTable, folds: Uint16Array, fold: number): Split {
  if (!folds.includes(fold)) {
    const present = listFolds(folds).join(', ');
    throw new StartError(`Fold ${fold} has no learners. Folds with learners: ${present}`);
  }
  const split = splitByFold(table, folds, fold);
  if (split.training.correct.length > 0) return split;
  throw new StartError(`All learners are in fold ${fold}; training needs learners in other folds`);
}

export const listFolds = (folds: Uint16Array): number[] => distinct(folds).sort((a, b) => a - b);

/** With fewer answers a second thread costs more time than it saves. */
const minParallelAnswers = 1_000_000;

export const chooseThreads = ({ threads }: LabArguments, { correct }: AnswerLog): number =>
  threads ?? (correct.length < minParallelAnswers ? 1 : availableParallelism());

/** Other threads train, so that this one can handle signals. The result is null after a signal. */
export function openTrainer({ closers, showProgress }: CommandContext, threads: number) {
  const pool = createFitPool({ threads, redisUrl: '', clickhouseUrl: '', servesRequests: false });
  closers.add('threads of the fit', () => pool.close());
  return async (log: AnswerLog): Promise<TrainedModels | null> => {
    try {
      return await trainModels(log, pool, (step) => showProgress(`fitting: ${step}`));
    } catch (error) {
      // The shutdown stopped the threads.
      if (closers.closing) return null;
      throw error;
    }
  };
}
