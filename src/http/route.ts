import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { Static, TObject, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import type { RequiredScope } from '../contracts/access/access.js';
import type { ActivityName } from '../contracts/access/activity.js';
import type { Call } from '../contracts/access/call.js';
import { findIdProblem } from '../contracts/schema/ids.js';
import { validate, validationError } from '../contracts/schema/validate.js';
import { ApiError, type ErrorCode, invalid } from '../errors.js';
import type { Span } from '../spans.js';

export interface RequestHead {
  header(name: string): string | null;
}

export interface HttpCall<Query = unknown> extends Call<Query> {
  readonly mediaType: string;
  readonly idempotencyKey: string | null;
  readonly head: RequestHead;
  /** For handlers without a promise, which would cost more than all previous checks. */
  readonly respond: (reply: Reply) => void;
  readonly span: Span | null;
}

export interface Reply {
  readonly status: number;
  readonly body: string | Buffer;
  /** Replaces a body that is too long for one string. */
  readonly pieces?: AsyncIterable<string>;
  /** Excluded from response times. */
  readonly isEndless?: boolean;
  /** Called when the response has ended, complete or not. */
  readonly onEnd?: () => void;
  readonly headers?: Readonly<Record<string, string>>;
  readonly error?: ApiError;
  readonly defects?: readonly ApiError[];
}

export interface BodyRules {
  /** Limits the bytes before and after decompression. */
  readonly limit: number;
  readonly content: Readonly<Record<string, TSchema>>;
  readonly mediaTypes: readonly string[];
  readonly encodings: readonly string[];
  /** An empty body needs no media type. */
  readonly optional?: true;
}

export interface Protocol {
  /** Sent with every response. Requests must have headers with the same names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly security: readonly string[];
  readKey(head: RequestHead): string | null;
  /** Called after the key was checked. @throws ApiError */
  checkHead(head: RequestHead): void;
  getStatus(code: ErrorCode): number;
  createErrorReply(error: ApiError): Reply;
}

type HandlerResult = Promise<Reply> | Reply | undefined;

/** @param ids decoded. @throws ApiError, ClientDisconnectedError */
type Handler<Query, Ids extends string[]> = (call: HttpCall<Query>, ...ids: Ids) => HandlerResult;

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** `:name` matches one segment. */
  readonly path: string;
  /** Null: needs no key. */
  readonly scope: RequiredScope | null;
  readonly body: BodyRules | null;
  readonly query: QueryReader | null;
  readonly protocol?: Protocol | undefined;
  /** Name in the activity log; absent: not logged. */
  readonly activity?: ActivityName | undefined;
  readonly handle: Handler<unknown, string[]>;
}

type IdsOf<Path extends string> = Path extends `${string}/:${string}/${infer Rest}`
  ? [string, ...IdsOf<`/${Rest}`>]
  : Path extends `${string}/:${string}`
    ? [string]
    : [];

type RouteRules<Query> = Partial<
  Pick<Route, 'scope' | 'body' | 'protocol' | 'activity'> & { readonly query: Query | null }
>;

export function route<Name extends `${Route['method']} /${string}`, Query extends TObject>(
  name: Name,
  { scope = null, body = null, query = null, protocol, activity }: RouteRules<Query>,
  handle: Handler<Static<Query>, IdsOf<Name>>,
): Route {
  const [method, path] = name.split(' ') as [Route['method'], string];
  return {
    ...{ method, path, scope, body, protocol, activity },
    query: query && createQueryReader(query),
    handle: handle as Route['handle'],
  };
}

export interface RouteMatch {
  readonly route: Route | null;
  /** Null: unknown path. */
  readonly allow: string | null;
  /** The path without the slash at its end exists. */
  readonly hasExtraSlash?: true;
  /** Requests need no key, not even for NOT_FOUND. */
  readonly isKeyless: boolean;
  readonly parameters: number;
  readonly protocol?: Route['protocol'];
}

export function checkMediaType(contentType: string | null, rules: BodyRules): string {
  if (contentType !== null && rules.mediaTypes.includes(contentType)) return contentType;
  // Semicolons in quotes do not separate.
  const parts = contentType?.match(/(?:"[^"]*"|[^;"])+/g) ?? [];
  const [type = '', ...parameters] = parts.map((part) => part.trim().toLowerCase());
  if (!rules.mediaTypes.includes(type))
    throw unsupported(`Content-Type must be ${rules.mediaTypes.join(' or ')}.`);
  const charsets = parameters.filter((parameter) => parameter.startsWith('charset='));
  if (!charsets.every((charset) => /^charset="?utf-8"?$/.test(charset)))
    throw unsupported('The charset must be utf-8.');
  return type;
}

export function checkEncoding(contentEncoding: string | null, rules: BodyRules): string {
  const encoding = (contentEncoding || 'identity').trim().toLowerCase();
  if (rules.encodings.includes(encoding)) return encoding;
  throw unsupported(`Content-Encoding must be ${rules.encodings.join(' or ')}.`);
}

export const payloadTooLarge = (limit: number): ApiError =>
  new ApiError('PAYLOAD_TOO_LARGE', `The body is larger than ${limit / 1024} KiB.`);

const unsupported = (message: string): ApiError => new ApiError('UNSUPPORTED_MEDIA_TYPE', message);

const inflate = promisify(gunzip);

/** @throws ApiError PAYLOAD_TOO_LARGE, INVALID_REQUEST */
export async function decompress(body: Buffer, limit: number): Promise<Buffer> {
  try {
    return await inflate(body, { maxOutputLength: limit });
  } catch (error) {
    throw error instanceof RangeError ? payloadTooLarge(limit) : invalid('The body is not valid gzip.');
  }
}

/** Calls of the other methods also find ids that an earlier version stored. */
export const createsIds = (method: Route['method']): boolean => method === 'PUT';

/** @throws ApiError INVALID_REQUEST */
export function decodeParameter(encoded: string, method: Route['method']): string {
  const text = decodePercent(encoded);
  const problem = text === null ? 'is not percent-encoded UTF-8' : findIdProblem(text, !createsIds(method));
  if (text === null || problem !== null) throw invalid(`The id in the path ${problem}.`);
  return text;
}

type QueryReader = ReturnType<typeof createQueryReader>;

interface Field {
  readonly type?: string;
  readonly default?: unknown;
}

const plainDecimal = /^\d{1,15}(\.\d{1,15})?$/;

function createQueryReader(schema: TObject) {
  const check = Compile(schema);
  const fields = Object.entries<Field>(schema.properties);
  const names = fields.map(([name]) => name);
  return {
    names,
    schema,
    /** @throws ApiError INVALID_REQUEST */
    read: (query: string): unknown => {
      const texts = parseQueryTexts(query, names);
      const values: Record<string, unknown> = {};
      for (const [name, { type, default: otherwise }] of fields) {
        const value = texts.get(name) ?? otherwise;
        const isNumber = type === 'integer' || type === 'number';
        if (typeof value === 'string' && isNumber)
          values[name] = plainDecimal.test(value) ? Number(value) : Number.NaN;
        else if (value !== undefined) values[name] = value;
      }
      return validate(check, values, 'query');
    },
  };
}

/** Rejects repeated and empty parameters. @throws ApiError */
function parseQueryTexts(query: string, names: readonly string[]): Map<string, string> {
  const texts = new Map<string, string>();
  for (const part of query.split('&')) {
    const [encoded = '', ...rest] = part.split('=');
    const name = decodeQueryText(encoded);
    if (name === null || !names.includes(name)) continue;
    const text = decodeQueryText(rest.join('='));
    if (text === null) throw queryError(name, 'is not percent-encoded UTF-8');
    if (text === '') throw queryError(name, 'must not be empty');
    if (texts.has(name)) throw queryError(name, 'must not be repeated');
    texts.set(name, text);
  }
  return texts;
}

const queryError = (path: string, message: string): ApiError => validationError('query', { path, message });

const decodeQueryText = (text: string): string | null => decodePercent(text.replaceAll('+', ' '));

/** uWebSockets.js inserts it for bytes that are not UTF-8: different ids would become equal. */
const replacementCharacter = '\ufffd';

function decodePercent(text: string): string | null {
  try {
    return text.includes(replacementCharacter) ? null : decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** A structured-field string (RFC 8941) or bare text. @throws ApiError INVALID_REQUEST */
export function parseIdempotencyKey(header: string | null): string | null {
  if (header === null) return null;
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(header);
  const key = quoted === null ? header : (quoted[1] as string).replace(/\\(["\\])/g, '$1');
  const isMalformed = (quoted === null && header.startsWith('"')) || header.includes(replacementCharacter);
  const problem = isMalformed ? 'is not a well-formed string' : findIdProblem(key);
  if (problem === null) return key;
  throw invalid(`The header Idempotency-Key ${problem}.`, [{ path: 'Idempotency-Key', message: problem }]);
}
