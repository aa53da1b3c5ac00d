/** Reading the parts of a request; whatever does not fit is the caller's INVALID_REQUEST. */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { TObject } from 'typebox';
import { Compile } from 'typebox/compile';
import { checked } from '../contracts/checked.js';
import { learningIdProblem } from '../contracts/ids.js';
import { ApiError, invalid } from '../errors.js';
import type { BodyRules } from './route.js';

/**
 * The media type of a body, if the route takes it.
 * @throws ApiError UNSUPPORTED_MEDIA_TYPE
 */
export function checkMediaType(contentType: string | null, rules: BodyRules): string {
  if (contentType !== null && rules.mediaTypes.includes(contentType)) return contentType;
  const [type = '', ...parameters] = (contentType ?? '').split(';').map((part) => part.trim().toLowerCase());
  if (!rules.mediaTypes.includes(type)) {
    throw unsupported(`Content-Type must be ${rules.mediaTypes.join(' or ')}`);
  }
  const charset = parameters.find((parameter) => parameter.startsWith('charset='));
  if (charset !== undefined && !/^charset="?utf-8"?$/.test(charset))
    throw unsupported('The charset must be utf-8');
  return type;
}

/** @throws ApiError UNSUPPORTED_MEDIA_TYPE */
export function checkEncoding(contentEncoding: string | null, rules: BodyRules): string {
  const encoding = (contentEncoding ?? 'identity').trim().toLowerCase();
  if (!rules.encodings.includes(encoding)) {
    throw unsupported(`Content-Encoding must be ${rules.encodings.join(' or ')}`);
  }
  return encoding;
}

const unsupported = (message: string): ApiError => new ApiError('UNSUPPORTED_MEDIA_TYPE', message);

const inflate = promisify(gunzip);

/** @throws ApiError PAYLOAD_TOO_LARGE when it would be larger than the limit, INVALID_REQUEST when it is no gzip */
export async function decompress(body: Buffer, limit: number): Promise<Buffer> {
  try {
    return await inflate(body, { maxOutputLength: limit });
  } catch (error) {
    if (error instanceof RangeError) {
      throw new ApiError('PAYLOAD_TOO_LARGE', `The body is larger than ${limit / 1024} KiB`);
    }
    throw invalid('The body is not valid gzip');
  }
}

/** A path parameter: percent-encoded UTF-8. @throws ApiError INVALID_REQUEST */
export function decodeParameter(encoded: string): string {
  const text = decodePercent(encoded);
  const problem = text === null ? 'is not percent-encoded UTF-8' : learningIdProblem(text);
  if (text === null || problem !== null) throw invalid(`The id in the path ${problem}`);
  return text;
}

export type QueryReader = ReturnType<typeof createQueryReader>;

/** Reads a query by its schema, whose values are numbers and texts; what it does not name is ignored. */
export function createQueryReader(schema: TObject) {
  const check = Compile(schema);
  const fields = Object.entries<Field>(schema.properties);
  const names = fields.map(([name]) => name);
  return {
    names,
    /** @throws ApiError INVALID_REQUEST */
    read: (query: string): unknown => {
      const texts = parseQuery(query, names);
      const values = fields.flatMap(([name, field]) => {
        const value = fieldValue(texts[name], field);
        return value === undefined ? [] : [[name, value]];
      });
      return checked(check, Object.fromEntries(values), 'query');
    },
  };
}

interface Field {
  readonly type?: string;
  readonly default?: unknown;
}

/** Numbers in queries are plain decimals. */
const plainDecimal = /^\d{1,15}(\.\d{1,15})?$/;

function fieldValue(text: string | undefined, { type, default: otherwise }: Field): unknown {
  if (text === undefined) return otherwise;
  if (type !== 'integer' && type !== 'number') return text;
  return plainDecimal.test(text) ? Number(text) : Number.NaN;
}

/** Query values by name. An empty or repeated one is an error where the name is asked for. */
function parseQuery(query: string, names: readonly string[]): Readonly<Record<string, string>> {
  if (query === '') return {};
  const values: Record<string, string> = {};
  for (const part of query.split('&')) {
    const equals = part.indexOf('=');
    const name = decodeQueryText(equals < 0 ? part : part.slice(0, equals));
    if (name === null || !names.includes(name)) continue;
    const value = equals < 0 ? '' : decodeQueryText(part.slice(equals + 1));
    if (value === null) throw badQuery(name, 'is not percent-encoded UTF-8');
    if (value === '') throw badQuery(name, 'must not be empty');
    if (values[name] !== undefined) throw badQuery(name, 'must be given once');
    values[name] = value;
  }
  return values;
}

const badQuery = (name: string, message: string): ApiError =>
  invalid(`Invalid query: ${name} ${message}`, [{ path: name, message }]);

const decodeQueryText = (text: string): string | null => decodePercent(text.replaceAll('+', ' '));

/** What uWebSockets.js makes of bytes that are not UTF-8: different ones would become the same id. */
const notUtf8 = '\ufffd';

function decodePercent(text: string): string | null {
  if (text.includes(notUtf8)) return null;
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}

/**
 * The event id that a request's header stands for: a structured-field string (RFC 8941) or the bare text.
 * @throws ApiError INVALID_REQUEST
 */
export function parseIdempotencyKey(header: string | null): string | null {
  if (header === null) return null;
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(header);
  const key = quoted === null ? header : (quoted[1] as string).replace(/\\(["\\])/g, '$1');
  const isMalformed = (quoted === null && header.startsWith('"')) || header.includes(notUtf8);
  const problem = isMalformed ? 'is not a well-formed string' : learningIdProblem(key);
  if (problem === null) return key;
  throw invalid(`The header Idempotency-Key ${problem}`, [{ path: 'Idempotency-Key', message: problem }]);
}
