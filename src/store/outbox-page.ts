/** One page of an outbox stream as the TSV lines that ClickHouse takes. Bytes are copied, rows are not parsed. */
import { isErasure, type PendingCorrection } from '../contracts/corrections.js';

/**
 * As ioredis gives it: id, then names and values of the fields. What an outbox entry of ours says is in `r`, or in `c`.
 */
export type StreamEntry = [id: Buffer, fields: Buffer[]];

/** What is no row but a correction (contracts/corrections.ts). */
export const isCorrection = ([, fields]: StreamEntry): boolean => fields[0]?.toString('latin1') === 'c';

export const correctionOf = (partition: number, [id, fields]: StreamEntry): PendingCorrection => ({
  partition,
  id: id.toString('latin1'),
  text: fields[1]?.toString() ?? '',
});

/** The entries up to the first that holds up what is behind it: a correction that is no erasure. */
export function passable(entries: readonly StreamEntry[]): {
  readonly passed: readonly StreamEntry[];
  readonly stop: StreamEntry | undefined;
} {
  const at = entries.findIndex((entry) => isCorrection(entry) && !isErasure(correctionOf(0, entry).text));
  return at < 0 ? { passed: entries, stop: undefined } : { passed: entries.slice(0, at), stop: entries[at] };
}

export interface EncodedPage {
  rows: number;
  from: string;
  to: string;
  bytes: Buffer;
  /** Ids of the entries that hold no row. */
  unreadable: string[];
}

const tab = 0x09;
const lineFeed = 0x0a;
const dash = 0x2d;
/** The letter `r`. */
const rowField = 0x72;

/** @param skip rows to leave out, each as `partition\tms\tseq` */
export function encodePage(
  partition: number,
  entries: readonly StreamEntry[],
  skip?: ReadonlySet<string>,
): EncodedPage {
  const prefix = Buffer.from(`${partition}\t`);
  const there = skip ? entries.filter(([id]) => !skip.has(rowName(partition, id))) : entries;
  const kept = there.filter(holdsRow);
  const bytes = Buffer.allocUnsafe(sizeOf(kept, prefix.length));
  let at = 0;
  for (const [id, fields] of kept) {
    const row = rowOf(fields) as Buffer;
    at += prefix.copy(bytes, at);
    at = copyId(id, bytes, at);
    at += row.copy(bytes, at);
    bytes[at++] = lineFeed;
  }
  const unreadable =
    kept.length === there.length ? [] : there.filter((entry) => !holdsRow(entry)).map(idText);
  return { rows: kept.length, from: idText(kept.at(0)), to: idText(kept.at(-1)), bytes, unreadable };
}

/** A line feed within would be the end of one row and the beginning of another. */
function holdsRow([, fields]: StreamEntry): boolean {
  const row = rowOf(fields);
  return row !== undefined && row.length > 0 && !row.includes(lineFeed);
}

const rowName = (partition: number, id: Buffer): string =>
  `${partition}\t${id.toString('latin1').replace('-', '\t')}`;
export const idText = (entry: StreamEntry | undefined): string => entry?.[0].toString('latin1') ?? '';

/** Two more bytes a row: the tab after the id and the line feed. */
function sizeOf(entries: readonly StreamEntry[], prefix: number): number {
  let size = 0;
  for (const [id, fields] of entries) size += prefix + id.length + (rowOf(fields) as Buffer).length + 2;
  return size;
}

/** By its name: only what is not ours has other fields, or has them in another order. */
function rowOf(fields: readonly Buffer[]): Buffer | undefined {
  const at = fields.findIndex((name, i) => i % 2 === 0 && name.length === 1 && name[0] === rowField);
  return at < 0 ? undefined : fields[at + 1];
}

/** `ms-seq` becomes `ms\tseq\t`; returns the offset behind it. */
function copyId(id: Buffer, bytes: Buffer, at: number): number {
  const end = at + id.copy(bytes, at);
  bytes[bytes.indexOf(dash, at)] = tab;
  bytes[end] = tab;
  return end + 1;
}
