import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';

export const noControls = '^[^\\u0000-\\u001F\\u007F-\\u009F\\uD800-\\uDFFF]*$';

/** Also allows ids that an earlier version stored: for responses, and for requests that create nothing. */
export const StoredId = Type.String({
  ...{ minLength: 1, maxLength: 128, pattern: noControls },
  description:
    'Identifier: 1 to 128 characters without control characters. `.` and `..` only if an earlier version stored them.',
});
const storedCheck = Compile(StoredId);

/** Clients remove these path segments from a URL, even escaped ones. */
const dots = ['.', '..'];
export const dotsMessage = 'must not be "." or "..", which clients remove from URLs';

export const Id = Type.String({
  ...StoredId,
  not: { enum: dots },
  description:
    'Identifier: 1 to 128 characters without control characters, not `.` or `..`, compared byte by byte.',
});
export type Id = Static<typeof Id>;

/** @param isStored also allows ids that an earlier version accepted, to read and erase them */
export function findIdProblem(text: string, isStored = false): string | null {
  if (!storedCheck.Check(text)) return 'must be 1 to 128 characters without control characters';
  return dots.includes(text) && !isStored ? dotsMessage : null;
}

/** Keys and tenants need no escaping. */
export const plainName = /^[A-Za-z0-9._~-]{1,128}$/;
