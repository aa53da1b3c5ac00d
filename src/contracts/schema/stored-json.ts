import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';

/** The parser throws Error for invalid JSON or another version. */
export function createStoredParser<Schema extends TSchema>(schema: Schema, recordName: string) {
  const check = Compile(schema);
  return (text: string): Static<Schema> => {
    const stored: unknown = JSON.parse(text);
    if (check.Check(stored)) return stored;
    throw new Error(`unsupported format of ${recordName}`);
  };
}
