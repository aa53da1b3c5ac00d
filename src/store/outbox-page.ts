/** One page of an outbox stream as the TSV lines that ClickHouse takes. Bytes are copied, rows are not parsed. */

/** As ioredis gives it: id, then names and values of the fields; an outbox entry has the one field `r`. */
export type StreamEntry = [id: Buffer, fields: Buffer[]];

export interface EncodedPage {
  rows: number;
  from: string;
  to: string;
  bytes: Buffer;
}

const tab = 0x09;
const lineFeed = 0x0a;
const dash = 0x2d;

/** @param skip rows to leave out, each as `partition\tms\tseq` */
export function encodePage(
  partition: number,
  entries: readonly StreamEntry[],
  skip?: ReadonlySet<string>,
): EncodedPage {
  const prefix = Buffer.from(`${partition}\t`);
  const kept = skip ? entries.filter(([id]) => !skip.has(rowName(partition, id))) : entries;
  const bytes = Buffer.allocUnsafe(sizeOf(kept, prefix.length));
  let at = 0;
  for (const [id, fields] of kept) {
    const row = rowOf(id, fields);
    at += prefix.copy(bytes, at);
    at = copyId(id, bytes, at);
    at += row.copy(bytes, at);
    bytes[at++] = lineFeed;
  }
  return { rows: kept.length, from: idText(kept.at(0)), to: idText(kept.at(-1)), bytes };
}

const rowName = (partition: number, id: Buffer): string =>
  `${partition}\t${id.toString('latin1').replace('-', '\t')}`;
const idText = (entry: StreamEntry | undefined): string => entry?.[0].toString('latin1') ?? '';

/** Two more bytes a row: the tab after the id and the line feed. */
function sizeOf(entries: readonly StreamEntry[], prefix: number): number {
  let size = 0;
  for (const [id, fields] of entries) size += prefix + id.length + rowOf(id, fields).length + 2;
  return size;
}

function rowOf(id: Buffer, fields: readonly Buffer[]): Buffer {
  const value = fields[1];
  if (value === undefined) throw new Error(`outbox entry ${id.toString('latin1')} has no row`);
  return value;
}

/** `ms-seq` becomes `ms\tseq\t`; returns the offset behind it. */
function copyId(id: Buffer, bytes: Buffer, at: number): number {
  const end = at + id.copy(bytes, at);
  bytes[bytes.indexOf(dash, at)] = tab;
  bytes[end] = tab;
  return end + 1;
}
