import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';

/** The parser throws Error for invalid JSON or another version. */
export function storedJson<Schema extends TSchema>(schema: Schema, what: string) {
  const check = Compile(schema);
  return (text: string): Static<Schema> => {
    const stored: unknown = JSON.parse(text);
    if (check.Check(stored)) return stored;
    throw new Error(`${what} is not known to this version`);
  };
}
