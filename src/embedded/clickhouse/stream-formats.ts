import { findFormats } from './sql.js';

/*
 * The engine formats each block of a stream as a complete result (chdb 3.4). Rows can be joined if the head
 * is sent once.
 */
const headlessFormats: ReadonlySet<string> = new Set(
  `bsoneachrow buffers csv customseparated jsoncompacteachrow jsoncompactstringseachrow jsoneachrow jsonl jsonlines
   jsonstringseachrow lineasstring msgpack native ndjson null prettyjsoneachrow prettyjsonlines prettyndjson protobuf raw rawblob
   rowbinary sqlinsert tabseparated tabseparatedraw tskv tsv tsvraw`.split(/\s+/),
);

/** Excluded: raw formats, because names may contain line ends; and progress lines, which may precede a head. */
const headFormat =
  /^((csv|customseparated|jsoncompact(strings)?eachrow|rowbinary|tabseparated|tsv)withnames(andtypes)?|markdown|md|arrowstream|values)$/;

/** More than rows after a head, rows in brackets, or other heads. */
const unstreamablePattern =
  /\b(totals|extremes|output_format_json_array_of_rows|output_format_arrow_\w*dictionary|format_custom_\w+|\w+_in_binary_format)\b/i;

/** Matches only at the end, and not in a comment or string. */
const trailingFormat = /(?:^|\n)(?:(?!--|#|\/\*).)*\bFORMAT\s+(\w+)[\s;]*$/i;

/**
 * @returns lower-case format for a stream; null is always correct, but slower and limited in size
 * @param fallback format of a statement without one @param settings names of the request's settings
 */
export function findStreamFormat(statement: string, fallback: string, settings: string): string | null {
  if (unstreamablePattern.test(`${statement} ${settings}`)) return null;
  const possible = listPossibleFormats(statement, fallback);
  const [first = ''] = possible;
  if (possible.length === 1 && headFormat.test(first)) return first;
  return possible.every((format) => headlessFormats.has(format)) ? first : null;
}

/** @returns true if the result has at most one short line, in every format that the statement may have */
export const hasNoRows = (statement: string, fallback: string): boolean =>
  listPossibleFormats(statement, fallback).every((format) => format === 'null' || format === 'hash');

function listPossibleFormats(statement: string, fallback: string): string[] {
  const named = findFormats(statement);
  const last = trailingFormat.exec(statement)?.[1];
  const possible = last === undefined ? [fallback, ...named] : [last];
  return possible.map((format) => format.toLowerCase());
}

const arrowEnd = Buffer.from([255, 255, 255, 255, 0, 0, 0, 0]);
const emptyBuffer = Buffer.alloc(0);

/** Joins blocks to a whole result: send `next` of each block, then `end`. */
export function createBlockJoiner(format: string) {
  if (headlessFormats.has(format))
    return { next: (block: Uint8Array): Uint8Array => block, end: () => emptyBuffer };
  const tail = format === 'arrowstream' ? arrowEnd : emptyBuffer;
  const separator = Buffer.from(format === 'values' ? ',' : '');
  let head: Buffer | null = null;
  return {
    next(bytes: Uint8Array): Uint8Array {
      const block = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const rowsEnd = block.length - tail.length;
      const isFirst = head === null;
      head ??= Buffer.from(block.subarray(0, measureHead(format, block)));
      const isWhole = block.subarray(0, head.length).equals(head) && block.subarray(rowsEnd).equals(tail);
      if (!isWhole) throw new Error(`a block of ${format} has another head or tail than the first block`);
      const rows = block.subarray(isFirst ? 0 : head.length, rowsEnd);
      return isFirst || separator.length === 0 ? rows : Buffer.concat([separator, rows]);
    },
    end: (): Uint8Array => (head === null ? emptyBuffer : tail),
  };
}

function measureHead(format: string, block: Buffer): number {
  // Schema message: 4 bytes of mark, 4 of length, no body.
  if (format === 'arrowstream') return 8 + block.readInt32LE(4);
  if (format === 'values') return 0;
  const parts = /andtypes$|^m/.test(format) ? 2 : 1;
  if (format.startsWith('rowbinary')) return measureStrings(block, parts);
  // A quoted name may contain line ends, and its quotes are doubled.
  const line = format.startsWith('csv') ? '(?:"[^"]*"|[^"\\n])*\\n' : '[^\\n]*\\n';
  return new RegExp(`^(?:${line}){${parts}}`).exec(block.toString('latin1'))?.[0].length ?? 0;
}

/** Number of columns, names, then types. Numbers and lengths are LEB128. */
function measureStrings(block: Buffer, parts: number): number {
  let at = 0;
  const number = (): number => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = block[at++] ?? 0;
      value += (byte % 128) * factor;
      if (byte < 128) return value;
    }
  };
  for (let left = number() * parts; left > 0; left -= 1) {
    const length = number();
    at += length;
  }
  return at;
}
