/** A line without its end; null for one that is too long. */
export interface TextLine {
  /** From 1. */
  readonly line: number;
  readonly text: string | null;
}

/** Longest line in bytes: memory must not grow with what comes in. */
export const maxLineBytes = 64 * 1024;
const lineFeed = 0x0a;

/** Splits bytes into lines of UTF-8, holding one line at a time. */
export async function* splitLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<TextLine> {
  let line = 1;
  let parts: Buffer[] = [];
  let length = 0;
  const take = (part: Buffer): void => {
    length += part.length;
    if (length <= maxLineBytes) parts.push(part);
  };
  const finish = (): TextLine => {
    const text = length > maxLineBytes ? null : Buffer.concat(parts).toString('utf8');
    parts = [];
    length = 0;
    return { line: line++, text: text?.replace(/^\uFEFF|\r$/g, '') ?? null };
  };
  for await (const chunk of chunks) {
    let at = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, at)) {
      take(chunk.subarray(at, end));
      at = end + 1;
      yield finish();
    }
    take(chunk.subarray(at));
  }
  if (length > 0) yield finish();
}
