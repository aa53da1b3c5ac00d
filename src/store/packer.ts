/** Writes the packed arguments of the scripts: little-endian numbers, and texts behind a 2-byte length. */
export interface Packer {
  u16(value: number): void;
  u32(value: number): void;
  /** @throws RangeError over 65,535 bytes */
  text(value: string | Buffer): void;
  bytes(value: Buffer): void;
  /** What was written. */
  done(): Buffer;
}

export function createPacker(size = 4096): Packer {
  let buffer = Buffer.allocUnsafe(size);
  let end = 0;
  const reserve = (bytes: number): number => {
    if (end + bytes > buffer.length)
      buffer = Buffer.concat([buffer], Math.max(2 * buffer.length, end + bytes));
    const at = end;
    end += bytes;
    return at;
  };
  // reserve() may replace the buffer, so the place is taken before the buffer is named.
  const u16 = (value: number): void => {
    const at = reserve(2);
    buffer.writeUInt16LE(value, at);
  };
  const u32 = (value: number): void => {
    const at = reserve(4);
    buffer.writeUInt32LE(value, at);
  };
  const bytes = (value: Buffer): void => {
    const at = reserve(value.length);
    value.copy(buffer, at);
  };
  const text = (value: string | Buffer): void => {
    const length = typeof value === 'string' ? Buffer.byteLength(value) : value.length;
    u16(length);
    if (typeof value !== 'string') {
      bytes(value);
      return;
    }
    const at = reserve(length);
    buffer.write(value, at);
  };
  return { u16, u32, text, bytes, done: () => buffer.subarray(0, end) };
}

/** Reads texts one after another; an empty one is null. */
export function createReader(buffer: Buffer): () => Buffer | null {
  let at = 0;
  return () => {
    const length = buffer.readUInt16LE(at);
    const start = at + 2;
    at = start + length;
    return length === 0 ? null : buffer.subarray(start, at);
  };
}
