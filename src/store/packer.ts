/**
 * MessagePack, as much of it as the scripts use: Redis's Lua reads it with `cmsgpack.unpack` and writes it with
 * `cmsgpack.pack`, both in C, and lists in it go to commands as they are.
 */
export interface Packer {
  /** Begins a list of that many values, up to 65,535. */
  list(length: number): void;
  /** A whole number below 2^32. */
  uint(value: number): void;
  text(value: string): void;
  bytes(value: Uint8Array): void;
  /** What was written; the packer is not to be used after it. */
  done(): Buffer;
}

/** Longest head of a value. */
const headBytes = 5;
/** UTF-16 code units become at most this many bytes each. */
const maxUnitBytes = 3;

export function createPacker(size = 16_384): Packer {
  let buffer = Buffer.allocUnsafe(size);
  let end = 0;

  function reserve(bytes: number): void {
    if (end + headBytes + bytes <= buffer.length) return;
    const larger = Buffer.allocUnsafe(2 * (buffer.length + bytes));
    buffer.copy(larger, 0, 0, end);
    buffer = larger;
  }

  /** `raw` values: lengths below 32 in one byte, then behind 8, 16 and 32 bits. */
  function head(length: number): void {
    if (length < 32) {
      buffer[end++] = 0xa0 | length;
    } else if (length < 65_536) {
      buffer[end] = 0xda;
      end = buffer.writeUInt16BE(length, end + 1);
    } else {
      buffer[end] = 0xdb;
      end = buffer.writeUInt32BE(length, end + 1);
    }
  }

  return {
    list: (length) => {
      reserve(0);
      if (length < 16) {
        buffer[end++] = 0x90 | length;
      } else {
        buffer[end] = 0xdc;
        end = buffer.writeUInt16BE(length, end + 1);
      }
    },
    uint: (value) => {
      reserve(0);
      if (value < 128) {
        buffer[end++] = value;
      } else {
        buffer[end] = 0xce;
        end = buffer.writeUInt32BE(value, end + 1);
      }
    },
    text: (value) => {
      const most = maxUnitBytes * value.length;
      reserve(most);
      // The place of a length is known before the length is, so nobody has to count the bytes first.
      if (most < 32) {
        const written = buffer.write(value, end + 1);
        buffer[end] = 0xa0 | written;
        end += 1 + written;
      } else if (most < 65_536) {
        const written = buffer.write(value, end + 3);
        buffer[end] = 0xda;
        buffer.writeUInt16BE(written, end + 1);
        end += 3 + written;
      } else {
        head(Buffer.byteLength(value));
        end += buffer.write(value, end);
      }
    },
    bytes: (value) => {
      reserve(value.length);
      head(value.length);
      buffer.set(value, end);
      end += value.length;
    },
    done: () => buffer.subarray(0, end),
  };
}
