import { crc32, deflateRawSync } from 'node:zlib';

/** Fields of two or four bytes, little endian. */
const pack = (...fields: readonly (readonly [bytes: 2 | 4, value: number])[]): Buffer =>
  Buffer.concat(
    fields.map(([bytes, value]) => {
      const field = Buffer.alloc(bytes);
      field.writeUIntLE(value, 0, bytes);
      return field;
    }),
  );

/** A ZIP archive (APPNOTE 4.3), deflated. */
export function buildZip(files: Readonly<Record<string, string>>): Buffer {
  const entries: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, text] of Object.entries(files)) {
    const packed = deflateRawSync(text);
    const common = pack(
      ...([
        [2, 20],
        [2, 0x0800],
        [2, 8],
        [2, 0],
        [2, 0x21],
        [4, crc32(text)],
      ] as const),
      ...([
        [4, packed.length],
        [4, Buffer.byteLength(text)],
        [2, Buffer.byteLength(name)],
        [2, 0],
      ] as const),
    );
    const entry = Buffer.concat([pack([4, 0x04034b50]), common, Buffer.from(name), packed]);
    directory.push(
      pack([4, 0x02014b50], [2, 20]),
      common,
      pack([2, 0], [2, 0], [2, 0], [4, 0], [4, offset]),
      Buffer.from(name),
    );
    entries.push(entry);
    offset += entry.length;
  }
  const central = Buffer.concat(directory);
  const count = Object.keys(files).length;
  const end = pack(
    ...([
      [4, 0x06054b50],
      [2, 0],
      [2, 0],
      [2, count],
      [2, count],
      [4, central.length],
      [4, offset],
      [2, 0],
    ] as const),
  );
  return Buffer.concat([...entries, central, end]);
}
