import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Session } from 'chdb';
import type { RowInsert, WriteSummary } from './messages.js';
import { literal, quotedName } from './sql.js';

/*
 * Rows that come as text behind a statement are cut into SQL tokens by the engine before it reads them as rows
 * (seen in a profile of 26.7), which costs as much as reading them. Out of a file they are only read.
 */

/** Below this many bytes a file costs more than it saves. */
const smallest = 64 * 1024;

/** INFILE takes these for patterns of names. */
const pattern = /[*?{}]/;

/** Whether the rows are worth a file: lines of one row each, so that they can be counted. */
export const goesByFile = ({ rows, format }: RowInsert, dataDir: string): boolean =>
  rows.length >= smallest && (format === 'TabSeparated' || format === 'TSV') && !pattern.test(dataDir);

/** One insert runs at a time: the file has a fixed name, and what a killed process left is written over. */
export async function insertByFile(
  session: Session,
  { table, columns, rows }: RowInsert,
  dataDir: string,
): Promise<WriteSummary> {
  const file = join(dataDir, 'insert.tsv');
  const named = columns === null ? '' : ` (${columns.map(quotedName).join(', ')})`;
  const into = `${table.split('.').map(quotedName).join('.')}${named}`;
  try {
    await writeFile(file, rows, { mode: 0o600 });
    await session.queryAsync(`INSERT INTO ${into} FROM INFILE ${literal(file)} FORMAT TabSeparated`);
  } finally {
    await rm(file, { force: true });
  }
  return { writtenRows: linesOf(rows), writtenBytes: rows.length };
}

function linesOf(rows: Uint8Array): number {
  let lines = rows.at(-1) === 0x0a ? 0 : 1;
  for (let at = rows.indexOf(0x0a); at >= 0; at = rows.indexOf(0x0a, at + 1)) lines++;
  return lines;
}
