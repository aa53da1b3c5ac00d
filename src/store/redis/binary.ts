/** Binary records, little-endian, and hashes of texts. */

/** DataView reads and writes a record in a tenth of the time that Buffer's methods take. */
export const viewOf = (record: Buffer): DataView =>
  new DataView(record.buffer, record.byteOffset, record.byteLength);

const maxCount = 2 ** 24 - 1;

/** Three bytes. A larger count is written as `maxCount`: an error would stop the learner for ever. */
export function writeCount(record: DataView, count: number, at: number): void {
  write3Bytes(record, Math.min(count, maxCount), at);
}

export function write3Bytes(record: DataView, bits: number, at: number): void {
  record.setUint16(at, bits & 0xffff, true);
  record.setUint8(at + 2, bits >>> 16);
}

export const readCount = (record: DataView, at: number): number =>
  record.getUint16(at, true) | (record.getUint8(at + 2) << 16);

/** 64-bit hash: two murmur3-like ones of UTF-16 code units. Must never change. Attackers can make texts that collide. */
export function hashText(text: string): Buffer {
  let low = 0x9747b28c;
  let high = 0x3c6ef372;
  for (let i = 0; i < text.length; i++) {
    let unit = Math.imul(text.charCodeAt(i), 0xcc9e2d51);
    unit = Math.imul((unit << 15) | (unit >>> 17), 0x1b873593);
    low = step(low, unit);
    high = step(high, unit);
  }
  const hash = Buffer.allocUnsafe(8);
  hash.writeInt32LE(finish(low ^ text.length), 0);
  hash.writeInt32LE(finish(high ^ text.length), 4);
  return hash;
}

function step(hash: number, unit: number): number {
  const mixed = hash ^ unit;
  return (Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0xe6546b64) | 0;
}

function finish(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
