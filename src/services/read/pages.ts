/** Ids are ordered by UTF-8 bytes. A page starts after the last id of the previous one. */
import Type, { type Static } from 'typebox';
import { findIdProblem } from '../../contracts/ids.js';
import { validationError } from '../../contracts/validate.js';
import { mapInSlices } from '../../slices.js';

export const PageQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1000,
      description: 'Maximum entries of a page; absent: 100, for mastery all',
    }),
  ),
  cursor: Type.Optional(Type.String({ description: 'next_cursor of the previous page' })),
});
export type PageQuery = Static<typeof PageQuery>;

export const pageLimit = 100;

interface Page<Item> {
  readonly items: readonly Item[];
  readonly next_cursor: string | null;
}

/** @param prefix distinguishes the list @param parse null for an invalid value */
export function createCursors<Value extends string | number>(
  mark: string,
  read: (text: string) => Value | null,
) {
  const encode = (value: Value): string => Buffer.from(`${mark}${value}`).toString('base64url');
  return {
    encode,
    /** @throws ApiError INVALID_REQUEST for an invalid cursor */
    decode: (cursor: string | undefined): Value | null => {
      if (cursor === undefined) return null;
      const value = read(Buffer.from(cursor, 'base64url').toString().slice(mark.length));
      // Compare the encoded form: decoding ignores invalid base64 and UTF-8.
      if (value !== null && encode(value) === cursor) return value;
      throw validationError('query', {
        path: 'cursor',
        message: 'must be the next_cursor of an earlier page',
      });
    },
  };
}

/** Accepts numbers above 1. */
export const createNumberCursors = (mark: string, below = Number.MAX_SAFE_INTEGER) =>
  createCursors(mark, (text) => {
    const number = Number(text);
    return Number.isSafeInteger(number) && number > 1 && number < below ? number : null;
  });

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

/** One character per byte, so that comparing strings compares bytes. */
const bytesOf = (id: string): string => Buffer.from(id).toString('latin1');
const textOf = (bytes: string): string => Buffer.from(bytes, 'latin1').toString();

const idCursors = createCursors('after:', (id) => (findIdProblem(id) === null ? id : null));

export const idAfter = idCursors.decode;

export const cursorAfter = idCursors.encode;

/** @param found limit + 1 entries if there is another page */
export function pageOf<Item>(
  found: readonly Item[],
  limit: number,
  cursorOf: (last: Item) => string,
): Page<Item> {
  const items = found.slice(0, limit);
  const last = found.length > limit ? items.at(-1) : undefined;
  return { items, next_cursor: last === undefined ? null : cursorOf(last) };
}

/** @param toPosition sorts by time @param after last position of the previous page */
export const newestFirst = <Item>(
  all: readonly Item[],
  placeOf: (one: Item) => string,
  after: string | null,
) =>
  all
    .filter((one) => after === null || placeOf(one) < after)
    .sort((a, b) => (placeOf(a) < placeOf(b) ? 1 : -1));

/** @param after may no longer exist */
export const sortedAfter = (ids: Iterable<string>, after: string | null): string[] => {
  const from = after === null ? '' : bytesOf(after);
  const bytes = Array.from(ids, bytesOf);
  return bytes
    .filter((id) => id > from)
    .sort()
    .map(textOf);
};
