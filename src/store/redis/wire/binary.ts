import { hashWithSeed, keySeed } from '../../../domain/base/text-hash.js';

/** Ten times as fast as the methods of Buffer. */
export const toDataView = (record: Buffer): DataView =>
  new DataView(record.buffer, record.byteOffset, record.byteLength);

const maxCount = 2 ** 24 - 1;

/** Caps the count: an error would block the learner forever. */
export function writeCount(record: DataView, count: number, at: number): void {
  writeUint24(record, Math.min(count, maxCount), at);
}

export function writeUint24(record: DataView, bits: number, at: number): void {
  record.setUint16(at, bits & 0xffff, true);
  record.setUint8(at + 2, bits >>> 16);
}

export const readCount = (record: DataView, at: number): number =>
  record.getUint16(at, true) | (record.getUint8(at + 2) << 16);

/** Stored: never change it. Not secure against deliberate collisions. */
export function hashText(text: string): Buffer {
  const hash = Buffer.allocUnsafe(8);
  hash.writeUInt32LE(hashWithSeed(text, keySeed), 0);
  hash.writeUInt32LE(hashWithSeed(text, 0x3c6ef372), 4);
  return hash;
}
