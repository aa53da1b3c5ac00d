/** Converts outbox entries to TSV lines. Rows are copied, not parsed. */
import { toFirstRowId } from '../../contracts/outbox/outbox-ids.js';
import { computeSum } from '../../lists.js';
import { findField } from '../redis/commands/bulk-operations.js';

export type RawStreamEntry = [id: Buffer, fields: Buffer[]];

/** See contracts/corrections/corrections.ts. */
export const isCorrection = ([, fields]: RawStreamEntry): boolean => fields[0]?.toString('latin1') === 'c';

export interface RowsEntry {
  readonly id: string;
  readonly lines: readonly Buffer[];
}

const lineFeed = 0x0a;

export function parseOutboxEntry([id, fields]: RawStreamEntry): RowsEntry {
  const rows = findField(fields, 'r');
  return { id: id.toString('latin1'), lines: rows === null ? [] : splitLines(rows) };
}

function splitLines(rows: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let from = 0; from < rows.length; ) {
    const found = rows.indexOf(lineFeed, from);
    const to = found < 0 ? rows.length : found;
    lines.push(rows.subarray(from, to));
    from = to + 1;
  }
  return lines;
}

/** Partition, milliseconds and number, each with a tab. */
const maxPrefixBytes = 5 + 13 + 16 + 3;

/** @param skippedRows each as `partition\tms\tseq` */
export function encodePage(
  partition: number,
  entries: readonly RowsEntry[],
  skippedRows?: ReadonlySet<string>,
): { readonly rows: number; readonly bytes: Buffer } {
  const bytes = Buffer.allocUnsafe(computeSum(entries.map(computeMaxBytes)));
  let rows = 0;
  let at = 0;
  for (const { id, lines } of entries) {
    const { ms, seq } = toFirstRowId(id);
    for (const [index, line] of lines.entries()) {
      const name = `${partition}\t${ms}\t${seq + index}`;
      if (skippedRows?.has(name)) continue;
      at += bytes.write(`${name}\t`, at, 'latin1');
      at += line.copy(bytes, at);
      bytes[at++] = lineFeed;
      rows += 1;
    }
  }
  return { rows, bytes: bytes.subarray(0, at) };
}

const computeMaxBytes = ({ lines }: RowsEntry): number =>
  computeSum(lines.map(({ length }) => maxPrefixBytes + length + 1));
