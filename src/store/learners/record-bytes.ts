/** Little-endian records. Another format or length is an error: a guess would silently change masteries. */
import { toDataView } from '../redis/wire/binary.js';

export const recordFormat = 1;
const noDay = 0xffff;

export const allocateRecord = (bytes: number): Buffer => Buffer.allocUnsafe(bytes).fill(0);

/** @param bytes of a record; at least this many if `hasText`: a text follows */
export function openRecord(stored: Buffer, bytes: number, hasText = false): DataView {
  if (stored[0] !== recordFormat) throw new Error(`unsupported record format ${stored[0]}`);
  if (stored.length !== bytes && !(hasText && stored.length > bytes))
    throw new Error(`unsupported record of ${stored.length} bytes`);
  return toDataView(stored);
}

/** Days since 1970; -1: none. */
export function writeDay(record: DataView, day: number, at: number): void {
  record.setUint16(at, day < 0 ? noDay : day, true);
}

export function readDay(record: DataView, at: number): number {
  const day = record.getUint16(at, true);
  return day === noDay ? -1 : day;
}
