import type { Problem } from '../errors.js';

/** What a compiled check tells of a value that does not fit. */
interface SchemaError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: object;
  readonly message: string;
}

/**
 * The first problem of each field, in words. An optional field's union with null tells the same fault several
 * times over; only what is wrong with the type that was wanted helps.
 */
export function problemsOf(errors: readonly SchemaError[], prefix = ''): Problem[] {
  const byPath = new Map<string, Problem>();
  const telling = errors.filter((error) => !isOfUnion(error));
  for (const problem of telling.flatMap((error) => toProblems(error, prefix))) {
    if (!byPath.has(problem.path)) byPath.set(problem.path, problem);
  }
  return [...byPath.values()];
}

const isOfUnion = ({ keyword, params }: SchemaError): boolean =>
  keyword === 'anyOf' || (keyword === 'type' && 'type' in params && params.type === 'null');

function toProblems(error: SchemaError, prefix: string): Problem[] {
  const path = (prefix + error.instancePath.slice(1)).replace(/\/$/, '');
  if (error.keyword === 'required' && 'requiredProperties' in error.params) {
    const names = error.params.requiredProperties as string[];
    return names.map((name) => ({ path: path === '' ? name : `${path}/${name}`, message: 'is required' }));
  }
  if (error.keyword === 'pattern') {
    return [{ path, message: 'must not contain control characters or lone surrogates' }];
  }
  if (error.keyword === 'enum' && 'allowedValues' in error.params) {
    return [{ path, message: `must be one of ${(error.params.allowedValues as string[]).join(', ')}` }];
  }
  return [{ path, message: error.message }];
}
