export type MessagePackReader = ReturnType<typeof createMessagePackReader>;

/**
 * Source: MessagePack specification (fixarray, array 16/32, fixstr, str 8/16/32; big-endian lengths).
 * @throws Error for other formats
 */
export function createMessagePackReader(packed: Buffer, from = 0) {
  let at = from;
  const readByte = (): number => packed[at++] ?? -1;
  const readUint16 = (): number => 256 * readByte() + readByte();
  const readUint32 = (): number => 65_536 * readUint16() + readUint16();

  function readListLength(): number {
    const head = readByte();
    if (head >= 0x90 && head <= 0x9f) return head - 0x90;
    if (head === 0xdc) return readUint16();
    if (head === 0xdd) return readUint32();
    throw createFormatError('a list', head);
  }

  function readStringLength(): number {
    const head = readByte();
    if (head >= 0xa0 && head <= 0xbf) return head - 0xa0;
    if (head === 0xd9) return readByte();
    if (head === 0xda) return readUint16();
    if (head === 0xdb) return readUint32();
    throw createFormatError('a string', head);
  }

  function skipString(): number {
    const size = readStringLength();
    at += size;
    return at - size;
  }

  return {
    list: readListLength,
    skip: skipString,
    /** A view, not a copy. */
    readBytes: (): Buffer => packed.subarray(skipString(), at),
    readText: () => packed.toString('utf8', skipString(), at),
    position: () => at,
  };
}

const createFormatError = (expected: string, head: number): Error =>
  new Error(`a script replied with ${head} instead of ${expected}`);
