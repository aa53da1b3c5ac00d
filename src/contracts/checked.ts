import Type, { type TSchema } from 'typebox';
import type { Validator } from 'typebox/compile';
import { type ApiError, invalid, type Problem } from '../errors.js';
import { plainName } from './ids.js';

export interface Check<Value> {
  Check(value: unknown): value is Value;
  Errors: Validator['Errors'];
  Type: Validator['Type'];
}

type ListSchema = { readonly maxItems?: number; readonly anyOf?: readonly ListSchema[] };

/** Checked first: listing the errors of thousands of items takes a second. */
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

/** @throws ApiError INVALID_REQUEST with every invalid field */
export function checked<Value>(check: Check<Value>, value: unknown, what: string): Value {
  if (check.Check(value)) return value;
  const overlong = overlongLists(check.Type(), value);
  const problems = overlong.length > 0 ? overlong : problemsOf(check.Errors(value));
  throw misfit(what, ...problems);
}

export const misfit = (what: string, ...problems: readonly Problem[]): ApiError =>
  invalid(
    `Invalid ${what}: ${problems.map(({ path, message }) => `${path} ${message}`.trim()).join('; ')}`,
    problems,
  );

interface SchemaError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: object;
  readonly message: string;
}

/**
 * @returns the first problem of each field. A union with null reports both types: only the other type's error
 * helps.
 */
export function problemsOf(errors: readonly SchemaError[], prefix = ''): Problem[] {
  const useful = errors.filter((error) => !isOfUnion(error)).flatMap((error) => toProblems(error, prefix));
  const byPath = new Map(useful.toReversed().map((problem) => [problem.path, problem]));
  return useful.filter((problem) => byPath.get(problem.path) === problem);
}

const isOfUnion = ({ keyword, params }: SchemaError): boolean =>
  keyword === 'anyOf' || (keyword === 'type' && 'type' in params && params.type === 'null');

function toProblems(error: SchemaError, prefix: string): Problem[] {
  const path = (prefix + error.instancePath.slice(1)).replace(/\/$/, '');
  if (error.keyword === 'required' && 'requiredProperties' in error.params) {
    const names = error.params.requiredProperties as string[];
    return names.map((name) => ({ path: path === '' ? name : `${path}/${name}`, message: 'is required' }));
  }
  if (error.keyword === 'pattern') return [{ path, message: patternMessage(error.params) }];
  if (error.keyword === 'enum' && 'allowedValues' in error.params)
    return [{ path, message: `must be one of ${(error.params.allowedValues as string[]).join(', ')}` }];
  if (error.keyword === 'if') return [{ path, message: 'must be what its objectType says' }];
  return [{ path, message: error.message }];
}

const patternMessage = (params: object): string =>
  'pattern' in params && String(params.pattern) === plainName.source
    ? 'must be 1 to 128 of A-Za-z0-9._~-'
    : 'must not contain control characters or lone surrogates';

export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

/** Null means the same as a missing field. */
export const orNull = <Schema extends TSchema>(schema: Schema) => Type.Optional(nullable(schema));
