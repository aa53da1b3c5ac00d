/** Lists of ids in pages: ordered by their UTF-8 bytes, each page after the last id of the one before. */
import { learningIdProblem } from '../contracts/ids.js';
import { invalid } from '../errors.js';

/** One character per byte: the language's own order of such texts is that of the bytes. */
const bytesOf = (id: string): string => Buffer.from(id).toString('latin1');
const textOf = (bytes: string): string => Buffer.from(bytes, 'latin1').toString();

export interface IdPage {
  readonly ids: readonly string[];
  /** Stands for the rest; null at the end. */
  readonly nextCursor: string | null;
}

/** @param ids in their order, from the first of the page on; one more than the page has tells that there is another */
export function pageOfIds(ids: readonly string[], limit: number): IdPage {
  const page = ids.slice(0, limit);
  return { ids: page, nextCursor: ids.length > limit ? encodeCursor(page.at(-1) as string) : null };
}

/**
 * In the order of their UTF-8 bytes.
 * @param after the last id of the page before, null for the first page; it need not be there any more
 */
export const sortedAfter = (ids: Iterable<string>, after: string | null): string[] => {
  const from = after === null ? '' : bytesOf(after);
  const bytes = Array.from(ids, bytesOf);
  return bytes
    .filter((id) => id > from)
    .sort()
    .map(textOf);
};

/** Tells a cursor from any other base64 text. */
const mark = 'after:';

const encodeCursor = (id: string): string => Buffer.from(mark + id).toString('base64url');

/** The id that a cursor holds; null without one. @throws ApiError INVALID_REQUEST for a text that is no cursor of ours */
export function idAfter(cursor: string | undefined): string | null {
  if (cursor === undefined) return null;
  const text = Buffer.from(cursor, 'base64url').toString();
  const id = text.slice(mark.length);
  // Encoded again, for decoding skips what is neither base64 nor UTF-8.
  if (learningIdProblem(id) === null && encodeCursor(id) === cursor) return id;
  const message = 'must be the next_cursor of an earlier page';
  throw invalid(`Invalid query: cursor ${message}`, [{ path: 'cursor', message }]);
}
