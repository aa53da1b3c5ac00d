/** --predictions and --parameters: tables of predicted answers and of skills. */
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { quoteLiteral } from '../../embedded/clickhouse/sql.js';
import { runLocalStatement } from '../../embedded/local-query.js';
import type { AnswerTable } from '../../lab/evaluate/answers.js';
import {
  listParameters,
  listPredictions,
  parameterColumns,
  predictionColumns,
  type ScoredFold,
  type TableRow,
} from '../../lab/evaluate/scores.js';
import type { OptionValues } from '../support/arguments.js';
import type { CommandContext } from '../support/command.js';
import { outputOption, writeOutput } from '../support/output-file.js';

export const tableOptions = {
  predictions: outputOption(
    'OUT',
    'write a row for each predicted answer to OUT: CSV, or Parquet if OUT ends with .parquet',
  ),
  parameters: outputOption('OUT', 'write a row for each skill to OUT: fitted parameters and figures'),
};

export type TablePaths = OptionValues<typeof tableOptions>;
type Columns = Readonly<Record<string, string>>;

/** @throws StartError if a file cannot be written */
export async function writeTables(
  { closers }: CommandContext,
  { predictions, parameters }: TablePaths,
  table: AnswerTable,
  scored: readonly ScoredFold[],
): Promise<void> {
  const write = (name: string, path: string, columns: Columns, pages: Iterable<readonly TableRow[]>) =>
    writeOutput(name, path, async () => {
      const temporary = `${path}.${process.pid}.tmp`;
      closers.add('temporary file', () => rm(temporary, { force: true }));
      const csv = Readable.from(encodeCsv(columns, pages));
      if (path.endsWith('.parquet')) await writeParquet(temporary, columns, csv);
      else await pipeline(csv, createWriteStream(temporary));
      await rename(temporary, path);
    });
  if (predictions !== null)
    await write('--predictions', predictions, predictionColumns, listPredictions(table, scored));
  if (parameters !== null)
    await write('--parameters', parameters, parameterColumns, [listParameters(table, scored)]);
}

function writeParquet(path: string, columns: Columns, csv: AsyncIterable<Buffer>): Promise<void> {
  const listed = Object.entries(columns).map(([name, type]) => `${name} ${type}`);
  const types = quoteLiteral(listed.join());
  const source = `file('stdin', 'CSVWithNames', ${types})`;
  return runLocalStatement(
    `INSERT INTO FUNCTION file(${quoteLiteral(path)}, 'Parquet', ${types}) SELECT * FROM ${source}`,
    csv,
  );
}

function* encodeCsv(columns: Columns, pages: Iterable<readonly TableRow[]>): Generator<Buffer> {
  yield Buffer.from(formatRow(Object.keys(columns)));
  for (const page of pages) yield Buffer.from(page.map(formatRow).join(''));
}

const formatRow = (row: TableRow): string => `${row.map(formatCell).join()}\n`;

/** RFC 4180. Also quotes texts that a reader could trim, or read as null. */
const formatCell = (cell: TableRow[number]): string =>
  typeof cell !== 'string' || /^[\w.:~-]*$/.test(cell) ? `${cell ?? ''}` : `"${cell.replaceAll('"', '""')}"`;
