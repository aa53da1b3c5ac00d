export type PackReader = ReturnType<typeof createPackReader>;

/**
 * Source: MessagePack specification (fixarray, array 16/32, fixstr, str 8/16/32; big-endian lengths).
 * @throws Error for other formats
 */
export function createPackReader(packed: Buffer, from = 0) {
  let at = from;
  const byte = (): number => packed[at++] ?? -1;
  const u16 = (): number => 256 * byte() + byte();
  const u32 = (): number => 65_536 * u16() + u16();

  function list(): number {
    const head = byte();
    if (head >= 0x90 && head <= 0x9f) return head - 0x90;
    if (head === 0xdc) return u16();
    if (head === 0xdd) return u32();
    throw unexpected('a list', head);
  }

  function length(): number {
    const head = byte();
    if (head >= 0xa0 && head <= 0xbf) return head - 0xa0;
    if (head === 0xd9) return byte();
    if (head === 0xda) return u16();
    if (head === 0xdb) return u32();
    throw unexpected('a string', head);
  }

  function skip(): number {
    const size = length();
    at += size;
    return at - size;
  }

  return {
    list,
    skip,
    /** A view, not a copy. */
    bytes: (): Buffer => packed.subarray(skip(), at),
    text: () => packed.toString('utf8', skip(), at),
    position: () => at,
  };
}

const unexpected = (wanted: string, head: number): Error =>
  new Error(`the reply of a script has ${head} where ${wanted} is expected`);
