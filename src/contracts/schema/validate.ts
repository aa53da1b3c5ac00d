import Type, { type TSchema } from 'typebox';
import type { Validator } from 'typebox/compile';
import { type ApiError, invalid, type Problem } from '../../errors.js';
import { dotsMessage, plainName } from './ids.js';

export interface SchemaCheck<Value> {
  Check(value: unknown): value is Value;
  Errors: Validator['Errors'];
  Type: Validator['Type'];
}

type ListSchema = { readonly maxItems?: number; readonly anyOf?: readonly ListSchema[] };

/** Checked first: listing the errors of thousands of items takes a second. */
function findOverlongLists(schema: TSchema, value: unknown): Problem[] {
  const { properties = {} } = schema as { readonly properties?: Readonly<Record<string, ListSchema>> };
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(properties).flatMap(([path, list]) => {
    const items: unknown = (value as Readonly<Record<string, unknown>>)[path];
    const most = Math.max(...[list, ...(list.anyOf ?? [])].map(({ maxItems = 0 }) => maxItems));
    if (!Array.isArray(items) || most === 0 || items.length <= most) return [];
    return [{ path, message: `must have at most ${most} items` }];
  });
}

/** @throws ApiError INVALID_REQUEST with every invalid field */
export function validate<Value>(check: SchemaCheck<Value>, value: unknown, subject: string): Value {
  if (check.Check(value)) return value;
  const overlong = findOverlongLists(check.Type(), value);
  const problems = overlong.length > 0 ? overlong : describeErrors(check.Errors(value));
  throw validationError(subject, ...problems);
}

export const validationError = (subject: string, ...problems: readonly Problem[]): ApiError =>
  invalid(
    `Invalid ${subject}: ${problems.map(({ path, message }) => `${path} ${message}`.trim()).join('; ')}.`,
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
export function describeErrors(errors: readonly SchemaError[], prefix = ''): Problem[] {
  const useful = errors
    .filter((error) => !isUnionError(error))
    .flatMap((error) => describeError(error, prefix));
  const byPath = new Map(useful.toReversed().map((problem) => [problem.path, problem]));
  return useful.filter((problem) => byPath.get(problem.path) === problem);
}

const isUnionError = ({ keyword, params }: SchemaError): boolean =>
  keyword === 'anyOf' || (keyword === 'type' && 'type' in params && params.type === 'null');

function describeError(error: SchemaError, prefix: string): Problem[] {
  const path = (prefix + error.instancePath.slice(1)).replace(/\/$/, '');
  if (error.keyword === 'required' && 'requiredProperties' in error.params) {
    const names = error.params.requiredProperties as string[];
    return names.map((name) => ({ path: path === '' ? name : `${path}/${name}`, message: 'is required' }));
  }
  if (error.keyword === 'pattern') return [{ path, message: describePattern(error.params) }];
  // Of ids only.
  if (error.keyword === 'not') return [{ path, message: dotsMessage }];
  if ('type' in error.params && error.params.type === 'integer' && path.endsWith('_seconds'))
    return [{ path, message: 'must be an integer (whole seconds)' }];
  if (error.keyword === 'enum' && 'allowedValues' in error.params)
    return [{ path, message: `must be one of ${(error.params.allowedValues as string[]).join(', ')}` }];
  if (error.keyword === 'if') return [{ path, message: 'must match its objectType' }];
  return [{ path, message: error.message }];
}

const describePattern = (params: object): string =>
  'pattern' in params && String(params.pattern) === plainName.source
    ? 'must be 1 to 128 characters of A-Za-z0-9._~-'
    : 'must not contain control characters or lone surrogates';

export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

/** Null means the same as a missing field. */
export const optionalNullable = <Schema extends TSchema>(schema: Schema) => Type.Optional(nullable(schema));
