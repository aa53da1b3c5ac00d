import type { TSchema } from 'typebox';
import type { Validator } from 'typebox/compile';
import { invalid, type Problem } from '../errors.js';
import { problemsOf } from './problems.js';

/** A compiled schema. */
export interface Check<Value> {
  Check(value: unknown): value is Value;
  Errors: Validator['Errors'];
  Type: Validator['Type'];
}

/** Of a schema what says how long a list may be, also one that may be null. */
interface ListSchema {
  readonly maxItems?: number;
  readonly anyOf?: readonly ListSchema[];
}

/** Looked at first: to tell what is wrong with each of thousands of items takes a second. */
function overlongLists(schema: TSchema, value: unknown): Problem[] {
  const { properties = {} } = schema as { readonly properties?: Readonly<Record<string, ListSchema>> };
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(properties).flatMap(([path, list]) => {
    const items: unknown = (value as Readonly<Record<string, unknown>>)[path];
    const most = Math.max(...[list, ...(list.anyOf ?? [])].map(({ maxItems = 0 }) => maxItems));
    if (!Array.isArray(items) || most === 0 || items.length <= most) return [];
    return [{ path, message: `must not have more than ${most} items` }];
  });
}

/**
 * A value that fits its schema.
 *
 * @param what it is, for the message
 * @throws ApiError INVALID_REQUEST that names every field that does not fit
 */
export function checked<Value>(check: Check<Value>, value: unknown, what: string): Value {
  if (check.Check(value)) return value;
  const overlong = overlongLists(check.Type(), value);
  const problems = overlong.length > 0 ? overlong : problemsOf(check.Errors(value));
  const told = problems.map(({ path, message }) => `${path} ${message}`.trim()).join('; ');
  throw invalid(`Invalid ${what}: ${told}`, problems);
}
