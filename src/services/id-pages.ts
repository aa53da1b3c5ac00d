/** Lists of ids in pages: ordered by their UTF-8 bytes, each page after the last id of the one before. */
import { learningIdProblem } from '../contracts/ids.js';

/** One character per byte: the language's own order of such texts is that of the bytes. */
const bytesOf = (id: string): string => Buffer.from(id).toString('latin1');
const textOf = (bytes: string): string => Buffer.from(bytes, 'latin1').toString();

/** Ids in the order of their UTF-8 bytes, as they are compared. */
export const sortIds = (ids: Iterable<string>): string[] => Array.from(ids, bytesOf).sort().map(textOf);

export interface IdPage {
  readonly ids: readonly string[];
  /** Stands for the rest; null at the end. */
  readonly nextCursor: string | null;
}

/**
 * @param ids different ones, in any order
 * @param after the last id of the page before, null for the first page; it need not be there any more
 */
export function pageOfIds(ids: Iterable<string>, after: string | null, limit: number): IdPage {
  const from = after === null ? '' : bytesOf(after);
  const rest = Array.from(ids, bytesOf)
    .filter((bytes) => bytes > from)
    .sort();
  const page = rest.slice(0, limit).map(textOf);
  return { ids: page, nextCursor: rest.length > limit ? encodeCursor(page.at(-1) as string) : null };
}

/** Tells a cursor from any other base64 text. */
const mark = 'after:';

const encodeCursor = (id: string): string => Buffer.from(mark + id).toString('base64url');

/** The id that a cursor holds, or null for a text that is no cursor of ours. */
export function decodeCursor(cursor: string): string | null {
  const text = Buffer.from(cursor, 'base64url').toString();
  const id = text.slice(mark.length);
  // Encoded again, for decoding skips what is neither base64 nor UTF-8.
  return learningIdProblem(id) === null && encodeCursor(id) === cursor ? id : null;
}
