import type { Validator } from 'typebox/compile';
import { invalid } from '../errors.js';
import { problemsOf } from './problems.js';

/** A compiled schema. */
export interface Check<Value> {
  Check(value: unknown): value is Value;
  Errors: Validator['Errors'];
}

/**
 * A value that fits its schema.
 *
 * @param what it is, for the message
 * @throws ApiError INVALID_REQUEST that names every field that does not fit
 */
export function checked<Value>(check: Check<Value>, value: unknown, what: string): Value {
  if (check.Check(value)) return value;
  const problems = problemsOf(check.Errors(value));
  const told = problems.map(({ path, message }) => `${path} ${message}`.trim()).join('; ');
  throw invalid(`Invalid ${what}: ${told}`, problems);
}
