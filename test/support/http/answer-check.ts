/** Checks responses by the description at /openapi.json: status, headers, media type and body. */
import assert from 'node:assert/strict';
import { type ErrorCode, errorTable } from '../../../src/errors.js';
import { type DescribedAnswer, described, misfits, operationAt, type Schema } from './description.js';
import type { Answer, Caller, JsonAnswer } from './http.js';
import { apiRoutes, nameOf, type Target, targetOf } from './route-table.js';

/** Error codes of requests without a route. */
const unroutedCodes: readonly ErrorCode[] = ['INVALID_REQUEST', 'UNAUTHORIZED', 'UNAVAILABLE'];

/** Headers of HTTP and of the server, which no description lists. */
const transport = [
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'transfer-encoding',
  'uwebsockets',
  'vary',
];

export interface Judged {
  readonly method: string;
  readonly target: Target;
  /** The request id that was sent; null if the service creates it. */
  readonly requestId: string | null;
}

/** @throws AssertionError for a response that the description does not have */
export function assertAnswer(answer: Answer, { method, target, requestId }: Judged): void {
  const { status, headers, text } = answer;
  const call = `${method} ${target.route?.path ?? 'no route'}: ${status} ${text.slice(0, 500)}`;
  assert.match(headers['x-request-id'] ?? '', /^[A-Za-z0-9._:-]{1,128}$/, call);
  if (requestId !== null) assert.equal(headers['x-request-id'], requestId, call);
  if (isPage(target)) return;
  const wanted = describedAnswer(target, status);
  assert.ok(wanted !== undefined, `no description of this status: ${call}`);
  assertHeaders(wanted, headers, call);
  if (method === 'HEAD' || wanted.content === undefined) assert.equal(text, '', call);
  else assertBody(wanted.content, answer, call);
}

/** Checks the response to a request without a request id. @param path with the query */
export function assertDescribed(answer: Answer, method: string, path: string): void {
  assertAnswer(answer, { method, target: targetOf(method, path.split('?')[0] ?? ''), requestId: null });
}

/** Sends a request and compares the response with the description of the API. */
export async function callDescribed(
  by: Caller,
  method: string,
  path: string,
  body?: unknown,
): Promise<JsonAnswer> {
  const answer = await by.send(method, path, body);
  assertDescribed(answer, method, path);
  return answer;
}

function assertHeaders({ headers: known }: DescribedAnswer, sent: Answer['headers'], call: string): void {
  const names = Object.keys(known).map((name) => name.toLowerCase());
  for (const [name, { required }] of Object.entries(known))
    if (required) assert.ok(sent[name.toLowerCase()] !== undefined, `${name} is missing: ${call}`);
  for (const name of Object.keys(sent))
    assert.ok(names.includes(name) || transport.includes(name), `${name} is not described: ${call}`);
}

type Contents = NonNullable<DescribedAnswer['content']>;

function assertBody(content: Contents, { headers, text }: Answer, call: string): void {
  const [type = ''] = (headers['content-type'] ?? '').split(';');
  const known = content[type] ?? content[type.replace(/\/.*/, '/*')];
  assert.ok(known !== undefined, `${type} is not described: ${call}`);
  const value: unknown = type === 'application/json' ? JSON.parse(text) : text;
  assert.deepEqual(misfits(known.schema, value).slice(0, 5), [], call);
  assert.deepEqual(unknownFields(known.schema, value), [], `fields without a schema: ${call}`);
}

/** Pages are not calls of the API. contract/docs-page and contract/dashboard test them. */
const isPage = ({ route }: Target): boolean => route !== null && !apiRoutes.includes(route);

/** @throws Error for a route without a description */
function describedAnswer(target: Target, status: number): DescribedAnswer | undefined {
  const { route } = target;
  if (route === null) return unroutedAnswer(target, status);
  const operation = operationAt(route.method, route.path);
  if (operation === undefined) throw new Error(`${nameOf(route)} is not described`);
  return operation.responses[status];
}

function unroutedAnswer({ methods, protocol }: Target, status: number): DescribedAnswer | undefined {
  const codes = [...unroutedCodes, methods.length === 0 ? 'NOT_FOUND' : 'METHOD_NOT_ALLOWED'] as const;
  const code = codes.find((one) => errorTable[one].status === status);
  const answer = code === undefined ? undefined : described.components.responses[code];
  return answer && protocol ? withoutEnvelope(answer, Object.keys(protocol.headers)) : answer;
}

/** An error without envelope, with additional headers. */
function withoutEnvelope({ headers, content = {} }: DescribedAnswer, added: string[]): DescribedAnswer {
  const { error = {} } = content['application/json']?.schema.properties ?? {};
  const own = Object.fromEntries(added.map((name) => [name, { required: true }]));
  return { headers: { ...headers, ...own }, content: { 'application/json': { schema: error } } };
}

/** Paths of fields that the schema does not name. Schemas allow them, so that later versions can add fields. */
function unknownFields(schema: Schema, value: unknown, path = ''): string[] {
  if (schema.anyOf !== undefined) {
    const fitting = schema.anyOf.filter((choice) => misfits(choice, value).length === 0);
    const found = fitting.map((choice) => unknownFields(choice, value, path));
    return found.sort((a, b) => a.length - b.length)[0] ?? [];
  }
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? [] : value.flatMap((one, i) => unknownFields(items, one, `${path}/${i}`));
  }
  if (typeof value !== 'object' || value === null || schema.properties === undefined) return [];
  return Object.entries(value).flatMap(([name, field]) => {
    const known = schemaOf(schema, name);
    return known === undefined ? [`${path}/${name}`] : unknownFields(known, field, `${path}/${name}`);
  });
}

function schemaOf({ properties = {}, patternProperties = {} }: Schema, name: string): Schema | undefined {
  if (Object.hasOwn(properties, name)) return properties[name];
  return Object.entries(patternProperties).find(([pattern]) => new RegExp(pattern, 'u').test(name))?.[1];
}
