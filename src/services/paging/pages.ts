/** Ids are ordered by UTF-8 bytes. A page starts after the last id of the previous one. */
import Type, { type Static } from 'typebox';
import { findIdProblem } from '../../contracts/schema/ids.js';
import { validationError } from '../../contracts/schema/validate.js';
import { mapInSlices } from '../../slices.js';

export const PageQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1000,
      description: 'Maximum entries per page; 100 by default, no limit by default for mastery.',
    }),
  ),
  cursor: Type.Optional(Type.String({ description: 'next_cursor of the previous page.' })),
});
export type PageQuery = Static<typeof PageQuery>;

export const defaultPageLimit = 100;

interface Page<Item> {
  readonly items: readonly Item[];
  readonly next_cursor: string | null;
}

/** @param prefix distinguishes the list @param parse null for an invalid value */
export function createCursors<Value extends string | number>(
  prefix: string,
  parse: (text: string) => Value | null,
) {
  const encode = (value: Value): string => Buffer.from(`${prefix}${value}`).toString('base64url');
  return {
    encode,
    /** @throws ApiError INVALID_REQUEST for an invalid cursor */
    decode: (cursor: string | undefined): Value | null => {
      if (cursor === undefined) return null;
      const value = parse(Buffer.from(cursor, 'base64url').toString().slice(prefix.length));
      // Compare the encoded form: decoding ignores invalid base64 and UTF-8.
      if (value !== null && encode(value) === cursor) return value;
      throw validationError('query', {
        path: 'cursor',
        message: 'must be the next_cursor of a previous page',
      });
    },
  };
}

/** Accepts numbers above 1. */
export const createNumberCursors = (prefix: string, below = Number.MAX_SAFE_INTEGER) =>
  createCursors(prefix, (text) => {
    const number = Number(text);
    return Number.isSafeInteger(number) && number > 1 && number < below ? number : null;
  });

export async function encodeList<Item>(
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
const toByteString = (id: string): string => Buffer.from(id).toString('latin1');
const fromByteString = (bytes: string): string => Buffer.from(bytes, 'latin1').toString();

const idCursors = createCursors('after:', (id) => (findIdProblem(id, true) === null ? id : null));

export const decodeIdCursor = idCursors.decode;

export const encodeIdCursor = idCursors.encode;

/** @param found limit + 1 entries if there is another page */
export function buildPage<Item>(
  found: readonly Item[],
  limit: number,
  encodeCursor: (last: Item) => string,
): Page<Item> {
  const items = found.slice(0, limit);
  const last = found.length > limit ? items.at(-1) : undefined;
  return { items, next_cursor: last === undefined ? null : encodeCursor(last) };
}

/** @param toPosition sorts by time @param after last position of the previous page */
export const sortNewestFirst = <Item>(
  all: readonly Item[],
  toPosition: (one: Item) => string,
  after: string | null,
) =>
  all
    .filter((one) => after === null || toPosition(one) < after)
    .sort((a, b) => (toPosition(a) < toPosition(b) ? 1 : -1));

/** @param after may no longer exist */
export const sortIdsAfter = (ids: Iterable<string>, after: string | null): string[] => {
  const from = after === null ? '' : toByteString(after);
  const bytes = Array.from(ids, toByteString);
  return bytes
    .filter((id) => id > from)
    .sort()
    .map(fromByteString);
};
