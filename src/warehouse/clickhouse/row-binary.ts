/** Rows as ClickHouse sends them in RowBinary: numbers little-endian, strings behind their length. */

/** One answer; `end` is where the next row begins. */
export interface RawRow {
  readonly learner: bigint;
  readonly at: number;
  readonly seconds: number;
  readonly difficulty: number;
  readonly correct: number;
  readonly skill: string;
  readonly item: string;
  readonly end: number;
}

const fixedBytes = 25;

/** @returns null where the buffer ends before the row does */
export function decodeRow(buffer: Buffer, start: number): RawRow | null {
  const strings = start + fixedBytes;
  if (strings > buffer.length) return null;
  const skillStart = afterLength(buffer, strings);
  const skillEnd = skillStart + lengthAt(buffer, strings);
  const itemStart = afterLength(buffer, skillEnd);
  const end = itemStart + lengthAt(buffer, skillEnd);
  // A length that is cut off reads as NaN, and so does everything behind it.
  if (!(end <= buffer.length)) return null;
  return {
    learner: buffer.readBigUInt64LE(start),
    at: buffer.readDoubleLE(start + 8),
    seconds: buffer.readFloatLE(start + 16),
    difficulty: buffer.readFloatLE(start + 20),
    correct: buffer[start + 24] as number,
    skill: buffer.toString('utf8', skillStart, skillEnd),
    item: buffer.toString('utf8', itemStart, end),
    end,
  };
}

/** LEB128 of one or two bytes: ids have at most 512 bytes. */
function lengthAt(buffer: Buffer, at: number): number {
  const low = buffer[at] ?? Number.NaN;
  return low < 128 ? low : low - 128 + 128 * (buffer[at + 1] ?? Number.NaN);
}

const afterLength = (buffer: Buffer, at: number): number => at + ((buffer[at] ?? Number.NaN) < 128 ? 1 : 2);
