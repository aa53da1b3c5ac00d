/** Lists in pages; those of ids are ordered by their UTF-8 bytes, each page after the last id of the one before. */
import Type, { type Static } from 'typebox';
import { learningIdProblem } from '../../contracts/ids.js';
import { invalid } from '../../errors.js';
import { mapInSlices } from '../../slices.js';

/** Query of a list in pages. */
export const PageQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
  cursor: Type.Optional(Type.String({ description: 'next_cursor of the page before' })),
});
export type PageQuery = Static<typeof PageQuery>;

/** Of a page whose query does not say. */
export const pageLimit = 100;

/**
 * @param mark tells a cursor from any other base64 text
 * @param read null for what is no value of such a cursor
 */
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

/** JSON of an object with the list in its middle, which is told in slices. */
export async function tellList<Item>(
  before: object,
  list: { readonly name: string; readonly items: readonly Item[]; readonly describe: (item: Item) => object },
  after: object,
): Promise<string> {
  const told = await mapInSlices(list.items, (item) => JSON.stringify(list.describe(item)));
  const head = JSON.stringify({ ...before, [list.name]: [] }).slice(0, -2);
  return `${head}${told.join()}],${JSON.stringify(after).slice(1)}`;
}

/** One character per byte: the language's own order of such texts is that of the bytes. */
const bytesOf = (id: string): string => Buffer.from(id).toString('latin1');
const textOf = (bytes: string): string => Buffer.from(bytes, 'latin1').toString();

export interface IdPage {
  readonly ids: readonly string[];
  /** Stands for the rest; null at the end. */
  readonly nextCursor: string | null;
}

const idCursors = createCursors('after:', (id) => (learningIdProblem(id) === null ? id : null));

/** The id that a cursor holds; null without one. @throws ApiError INVALID_REQUEST */
export const idAfter = idCursors.decode;

/** @param ids in their order, from the first of the page on; one more than the page has tells that there is another */
export function pageOfIds(ids: readonly string[], limit: number): IdPage {
  const page = ids.slice(0, limit);
  return { ids: page, nextCursor: ids.length > limit ? idCursors.encode(page.at(-1) as string) : null };
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
