/** What binary records have in common. All numbers are little-endian. */

/** DataView reads and writes a record in a tenth of the time that Buffer's methods take. */
export const viewOf = (record: Buffer): DataView =>
  new DataView(record.buffer, record.byteOffset, record.byteLength);

const maxCount = 2 ** 24 - 1;

/** Three bytes. A count stops at what they hold: a record that cannot be written would end its learner for ever. */
export function writeCount(record: DataView, count: number, at: number): void {
  write3Bytes(record, Math.min(count, maxCount), at);
}

export function write3Bytes(record: DataView, bits: number, at: number): void {
  record.setUint16(at, bits & 0xffff, true);
  record.setUint8(at + 2, bits >>> 16);
}

export const readCount = (record: DataView, at: number): number =>
  record.getUint16(at, true) | (record.getUint8(at + 2) << 16);
