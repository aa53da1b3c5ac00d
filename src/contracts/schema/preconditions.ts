/** Entity tags (RFC 9110, 8.8.3) and If-Match (13.1.1). */
import { invalid } from '../../errors.js';

/** The tag has no quotes. */
export type TaggedValue<Value> = { readonly value: Value; readonly tag: string };

/** `*`: any tag; null: no condition. */
export type IfMatch = '*' | readonly string[] | null;

const listItem = /^(W\/)?"([\x21\x23-\x7E\x80-\xFF]*)"$/;

/** Omits weak tags: strong comparison never matches them. @throws ApiError INVALID_REQUEST */
export function parseIfMatch(header: string | null): IfMatch {
  if (header === null) return null;
  const text = header.trim();
  if (text === '*') return '*';
  const items = splitList(text);
  const tags = items.map((item) => listItem.exec(item));
  const message = 'must be * or a list of quoted entity tags';
  if (items.length === 0 || tags.includes(null))
    throw invalid(`The header If-Match ${message}.`, [{ path: 'If-Match', message }]);
  return tags.flatMap((tag) => (tag === null || tag[1] !== undefined ? [] : [tag[2] as string]));
}

/** Commas in quotes do not separate; empty items are ignored (RFC 9110, 5.6.1). */
const splitList = (text: string): string[] =>
  (text.match(/(?:"[^"]*"|[^,"])+|"/g) ?? []).map((item) => item.trim()).filter((item) => item !== '');

export const toEtagHeader = (tag: string): { readonly ETag: string } => ({ ETag: `"${tag}"` });
