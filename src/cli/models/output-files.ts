/** Files that a command writes: checks before the work, and tables of predicted answers and of skills. */
import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { quoteLiteral } from '../../embedded/clickhouse/sql.js';
import { streamLocalQuery } from '../../embedded/local-query.js';
import type { AnswerTable } from '../../lab/evaluate/answers.js';
import { type ScoredFold, scoreTables } from '../../lab/evaluate/scores.js';
import { StartError } from '../../lifecycle.js';
import { quotePath } from '../answer-log/engine-query.js';
import { type OptionValues, option, UsageError } from '../support/arguments.js';
import type { CommandContext } from '../support/command.js';

/**
 * A file that can be written. `write` passes its absolute path to the work, and names the option if that fails.
 * @param check throws for a path that the work cannot write
 */
export const outputOption = (placeholder: string, about: string, check = (_: string): unknown => null) =>
  option(placeholder, about, (given, name) => {
    const fail = (cause: unknown): never => {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new StartError(`${name} ${given} cannot be written: ${reason}`, { cause });
    };
    try {
      const path = findTarget(given);
      check(path);
      return {
        path,
        write: (work: (path: string) => Promise<void>): Promise<void> => work(path).catch(fail),
      };
    } catch (cause) {
      return fail(cause);
    }
  });

/**
 * @param values of a command line; those with a path are outputs, or the mapping file
 * @throws UsageError if an output would replace FILE or one of the others
 */
export function checkOutputs(file: string, values: object): void {
  const others = Object.values(values).flatMap((value: unknown) => (hasPath(value) ? value.path : []));
  const paths = [existsSync(file) ? realpathSync(file) : file, ...others];
  const repeated = paths.find((path, i) => paths.indexOf(path) < i);
  if (repeated !== undefined)
    throw new UsageError(`${repeated} is named twice. Pass another file for each output`);
}

const hasPath = (value: unknown): value is { readonly path: string } =>
  typeof value === 'object' && value !== null && 'path' in value;

function findTarget(path: string): string {
  const target = resolve(path);
  accessSync(dirname(target), constants.W_OK);
  const existing = statSync(target, { throwIfNoEntry: false });
  if (existing === undefined) return target;
  if (!existing.isFile())
    throw new Error(existing.isDirectory() ? 'it is a directory' : 'it is not a regular file');
  accessSync(target, constants.W_OK);
  return realpathSync(target);
}

export const tableOptions = {
  predictions: outputOption(
    'OUT',
    'write a row for each predicted answer to OUT: CSV, or Parquet if OUT ends with .parquet',
    quotePath,
  ),
  parameters: outputOption(
    'OUT',
    'write a row for each skill to OUT: fitted parameters and figures',
    quotePath,
  ),
};

export type TablePaths = OptionValues<typeof tableOptions>;

/** Replaces a file only if it can be written completely. @throws StartError */
export async function writeTables(
  { closers }: CommandContext,
  paths: TablePaths,
  table: AnswerTable,
  scored: readonly ScoredFold[],
): Promise<void> {
  for (const name of ['predictions', 'parameters'] as const)
    await paths[name]?.write(async (path) => {
      const temporary = `${path}.${process.pid}.tmp`;
      closers.add('temporary file', () => rm(temporary, { force: true }));
      const { columns, listPages } = scoreTables[name];
      const format = path.endsWith('.parquet') ? 'Parquet' : 'CSVWithNames';
      const target = `file(${quotePath(temporary)}, '${format}')`;
      for await (const _ of encodeRows(columns, listPages(table, scored), target));
      await rename(temporary, path);
    });
}

/** The engine writes the rows to `target`, in their order and with all digits. */
function encodeRows(columns: string, pages: Iterable<readonly object[]>, target: string) {
  const sql = `INSERT INTO FUNCTION ${target} SETTINGS max_threads = 1, input_format_parallel_parsing = 0,
    precise_float_parsing = 1, format_csv_null_representation = '', engine_file_truncate_on_insert = 1
    SELECT * FROM file('stdin', 'JSONEachRow', ${quoteLiteral(columns)})`;
  async function* encode() {
    for (const page of pages) yield Buffer.from(page.map((row) => `${JSON.stringify(row)}\n`).join(''));
  }
  return streamLocalQuery({ sql, format: '', input: encode() });
}
