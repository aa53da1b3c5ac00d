/** Whether an answer is one that the description at /openapi.json has for its route: status, headers, type, body. */
import assert from 'node:assert/strict';
import { type ErrorCode, errorTable } from '../../../src/errors.js';
import { type DescribedAnswer, described, misfits, operationAt } from './description.js';
import type { Answer } from './http.js';
import { apiRoutes, nameOf, type Target } from './route-table.js';
import { unknownFields } from './unknown-fields.js';

/** Codes for requests that reach no route. */
const astray: readonly ErrorCode[] = ['INVALID_REQUEST', 'UNAUTHORIZED', 'UNAVAILABLE'];

/** Headers of HTTP itself, which no description lists. */
const transport = [
  'connection',
  'content-length',
  'content-type',
  'date',
  'transfer-encoding',
  'uwebsockets',
];

export interface Judged {
  readonly method: string;
  readonly target: Target;
  /** The request id that was sent and has to come back; null: one of the service's. */
  readonly requestId: string | null;
}

/** @throws AssertionError for an answer that is not in the description */
export function assertAnswer(answer: Answer, { method, target, requestId }: Judged): void {
  const { status, headers, text } = answer;
  const told = `${method} ${target.route?.path ?? 'nowhere'}: ${status} ${text.slice(0, 500)}`;
  assert.match(headers['x-request-id'] ?? '', /^[A-Za-z0-9._:-]{1,128}$/, told);
  if (requestId !== null) assert.equal(headers['x-request-id'], requestId, told);
  if (isPage(target)) return;
  const wanted = describedAnswer(target, status);
  assert.ok(wanted !== undefined, `this status is not described: ${told}`);
  assertHeaders(wanted, headers, told);
  if (method === 'HEAD' || wanted.content === undefined) assert.equal(text, '', told);
  else assertBody(wanted.content, answer, told);
}

function assertHeaders({ headers: known }: DescribedAnswer, sent: Answer['headers'], told: string): void {
  const names = Object.keys(known).map((name) => name.toLowerCase());
  for (const [name, { required }] of Object.entries(known))
    if (required) assert.ok(sent[name.toLowerCase()] !== undefined, `${name} is missing: ${told}`);
  for (const name of Object.keys(sent))
    assert.ok(names.includes(name) || transport.includes(name), `${name} is not described: ${told}`);
}

type Contents = NonNullable<DescribedAnswer['content']>;

function assertBody(content: Contents, { headers, text }: Answer, told: string): void {
  const [type = ''] = (headers['content-type'] ?? '').split(';');
  const known = content[type] ?? content[type.replace(/\/.*/, '/*')];
  assert.ok(known !== undefined, `${type} is not described: ${told}`);
  const value: unknown = type === 'application/json' ? JSON.parse(text) : text;
  assert.deepEqual(misfits(known.schema, value).slice(0, 5), [], told);
  assert.deepEqual(unknownFields(known.schema, value), [], `fields that no schema names: ${told}`);
}

/** Pages are no calls of the API; what they promise is in contract/docs-page. */
const isPage = ({ route }: Target): boolean => route !== null && !apiRoutes.includes(route);

/** @throws Error where a route was added without being described */
function describedAnswer(target: Target, status: number): DescribedAnswer | undefined {
  const { route } = target;
  if (route === null) return strayAnswer(target, status);
  const operation = operationAt(route.method, route.path);
  if (operation === undefined) throw new Error(`${nameOf(route)} is not described`);
  return operation.responses[status];
}

function strayAnswer({ methods, protocol }: Target, status: number): DescribedAnswer | undefined {
  const codes = [...astray, methods.length === 0 ? 'NOT_FOUND' : 'METHOD_NOT_ALLOWED'] as const;
  const code = codes.find((one) => errorTable[one].status === status);
  const answer = code === undefined ? undefined : described.components.responses[code];
  return answer && protocol ? bare(answer, Object.keys(protocol.headers)) : answer;
}

/** An error without its envelope, with some headers. */
function bare({ headers, content = {} }: DescribedAnswer, more: readonly string[]): DescribedAnswer {
  const { error = {} } = content['application/json']?.schema.properties ?? {};
  const own = Object.fromEntries(more.map((name) => [name, { required: true }]));
  return { headers: { ...headers, ...own }, content: { 'application/json': { schema: error } } };
}
