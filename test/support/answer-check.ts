/** Whether an answer is one that the contract has for its route: status, code, headers, and the body's shape. */
import assert from 'node:assert/strict';
import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { ErrorAnswer, routeAnswers } from '../../src/contracts/responses/routes.js';
import { type ErrorCode, errorTable } from '../../src/errors.js';
import type { Route } from '../../src/http/route.js';
import type { Answer } from './http.js';
import { nameOf, type Target } from './route-table.js';
import { unknownFields } from './unknown-fields.js';

const compiled = new Map<TSchema, Validator>();

function checkOf(schema: TSchema): Validator {
  const check = compiled.get(schema) ?? Compile(schema);
  compiled.set(schema, check);
  return check;
}

/** Headers that belong to a status. */
const headersOf: Readonly<Record<number, string>> = {
  401: 'www-authenticate',
  405: 'allow',
  429: 'retry-after',
};

/** Codes for requests that reach no route. */
const astray: readonly ErrorCode[] = ['INVALID_REQUEST', 'UNAUTHORIZED', 'UNAVAILABLE'];

export interface Judged {
  readonly method: string;
  readonly target: Target;
  /** The request id that was sent and has to come back; null: one of the service's. */
  readonly requestId: string | null;
}

/** @throws AssertionError for an answer that is not in the contract */
export function assertAnswer(answer: Answer, { method, target, requestId }: Judged): void {
  const { status, headers, text } = answer;
  const told = `${method} ${target.route?.path ?? 'nowhere'}: ${status} ${text.slice(0, 500)}`;
  assert.match(headers['x-request-id'] ?? '', /^[A-Za-z0-9._:-]{1,128}$/, told);
  if (requestId !== null) assert.equal(headers['x-request-id'], requestId, told);
  const needed = headersOf[status];
  if (needed !== undefined) assert.ok(headers[needed] !== undefined, `${needed} is missing: ${told}`);
  assert.notEqual(status, 500, told);
  if (method === 'HEAD') assert.equal(text, '', told);
  else assertBody(answer, target, told);
}

function assertBody({ status, headers, text }: Answer, { route, methods }: Target, told: string): void {
  const isJson = headers['content-type']?.startsWith('application/json') === true;
  const value: unknown = isJson ? JSON.parse(text) : text;
  const schema = (route === null ? undefined : answersOf(route).bodies[status]) ?? ErrorAnswer;
  assertShape(schema, value, told);
  if (schema !== ErrorAnswer) return;
  const code = (value as { error: { code: ErrorCode } }).error.code;
  assert.equal(errorTable[code].status, status, told);
  assert.ok(codesOf(route, methods).includes(code), told);
}

function assertShape(schema: TSchema, value: unknown, told: string): void {
  const check = checkOf(schema);
  if (!check.Check(value)) assert.fail(`${JSON.stringify(check.Errors(value).slice(0, 5))}: ${told}`);
  assert.deepEqual(unknownFields(schema, value), [], `fields that no schema names: ${told}`);
}

/** @throws Error where a route was added without saying what it answers */
function answersOf(route: Route) {
  const answers = routeAnswers[nameOf(route)];
  if (answers === undefined) throw new Error(`src/contracts/responses/routes.ts has no ${nameOf(route)}`);
  return answers;
}

function codesOf(route: Route | null, methods: readonly string[]): readonly ErrorCode[] {
  if (route !== null) return answersOf(route).errors;
  return [...astray, methods.length === 0 ? 'NOT_FOUND' : 'METHOD_NOT_ALLOWED'];
}
