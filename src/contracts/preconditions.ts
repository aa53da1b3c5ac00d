/** Entity tags (RFC 9110, 8.8.3) and the condition of a write on them (13.1.1). */
import { invalid } from '../errors.js';

/** A value with the tag, opaque and without quotes, by which a caller sees whether it has changed. */
export type Tagged<Value> = { readonly value: Value; readonly tag: string };

/** Tags that a write depends on: any (`*`), or one of a list; null: no condition. */
export type IfMatch = '*' | readonly string[] | null;

const listItem = /^(W\/)?"([\x21\x23-\x7E\x80-\xFF]*)"$/;

/**
 * What a write depends on. The comparison is strong: a weak tag of the list never matches, so it is left out.
 * @throws ApiError INVALID_REQUEST for what is neither `*` nor a list of tags
 */
export function parseIfMatch(header: string | null): IfMatch {
  if (header === null) return null;
  const text = header.trim();
  if (text === '*') return '*';
  const items = splitList(text);
  const tags = items.map((item) => listItem.exec(item));
  const message = 'must be * or a list of entity tags in quotes';
  if (items.length === 0 || tags.includes(null))
    throw invalid(`The header If-Match ${message}`, [{ path: 'If-Match', message }]);
  return tags.flatMap((tag) => (tag === null || tag[1] !== undefined ? [] : [tag[2] as string]));
}

/** Commas inside of quotes part nothing; empty items are allowed and mean nothing (RFC 9110, 5.6.1). */
const splitList = (text: string): string[] =>
  (text.match(/(?:"[^"]*"|[^,"])+|"/g) ?? []).map((item) => item.trim()).filter((item) => item !== '');

export const tagHeader = (tag: string): { readonly ETag: string } => ({ ETag: `"${tag}"` });
