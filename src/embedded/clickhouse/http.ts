import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { pipeline } from 'node:stream';
import { createGzip, createUnzip } from 'node:zlib';
import type { Account, ChildOptions } from '../start-clickhouse.js';
import { buildJob } from './build-job.js';
import { BridgeError, toFailure } from './errors.js';
import { addAdvice } from './limit-advice.js';
import { checkOverruns } from './overruns.js';
import type { InsertSummary, QueryLanes } from './query-lanes.js';
import { findContentType } from './sql.js';

type BridgeOptions = Pick<ChildOptions, 'accounts' | 'database' | 'overruns' | 'analystLimits'> & {
  readonly lanes: QueryLanes;
};

/** Body limits after decompression: for the service, and for an analyst, who sends only queries. */
const maxInsertBytes = 256 * 1024 * 1024;
const maxQueryBytes = 1024 * 1024;
/** A stalled reader occupies an engine thread. */
const maxStallMs = 300_000;
const errorDeliveryMs = 10_000;

export const createBridge = (options: BridgeOptions): Server =>
  createServer(
    { keepAliveTimeout: 10_000, requestTimeout: 300_000, maxHeaderSize: 1024 * 1024 },
    (request, response) => {
      handleRequest(options, request, response).catch((error: unknown) => {
        // If part of the result is sent, only a cut connection shows that it is incomplete.
        if (response.destroyed || response.headersSent) return void response.destroy();
        // The unread rest of the body would look like the next request.
        if (!request.complete) response.setHeader('Connection', 'close');
        const { code, status, body } = toFailure(error);
        response.setHeader('X-ClickHouse-Exception-Code', String(code));
        sendText(response, status, body);
        request.resume();
      });
    },
  );

async function handleRequest(
  options: BridgeOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = '' } = request;
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
  const isRead = method === 'GET' || method === 'HEAD';
  const isQuery = method === 'POST' || searchParams.has('query');
  if (isRead && (['/ping', '/replicas_status'].includes(pathname) || (pathname === '/' && !isQuery)))
    return sendText(response, 200, 'Ok.\n');
  const [path, database = null] = /^\/(?:([A-Za-z_]\w*)\/?)?$/.exec(pathname) ?? [];
  if (path === undefined || !isQuery)
    return sendText(response, 404, `There is no handle ${pathname.slice(0, 200)}\n`);
  if (!isRead && method !== 'POST')
    throw new BridgeError(48, 'NOT_IMPLEMENTED', `Method ${method} is not supported; use GET or POST`);
  return runQuery(options, request, response, searchParams, database);
}

async function runQuery(
  { lanes, accounts, database, overruns, analystLimits }: BridgeOptions,
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
  pathDatabase: string | null,
): Promise<void> {
  const id = randomUUID();
  response.setHeader('X-ClickHouse-Server-Display-Name', 'skilltrace-embedded');
  response.setHeader('X-ClickHouse-Query-Id', query.get('query_id') ?? id);
  response.setHeader('X-ClickHouse-Timezone', 'UTC');
  const { headers, method = 'GET' } = request;
  const { readonly: isAnalyst } = authenticate(accounts, headers, query);
  const body = await readBody(request, isAnalyst ? maxQueryBytes : maxInsertBytes);
  const disconnected = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) disconnected.abort();
  });
  const databases = { pathDatabase, defaultDatabase: database };
  const limits = isAnalyst ? analystLimits : null;
  const { job, lane, format } = buildJob({ query, headers, method, ...databases, limits, id }, body);
  if (isAnalyst) checkOverruns(overruns, job.statement, Date.now());
  // The service retries after any cut. Analysts want the reason.
  const tag = isAnalyst ? id.slice(0, 8) : null;
  const result = openResult(response, format, acceptsGzip(headers, query), tag, disconnected.signal);
  try {
    result.finish(await lanes.run(lane, job, result.write, disconnected.signal));
  } catch (error) {
    result.fail(addAdvice(job, error));
  }
}

/** @throws BridgeError 516 */
export function authenticate(
  accounts: readonly Account[],
  headers: IncomingHttpHeaders,
  query: URLSearchParams,
): Account {
  const [user, password] = parseCredentials(headers, query);
  const account = accounts.find(({ name }) => name === user);
  const isRight = timingSafeEqual(digest(password), digest(account?.password ?? ''));
  if (isRight && account !== undefined) return account;
  const reason = 'Authentication failed: password is incorrect, or there is no user with such name.';
  throw new BridgeError(516, 'AUTHENTICATION_FAILED', `${user.slice(0, 100)}: ${reason}`);
}

function parseCredentials(
  headers: IncomingHttpHeaders,
  query: URLSearchParams,
): [user: string, password: string] {
  const { 'x-clickhouse-user': user, 'x-clickhouse-key': key } = headers;
  if (user !== undefined || key !== undefined) return [String(user ?? 'default'), String(key ?? '')];
  const basic = /^Basic\s+(\S+)$/i.exec(headers.authorization ?? '')?.[1];
  if (basic === undefined) return [query.get('user') ?? 'default', query.get('password') ?? ''];
  const [name = '', ...password] = Buffer.from(basic, 'base64').toString('utf8').split(':');
  return [name, password.join(':')];
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Rejects if the client disconnects, so that a truncated insert never runs. */
async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const encoding = (request.headers['content-encoding'] || 'identity').toLowerCase();
  if (encoding === 'identity') return collect(request, maxBytes);
  if (encoding !== 'gzip' && encoding !== 'deflate')
    throw new BridgeError(48, 'NOT_IMPLEMENTED', `Content-Encoding ${encoding} is not supported; use gzip`);
  const unpacked = pipeline(request, createUnzip(), () => undefined);
  return collect(unpacked, maxBytes).catch((error: unknown) => {
    if (error instanceof BridgeError) throw error;
    throw new BridgeError(354, 'ZLIB_INFLATE_FAILED', `The compressed body cannot be read: ${String(error)}`);
  });
}

async function collect(source: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of source) {
    bytes += part.length;
    if (bytes > maxBytes)
      throw new BridgeError(307, 'TOO_MANY_BYTES', `The request body is larger than ${maxBytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts, bytes);
}

function acceptsGzip(headers: IncomingHttpHeaders, query: URLSearchParams): boolean {
  const isRequested = ['1', 'true'].includes(query.get('enable_http_compression') ?? '');
  return isRequested && /\bgzip\b/.test(String(headers['accept-encoding'] ?? ''));
}

/**
 * Sends nothing before the first part: an early error still gets a status.
 * @param tag marks an error after rows; null: only cut the connection
 */
function openResult(
  response: ServerResponse,
  format: string,
  isGzip: boolean,
  tag: string | null,
  disconnected: AbortSignal,
) {
  const gzip = isGzip ? createGzip({ level: 1 }) : null;
  const target = gzip ?? response;

  function begin(): void {
    if (response.headersSent) return;
    response.setHeader('Content-Type', findContentType(format));
    response.setHeader('X-ClickHouse-Format', format);
    if (tag !== null) response.setHeader('X-ClickHouse-Exception-Tag', tag);
    if (gzip !== null) {
      response.setHeader('Content-Encoding', 'gzip');
      gzip.pipe(response, { end: false });
    }
    response.writeHead(200);
  }

  function endWith(text: string, end: () => unknown): void {
    if (gzip !== null) return void gzip.once('end', end).end(text);
    if (text !== '') response.write(text);
    end();
  }

  return {
    write: async (bytes: Uint8Array): Promise<boolean> => {
      if (response.destroyed) return false;
      begin();
      if (!target.write(bytes)) {
        const stalled = setTimeout(() => response.destroy(), maxStallMs);
        await once(target, 'drain', { signal: disconnected }).catch(() => undefined);
        clearTimeout(stalled);
      }
      return !response.destroyed;
    },
    finish: (written: InsertSummary | null): void => {
      if (response.destroyed) return;
      if (!response.headersSent) response.setHeader('X-ClickHouse-Summary', formatSummary(written));
      begin();
      endWith('', () => response.end());
    },
    /** @throws the error if it can still have a status, or if `tag` is null */
    fail: (error: unknown): void => {
      if (tag === null || response.destroyed || !response.headersSent) throw error;
      // Does not end the chunked body, because the result is incomplete.
      endWith(formatLateError(tag, toFailure(error).body), () => response.socket?.end());
      setTimeout(() => response.destroy(), errorDeliveryMs).unref();
    },
  };
}

/** As in ClickHouse since 25.11. Clients parse it from the end: the length precedes the second tag. */
const formatLateError = (tag: string, error: string): string =>
  `\r\n__exception__\r\n${tag}\r\n${error}${Buffer.byteLength(error)} ${tag}\r\n__exception__\r\n`;

function formatSummary(written: InsertSummary | null): string {
  const rows = String(written?.rows ?? 0);
  const bytes = String(written?.bytes ?? 0);
  const read = { read_rows: rows, read_bytes: bytes, total_rows_to_read: '0' };
  const result = { written_rows: rows, written_bytes: bytes, result_rows: rows, result_bytes: bytes };
  return JSON.stringify({ ...read, ...result, elapsed_ns: '0' });
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.setHeader('Content-Type', 'text/plain; charset=UTF-8');
  response.setHeader('Content-Length', Buffer.byteLength(text));
  response.writeHead(status);
  response.end(text);
}
