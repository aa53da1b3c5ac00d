import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';

export const noControls = '^[^\\u0000-\\u001F\\u007F-\\u009F\\uD800-\\uDFFF]*$';

export const Id = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: noControls,
  description: 'Identifier: 1 to 128 characters without control characters, compared byte by byte.',
});
export type Id = Static<typeof Id>;

const idCheck = Compile(Id);

export const findIdProblem = (text: string): string | null =>
  idCheck.Check(text) ? null : 'must be 1 to 128 characters without control characters';

/** Keys and tenants need no escaping. */
export const plainName = /^[A-Za-z0-9._~-]{1,128}$/;
