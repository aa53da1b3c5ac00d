/** Lists in pages; those of ids are ordered by their UTF-8 bytes, each page after the last id of the one before. */
import Type, { type Static } from 'typebox';
import { learningIdProblem } from '../../contracts/ids.js';
import { invalid } from '../../errors.js';
import { mapInSlices } from '../../slices.js';

export const PageQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1000,
      description: 'Most entries of a page; absent: 100, of mastery all',
    }),
  ),
  cursor: Type.Optional(Type.String({ description: 'next_cursor of the page before' })),
});
export type PageQuery = Static<typeof PageQuery>;

export const pageLimit = 100;

interface Page<Item> {
  readonly items: readonly Item[];
  readonly next_cursor: string | null;
}

/** @param mark distinguishes a cursor from any other base64 text @param read null for no value of such a cursor */
export function createCursors<Value extends string | number>(
  mark: string,
  read: (text: string) => Value | null,
) {
  const encode = (value: Value): string => Buffer.from(`${mark}${value}`).toString('base64url');
  return {
    encode,
    /** What the cursor holds; null without one. @throws ApiError INVALID_REQUEST for a text that is no cursor of ours */
    decode: (cursor: string | undefined): Value | null => {
      if (cursor === undefined) return null;
      const value = read(Buffer.from(cursor, 'base64url').toString().slice(mark.length));
      // Encoded again, for decoding skips what is neither base64 nor UTF-8.
      if (value !== null && encode(value) === cursor) return value;
      const message = 'must be the next_cursor of an earlier page';
      throw invalid(`Invalid query: cursor ${message}`, [{ path: 'cursor', message }]);
    },
  };
}

/** Of a number above 1: that of the last entry on the page before. */
export const createNumberCursors = (mark: string, below = Number.MAX_SAFE_INTEGER) =>
  createCursors(mark, (text) => {
    const number = Number(text);
    return Number.isSafeInteger(number) && number > 1 && number < below ? number : null;
  });

/** JSON of fields and a page of a list, which is made in slices. @param describe absent: items are told as they are */
export async function listJson<Item>(
  fields: object,
  name: string,
  { items, next_cursor }: Page<Item>,
  describe: (item: Item) => unknown = (item) => item,
): Promise<string> {
  const entries = await mapInSlices(items, (item) => JSON.stringify(describe(item)));
  const end = JSON.stringify({ next_cursor }).slice(1);
  return `${JSON.stringify({ ...fields, [name]: [] }).slice(0, -2)}${entries.join()}],${end}`;
}

/** One character per byte: the language's own order of such texts is that of the bytes. */
const bytesOf = (id: string): string => Buffer.from(id).toString('latin1');
const textOf = (bytes: string): string => Buffer.from(bytes, 'latin1').toString();

const idCursors = createCursors('after:', (id) => (learningIdProblem(id) === null ? id : null));

/** The id that a cursor holds; null without one. @throws ApiError INVALID_REQUEST */
export const idAfter = idCursors.decode;

/** The cursor of the page behind an id. */
export const cursorAfter = idCursors.encode;

/**
 * @param found in their order, from the first of the page on; one more than the limit if there is another page
 * @param cursorOf of the page behind an item
 */
export function pageOf<Item>(
  found: readonly Item[],
  limit: number,
  cursorOf: (last: Item) => string,
): Page<Item> {
  const items = found.slice(0, limit);
  const last = found.length > limit ? items.at(-1) : undefined;
  return { items, next_cursor: last === undefined ? null : cursorOf(last) };
}

/** @param placeOf texts in the order of time @param after place of the last one on the page before; null: there is none */
export const newestFirst = <Item>(
  all: readonly Item[],
  placeOf: (one: Item) => string,
  after: string | null,
) =>
  all
    .filter((one) => after === null || placeOf(one) < after)
    .sort((a, b) => (placeOf(a) < placeOf(b) ? 1 : -1));

/** In the order of their UTF-8 bytes. @param after last id of the page before, null for the first page; may be gone */
export const sortedAfter = (ids: Iterable<string>, after: string | null): string[] => {
  const from = after === null ? '' : bytesOf(after);
  const bytes = Array.from(ids, bytesOf);
  return bytes
    .filter((id) => id > from)
    .sort()
    .map(textOf);
};
