/**
 * Reads what Redis's scripts pack as MessagePack, as far as they use it: lists and strings, one after another.
 * Source: the MessagePack specification, formats fixarray, array 16 and 32, fixstr, str 8, 16 and 32, each length big-endian.
 */
export type PackReader = ReturnType<typeof createPackReader>;

/**
 * Its functions throw an Error at anything else than what they are asked for.
 * @param from where the first value begins
 */
export function createPackReader(packed: Buffer, from = 0) {
  let at = from;
  const byte = (): number => packed[at++] ?? -1;
  const u16 = (): number => 256 * byte() + byte();

  /** @returns how many of the following values belong to the list */
  function list(): number {
    const head = byte();
    if (head >= 0x90 && head <= 0x9f) return head - 0x90;
    if (head === 0xdc) return u16();
    if (head === 0xdd) return 65_536 * u16() + u16();
    throw unexpected('a list', head);
  }

  /** Leaves the reader at the first byte of the string. */
  function length(): number {
    const head = byte();
    if (head >= 0xa0 && head <= 0xbf) return head - 0xa0;
    if (head === 0xd9) return byte();
    if (head === 0xda) return u16();
    if (head === 0xdb) return 65_536 * u16() + u16();
    throw unexpected('a string', head);
  }

  /** @returns where the string begins that the reader has passed */
  function pass(): number {
    const size = length();
    at += size;
    return at - size;
  }

  /** A part of the packed bytes, not a copy. */
  function bytes(): Buffer {
    // Two steps: `at` must be read after the pass.
    const from = pass();
    return packed.subarray(from, at);
  }

  return {
    list,
    bytes,
    text: () => packed.toString('utf8', pass(), at),
    /** Passes over a string. */
    skip: pass,
    /** Where the next value begins. */
    position: () => at,
  };
}

const unexpected = (wanted: string, head: number): Error =>
  new Error(`the reply of a script has ${head} where ${wanted} is expected`);
