/** What a route takes and returns, and how the parts of a request are read: what does not fit is an INVALID_REQUEST. */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { Static, TObject, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import type { NeededScope } from '../contracts/access.js';
import type { Call } from '../contracts/call.js';
import { checked } from '../contracts/checked.js';
import { learningIdProblem } from '../contracts/ids.js';
import { ApiError, type ErrorCode, invalid } from '../errors.js';
import type { Span } from '../spans.js';
import { tooLarge } from './exchange.js';

export interface Head {
  /** First value of a header, by its lower-case name; null if it was not sent. */
  header(name: string): string | null;
}

/** A request that passed all checks. */
export interface HttpCall<Query = unknown> extends Call<Query> {
  readonly mediaType: string;
  readonly idempotencyKey: string | null;
  readonly head: Head;
  /** For a handler that returns nothing: a promise costs more than all checks before it. */
  readonly respond: (reply: Reply) => void;
  readonly span: Span | null;
}

export interface Reply {
  readonly status: number;
  /** Bytes where it is no text. */
  readonly body: string | Buffer;
  /** Sent in place of a body that is too long to be made at once. */
  readonly pieces?: AsyncIterable<string>;
  /** It lasts as long as somebody looks, which is left out of the times of answers. */
  readonly goesOn?: boolean;
  /** Called when the answer is over, however far it came. */
  readonly onOver?: () => void;
  readonly headers?: Readonly<Record<string, string>>;
  /** The error that the answer states, for the log. */
  readonly error?: ApiError;
  /** Parts of the answer that failed by a defect, for the log. */
  readonly defects?: readonly ApiError[];
}

export interface BodyRules {
  /** Most bytes, before and after decompression. */
  readonly limit: number;
  /** By the media types that are taken. */
  readonly content: Readonly<Record<string, TSchema>>;
  readonly mediaTypes: readonly string[];
  readonly encodings: readonly string[];
  /** Without a body the media type may be absent as well. */
  readonly optional?: true;
}

/** What another protocol than the API's own does its way. */
export interface Protocol {
  /** Of every answer; requests have headers of the same names. */
  readonly headers: Readonly<Record<string, string>>;
  /** Ways to show who calls, by their names in the description of the API. */
  readonly security: readonly string[];
  /** The API key in a request's head; null: none. */
  keyOf(head: Head): string | null;
  /** Checks the head of a request with a key. @throws ApiError */
  check(head: Head): void;
  statusOf(code: ErrorCode): number;
  /** The error without an envelope. */
  errorReply(error: ApiError): Reply;
}

type Handled = Promise<Reply> | Reply | undefined;

/** @param ids path parameters, decoded. @throws ApiError, ClientGone */
type Handle<Query, Ids extends string[]> = (call: HttpCall<Query>, ...ids: Ids) => Handled;

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** As uWebSockets.js matches it: `:name` stands for one segment. */
  readonly path: string;
  /** What the key must allow; null: no key is needed. */
  readonly scope: NeededScope | null;
  readonly body: BodyRules | null;
  /** Null where the query is ignored. */
  readonly query: QueryReader | null;
  /** Undefined: the API's own. */
  readonly protocol?: Protocol | undefined;
  readonly handle: Handle<unknown, string[]>;
}

/** One string for each parameter of the path. */
type IdsOf<Path extends string> = Path extends `${string}/:${string}/${infer Rest}`
  ? [string, ...IdsOf<`/${Rest}`>]
  : Path extends `${string}/:${string}`
    ? [string]
    : [];

/** What a route takes; nothing that is left out. */
type Rules<Query> = Partial<Pick<Route, 'scope' | 'body' | 'protocol'> & { readonly query: Query | null }>;

/** @param name method and path */
export function route<Name extends `${Route['method']} /${string}`, Query extends TObject>(
  name: Name,
  { scope = null, body = null, query = null, protocol }: Rules<Query>,
  handle: Handle<Static<Query>, IdsOf<Name>>,
): Route {
  const [method, path] = name.split(' ') as [Route['method'], string];
  return {
    ...{ method, path, scope, body, protocol },
    query: query && createQueryReader(query),
    handle: handle as Route['handle'],
  };
}

/** What the router finds for a method and a path. */
export interface Match {
  /** Null for an unknown path, or for a known one under another method. */
  readonly route: Route | null;
  /** Methods of a known path; null for an unknown one. */
  readonly allow: string | null;
  /** Whether the path is served, or not found, without a key. */
  readonly keyless: boolean;
  /** How many the path has. */
  readonly parameters: number;
  readonly protocol?: Route['protocol'];
}

/** The media type of a body, if the route takes it. @throws ApiError UNSUPPORTED_MEDIA_TYPE */
export function checkMediaType(contentType: string | null, rules: BodyRules): string {
  if (contentType !== null && rules.mediaTypes.includes(contentType)) return contentType;
  const [type = '', ...parameters] = (contentType ?? '').split(';').map((part) => part.trim().toLowerCase());
  if (!rules.mediaTypes.includes(type))
    throw unsupported(`Content-Type must be ${rules.mediaTypes.join(' or ')}`);
  const charset = parameters.find((parameter) => parameter.startsWith('charset='));
  if (charset !== undefined && !/^charset="?utf-8"?$/.test(charset))
    throw unsupported('The charset must be utf-8');
  return type;
}

/** @throws ApiError UNSUPPORTED_MEDIA_TYPE */
export function checkEncoding(contentEncoding: string | null, rules: BodyRules): string {
  const encoding = (contentEncoding ?? 'identity').trim().toLowerCase();
  if (rules.encodings.includes(encoding)) return encoding;
  throw unsupported(`Content-Encoding must be ${rules.encodings.join(' or ')}`);
}

const unsupported = (message: string): ApiError => new ApiError('UNSUPPORTED_MEDIA_TYPE', message);

const inflate = promisify(gunzip);

/** @throws ApiError PAYLOAD_TOO_LARGE when it would be larger than the limit, INVALID_REQUEST when it is no gzip */
export async function decompress(body: Buffer, limit: number): Promise<Buffer> {
  try {
    return await inflate(body, { maxOutputLength: limit });
  } catch (error) {
    throw error instanceof RangeError ? tooLarge(limit) : invalid('The body is not valid gzip');
  }
}

/** A path parameter: percent-encoded UTF-8. @throws ApiError INVALID_REQUEST */
export function decodeParameter(encoded: string): string {
  const text = decodePercent(encoded);
  const problem = text === null ? 'is not percent-encoded UTF-8' : learningIdProblem(text);
  if (text === null || problem !== null) throw invalid(`The id in the path ${problem}`);
  return text;
}

type QueryReader = ReturnType<typeof createQueryReader>;

interface Field {
  readonly type?: string;
  readonly default?: unknown;
}

/** Numbers in queries are plain decimals. */
const plainDecimal = /^\d{1,15}(\.\d{1,15})?$/;

/** Reads a query by its schema, whose values are numbers and texts; what it does not name is ignored. */
function createQueryReader(schema: TObject) {
  const check = Compile(schema);
  const fields = Object.entries<Field>(schema.properties);
  const names = fields.map(([name]) => name);
  return {
    names,
    schema,
    /** @throws ApiError INVALID_REQUEST */
    read: (query: string): unknown => {
      const texts = textsOf(query, names);
      const values: Record<string, unknown> = {};
      for (const [name, { type, default: otherwise }] of fields) {
        const value = texts.get(name) ?? otherwise;
        const isNumber = type === 'integer' || type === 'number';
        if (typeof value === 'string' && isNumber)
          values[name] = plainDecimal.test(value) ? Number(value) : Number.NaN;
        else if (value !== undefined) values[name] = value;
      }
      return checked(check, values, 'query');
    },
  };
}

/** An empty or repeated value is an error if its name is asked for. */
function textsOf(query: string, names: readonly string[]): Map<string, string> {
  const texts = new Map<string, string>();
  for (const part of query.split('&')) {
    const [encoded = '', ...rest] = part.split('=');
    const name = decodeQueryText(encoded);
    if (name === null || !names.includes(name)) continue;
    const text = decodeQueryText(rest.join('='));
    if (text === null) throw badQuery(name, 'is not percent-encoded UTF-8');
    if (text === '') throw badQuery(name, 'must not be empty');
    if (texts.has(name)) throw badQuery(name, 'must be given once');
    texts.set(name, text);
  }
  return texts;
}

const badQuery = (name: string, message: string): ApiError =>
  invalid(`Invalid query: ${name} ${message}`, [{ path: name, message }]);

const decodeQueryText = (text: string): string | null => decodePercent(text.replaceAll('+', ' '));

/** What uWebSockets.js makes of bytes that are not UTF-8: different ones would become the same id. */
const notUtf8 = '\ufffd';

function decodePercent(text: string): string | null {
  try {
    return text.includes(notUtf8) ? null : decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** The event id in a header: a structured-field string (RFC 8941) or the bare text. @throws ApiError INVALID_REQUEST */
export function parseIdempotencyKey(header: string | null): string | null {
  if (header === null) return null;
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(header);
  const key = quoted === null ? header : (quoted[1] as string).replace(/\\(["\\])/g, '$1');
  const isMalformed = (quoted === null && header.startsWith('"')) || header.includes(notUtf8);
  const problem = isMalformed ? 'is not a well-formed string' : learningIdProblem(key);
  if (problem === null) return key;
  throw invalid(`The header Idempotency-Key ${problem}`, [{ path: 'Idempotency-Key', message: problem }]);
}
