import { accessSync, constants, statSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, resolve } from 'node:path';
import { createFitPool } from '../compute/job-pools.js';
import type { AnswerLog } from '../domain/base/answer-log.js';
import {
  type AnswerTable,
  createAnswerTable,
  evaluateColumns,
  maxFold,
  type Split,
  splitByFold,
} from '../lab/evaluate/answers.js';
import { type Trained, trainModels } from '../lab/evaluate/train.js';
import { grouped } from '../lab/report/numbers.js';
import { type Run, runOf, runTitle } from '../lab/report/run.js';
import { StartError } from '../lifecycle.js';
import { distinct } from '../lists.js';
import { argumentsOf, flag, integerOption, option, withFile } from './arguments.js';
import { type CommandContext, commandOf } from './command.js';
import { openFile, readPages } from './import-file.js';

const maxThreads = 256;

interface LabArguments {
  readonly file: string;
  readonly fold: number | null;
  readonly threads: number | null;
}

interface LabCommand<Result> {
  readonly name: string;
  /** Texts of --help: before the options, of --fold, after the options. */
  readonly about: string;
  readonly fold: string;
  readonly notes: string;
  /** @returns null after a signal */
  readonly work: (context: CommandContext, args: LabArguments, answers: Answers) => Promise<Result | null>;
  readonly json: (result: Result, run: Run) => string;
  readonly text: (result: Result) => string;
  readonly page: (result: Result, run: Run) => string;
}

export const labCommand = <Result>({ name, about, fold, notes, work, ...shown }: LabCommand<Result>) =>
  commandOf({
    name,
    ...argumentsOf({
      form: `npm run ${name} -- FILE [options]`,
      about,
      options: {
        fold: integerOption(0, maxFold, fold),
        report: option(
          'HTML',
          'writes a page with plots and tables; it opens without a network',
          checkReportPath,
        ),
        threads: integerOption(
          1,
          maxThreads,
          `threads of the fit, 1 to ${maxThreads} (default: 1, from a million answers on all cores)`,
        ),
        json: flag('the figures as one line of JSON'),
      },
      notes,
      read: (values, given) => ({
        ...withFile(values, given),
        command: ['npm run', name, '--', ...given.argv].join(' '),
      }),
    }),
    work: async (context, args) => {
      const run = runOf(args.command);
      const answers = await readAnswers(args.file, context);
      const result = answers && (await work(context, args, answers));
      if (result === null || context.closers.closing) return;
      context.print(args.json ? shown.json(result, run) : `${runTitle(run)}\n${shown.text(result)}`);
      const { report } = args;
      if (report !== null) reporting(report, () => writeFileSync(report, shown.page(result, run)));
    },
  });

const checkReportPath = (path: string): string =>
  reporting(path, () => {
    const target = resolve(path);
    accessSync(dirname(target), constants.W_OK);
    const there = statSync(target, { throwIfNoEntry: false });
    if (there?.isDirectory()) throw new Error('it is a folder');
    if (there !== undefined) accessSync(target, constants.W_OK);
    return target;
  });

function reporting<Value>(path: string, work: () => Value): Value {
  try {
    return work();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new StartError(`--report ${path} cannot be written: ${reason}`, { cause });
  }
}

const maxExamples = 5;

type Answers = NonNullable<Awaited<ReturnType<typeof readAnswers>>>;

/** @returns null after a signal @throws StartError for an unreadable file, or one without valid rows */
async function readAnswers(path: string, { closers, stderr, showProgress }: CommandContext) {
  const since = performance.now();
  const file = openFile(path);
  const table = createAnswerTable();
  const { learner } = table.columns;
  const examples: string[] = [];
  const now = Date.now();
  let [bytes, leftOut] = [0, 0];
  const onBytes = (chunk: Buffer): void => {
    bytes += chunk.length;
  };
  for await (const page of readPages(file, onBytes, evaluateColumns)) {
    if (closers.closing) return null;
    for (const raw of page) {
      const problem = table.add(raw, now);
      if (problem !== null && ++leftOut <= maxExamples) examples.push(`  line ${raw.line}: ${problem}`);
    }
    const share = Math.floor((100 * bytes) / Math.max(1, file.bytes));
    showProgress(`reading: ${share} %, ${grouped(learner.length)} answers`);
  }
  if (closers.closing) return null;
  showProgress('');
  if (learner.length === 0)
    throw new StartError([`${path} has no answer that can be used`, ...examples].join('\n'));
  for (const note of notesOn(table, leftOut, examples)) stderr.write(`${note}\n`);
  return { table, leftOut, since };
}

function notesOn(table: AnswerTable, leftOut: number, examples: readonly string[]): string[] {
  const conflicts = table.foldConflicts();
  const without = table.folds.size > 0 ? table.learners.length - table.folds.size : 0;
  const note = (count: number, one: string, several: string, rest: string): string[] =>
    count > 0 ? [`${grouped(count)} ${count === 1 ? one : several} ${rest}`] : [];
  return [
    ...note(leftOut, 'row does', 'rows do', 'not fit and are left out:'),
    ...examples,
    ...(leftOut > maxExamples ? [`  and ${grouped(leftOut - maxExamples)} more`] : []),
    ...note(
      conflicts,
      'row has',
      'rows have',
      "another fold than their learner's first: the first one holds",
    ),
    ...note(without, 'learner has', 'learners have', 'no fold: 1 to 5 by a hash of user_id'),
  ];
}

/** @throws StartError without test or training learners */
export function divide(table: AnswerTable, folds: Uint16Array, fold: number): Split {
  if (!folds.includes(fold)) {
    const present = foldsPresent(folds).join(', ');
    throw new StartError(`No learner is in fold ${fold}; there are learners in ${present}`);
  }
  const split = splitByFold(table, folds, fold);
  if (split.training.correct.length > 0) return split;
  throw new StartError(`Every learner is in fold ${fold}, so that nobody is left to train on`);
}

export const foldsPresent = (folds: Uint16Array): number[] => distinct(folds).sort((a, b) => a - b);

/** With fewer answers a second thread costs more time than it saves. */
const manyAnswers = 1_000_000;

export const threadsFor = ({ threads }: LabArguments, { correct }: AnswerLog): number =>
  threads ?? (correct.length < manyAnswers ? 1 : availableParallelism());

/** Other threads train, so that this one can handle signals. The result is null after a signal. */
export function openTrainer({ closers, showProgress }: CommandContext, threads: number) {
  const pool = createFitPool({ threads, redisUrl: '', clickhouseUrl: '', servesRequests: false });
  closers.add('threads of the fit', () => pool.close());
  return async (log: AnswerLog): Promise<Trained | null> => {
    try {
      return await trainModels(log, pool, (step) => showProgress(`fitting: ${step}`));
    } catch (error) {
      // The shutdown stopped the threads.
      if (closers.closing) return null;
      throw error;
    }
  };
}
