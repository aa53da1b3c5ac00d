import { writeFile } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createFitPool } from '../../compute/job-pools.js';
import type { AnswerLog } from '../../domain/base/answer-log.js';
import { type AnswerTable, createAnswerTable, type Split, splitByFold } from '../../lab/evaluate/answers.js';
import { type TrainedModels, trainModels } from '../../lab/evaluate/train.js';
import { formatNumber } from '../../lab/report/format.js';
import { createRunInfo, formatReport, type LabReport } from '../../lab/report/lab-report.js';
import { StartError } from '../../lifecycle.js';
import { computeSum, distinct } from '../../lists.js';
import type { ReadOptions } from '../../services/answer-log/options.js';
import { maxFold } from '../../services/answer-log/rows.js';
import { openAnswerLog } from '../answer-log/open-log.js';
import { logOptions, toReadOptions } from '../answer-log/options.js';
import { dryRunFlag, printDryRun, readLog, rejectUnusable } from '../answer-log/read-log.js';
import {
  defineArguments,
  flag,
  integerOption,
  type OptionTable,
  type OptionValues,
  requireFile,
} from '../support/arguments.js';
import { type CommandContext, defineCommand } from '../support/command.js';
import { checkOutputs, outputOption } from './output-files.js';

const maxThreads = 256;

export interface LabArguments {
  readonly file: string;
  readonly options: ReadOptions;
  readonly threads: number | null;
  readonly json: boolean;
}

type FoldArguments = LabArguments & { readonly fold: number | null };

/** `write` writes further files, after the results are printed. */
type LabOutput = LabReport & { readonly write?: () => Promise<void> };

export interface LabCommand<Options extends OptionTable> {
  readonly name: string;
  /** Texts of --help: before the options, of --fold, and after the options. */
  readonly about: string;
  readonly fold: string;
  readonly examples: readonly string[];
  readonly notes: string;
  /** In addition to the common ones. */
  readonly options: Options;
  /** @returns null after a signal */
  readonly measure: (
    context: CommandContext,
    args: FoldArguments & OptionValues<Options>,
    answers: LoadedAnswers,
  ) => Promise<LabOutput | null>;
  /** @throws UsageError */
  readonly check?: (args: FoldArguments & OptionValues<Options>) => void;
}

export const defineLabCommand = <Options extends OptionTable>(command: LabCommand<Options>) =>
  defineCommand({
    name: command.name,
    ...defineArguments({
      ...command,
      usage: `npm run ${command.name} -- FILE [options]`,
      options: {
        ...command.options,
        fold: integerOption(0, maxFold, command.fold),
        report: outputOption('HTML', 'write an HTML page with charts and tables, which needs no network'),
        threads: integerOption(
          1,
          maxThreads,
          `threads of the fit, 1 to ${maxThreads} (default: 1; from 1,000,000 answers on, one per core)`,
        ),
        json: flag('print the metrics as one line of JSON'),
        'dry-run': dryRunFlag,
        ...logOptions,
      },
      read: (values, given) => {
        const args = { ...requireFile(values, given), options: toReadOptions(values) };
        checkOutputs(args.file, values);
        command.check?.(args);
        return { ...args, line: ['npm run', command.name, '--', ...given.argv].join(' ') };
      },
    }),
    run: async (context, args) => {
      if (args['dry-run']) return printDryRun(args, context);
      const run = createRunInfo(args.line);
      const answers = await readAnswers(args, context);
      const output = answers && (await command.measure(context, args, answers));
      if (output === null || context.closers.closing) return;
      const formats = formatReport(output, run);
      context.print(args.json ? formats.json() : formats.text());
      await output.write?.();
      await args.report?.write((path) => writeFile(path, formats.page()));
    },
  });

type LoadedAnswers = NonNullable<Awaited<ReturnType<typeof readAnswers>>>;

/** @returns null after a signal @throws StartError for an unreadable file, or one without valid rows */
export async function readAnswers({ file, options }: LabArguments, context: CommandContext) {
  const since = performance.now();
  const log = await openAnswerLog(file, options);
  const table = createAnswerTable();
  const read = await readLog(log, context, table.add);
  if (read === null) return null;
  rejectUnusable(file, read, options);
  const leftOut = computeSum(Object.values(read.profile.leftOut));
  const notes = [...log.warnings, ...buildNotes(table, leftOut, read.problems)];
  for (const note of [`${file}: format ${log.format.name}`, ...notes]) context.stderr.write(`${note}\n`);
  return { table, leftOut, since };
}

function buildNotes(table: AnswerTable, leftOut: number, examples: readonly string[]): string[] {
  const withoutFold = table.folds.size > 0 ? table.learners.length - table.folds.size : 0;
  const conflict = "a different fold than the learner's first row; the first fold is used";
  const note = (count: number, one: string, several: string, rest: string): string[] =>
    count > 0 ? [`${formatNumber(count)} ${count === 1 ? one : several} ${rest}`] : [];
  return [
    ...note(leftOut, 'row', 'rows', 'left out:'),
    ...examples,
    ...(leftOut > examples.length ? [`  and ${formatNumber(leftOut - examples.length)} more`] : []),
    ...note(table.foldConflicts(), 'row has', 'rows have', conflict),
    ...note(withoutFold, 'learner has', 'learners have', 'no fold; a hash of user_id assigns folds 1 to 5'),
  ];
}

const maxListedFolds = 10;

/** @throws StartError without test or training learners */
export function requireSplit(table: AnswerTable, folds: Uint16Array, fold: number): Split {
  const present = listFolds(folds);
  if (present.length === 1) {
    // With 20 learners, 1 % of files have no learner in the default fold.
    const advice =
      table.folds.size > 1
        ? 'Put learners into another fold, or pass --columns fold= to assign folds by a hash of user_id'
        : 'Use a file with at least 20 learners or with a column fold';
    throw new StartError(
      `All learners are in fold ${present[0]}; training needs learners in other folds. ${advice}`,
    );
  }
  if (present.includes(fold)) return splitByFold(table, folds, fold);
  const list = present.slice(0, maxListedFolds).join(', ') + (present.length > maxListedFolds ? ', …' : '');
  throw new StartError(
    `Fold ${fold} has no learners. Folds with learners: ${list}. Pass one of them with --fold`,
  );
}

export const listFolds = (folds: Uint16Array): number[] => distinct(folds).sort((a, b) => a - b);

/** With fewer answers a second thread costs more time than it saves. */
const minParallelAnswers = 1_000_000;

/** Other threads train, so that this one can handle signals. The result is null after a signal. */
export function openTrainer(
  { closers, showProgress }: CommandContext,
  { threads }: LabArguments,
  { columns }: AnswerTable,
) {
  const isSmall = columns.correct.length < minParallelAnswers;
  const pool = createFitPool({
    ...{ threads: threads ?? (isSmall ? 1 : undefined), servesRequests: false },
    ...{ redisUrl: '', clickhouseUrl: '' },
  });
  closers.add('threads of the fit', () => pool.close());
  return async (log: AnswerLog, about = ''): Promise<TrainedModels | null> => {
    try {
      const trained = await trainModels(log, pool, (step) => showProgress(`${about}fitting: ${step}`));
      showProgress(`${about}predicting`);
      await nextTurn();
      return closers.closing ? null : trained;
    } catch (error) {
      // The shutdown stopped the threads.
      if (closers.closing) return null;
      throw error;
    }
  };
}
