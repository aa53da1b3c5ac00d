/** Bodies of requests, and answers. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip, createInflate } from 'node:zlib';
import { BridgeError, type EngineFailure } from './errors.js';
import type { ResultSink } from './lanes.js';
import type { WriteSummary } from './messages.js';
import { contentType } from './sql.js';

/** The whole body, decompressed; a client that disconnects in the middle rejects: a cut insert never runs. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const encoding = (request.headers['content-encoding'] ?? 'identity').toLowerCase();
  if (encoding === 'identity' || encoding === '') return collect(request, maxBytes);
  let body: Buffer = Buffer.alloc(0);
  try {
    await pipeline(request, decoder(encoding), async (source: AsyncIterable<Buffer>) => {
      body = await collect(source, maxBytes);
    });
  } catch (error) {
    if (error instanceof BridgeError) throw error;
    throw new BridgeError(354, 'ZLIB_INFLATE_FAILED', `The compressed body cannot be read: ${String(error)}`);
  }
  return body;
}

function decoder(encoding: string) {
  if (encoding === 'gzip') return createGunzip();
  if (encoding === 'deflate') return createInflate();
  throw new BridgeError(48, 'NOT_IMPLEMENTED', `Content-Encoding ${encoding} is not supported; use gzip`);
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

/** An answer being written: headers go out with the first chunk, so that an early error has its status. */
interface Answer extends ResultSink {
  finish(summary: WriteSummary | null): void;
  fail(failure: EngineFailure): void;
}

/** Opens the answer to a request; nothing is sent yet. */
export function openAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
  format: string,
): Answer {
  const gzip = wantsGzip(request, query) ? createGzip({ level: 1 }) : null;
  const target: Writable = gzip ?? response;

  const begin = (): void => {
    if (response.headersSent) return;
    response.setHeader('Content-Type', contentType(format));
    response.setHeader('X-ClickHouse-Format', format);
    if (gzip !== null) {
      response.setHeader('Content-Encoding', 'gzip');
      gzip.pipe(response);
    }
    response.writeHead(200);
  };

  return {
    async chunk(bytes) {
      if (response.destroyed) return false;
      begin();
      if (!target.write(bytes)) await drainedOrClosed(target, response);
      return !response.destroyed;
    },
    finish(summary) {
      if (response.destroyed) return;
      if (!response.headersSent) response.setHeader('X-ClickHouse-Summary', summaryHeader(summary));
      begin();
      target.end();
    },
    fail(failure) {
      if (response.destroyed) return;
      // Part of the result is out: only a cut connection cannot be taken for a complete answer.
      if (response.headersSent) response.destroy();
      else sendFailure(response, failure);
    },
  };
}

function wantsGzip({ headers }: IncomingMessage, query: URLSearchParams): boolean {
  const isAsked = ['1', 'true'].includes(query.get('enable_http_compression') ?? '');
  return isAsked && /\bgzip\b/.test(String(headers['accept-encoding'] ?? ''));
}

function summaryHeader(summary: WriteSummary | null): string {
  const rows = String(summary?.writtenRows ?? 0);
  const bytes = String(summary?.writtenBytes ?? 0);
  const read = { read_rows: rows, read_bytes: bytes, total_rows_to_read: '0' };
  const written = { written_rows: rows, written_bytes: bytes, result_rows: rows, result_bytes: bytes };
  return JSON.stringify({ ...read, ...written, elapsed_ns: '0' });
}

/** A reader that takes nothing for so long is cut off: its query holds a thread of the engine. */
const maxStallMs = 300_000;

async function drainedOrClosed(target: Writable, response: ServerResponse): Promise<void> {
  const closed = new AbortController();
  const close = (): void => closed.abort();
  response.once('close', close);
  const stalled = setTimeout(() => response.destroy(), maxStallMs);
  await once(target, 'drain', { signal: closed.signal }).catch((error: Error) => {
    if (error.name !== 'AbortError') throw error;
  });
  clearTimeout(stalled);
  response.off('close', close);
}

/** Sends an error as ClickHouse does: status, code header, text. */
export function sendFailure(response: ServerResponse, failure: EngineFailure): void {
  response.setHeader('X-ClickHouse-Exception-Code', String(failure.code));
  sendText(response, failure.status, failure.body);
}

/** Sends a short plain text. */
export function sendText(response: ServerResponse, status: number, text: string): void {
  response.setHeader('Content-Type', 'text/plain; charset=UTF-8');
  response.setHeader('Content-Length', Buffer.byteLength(text));
  response.writeHead(status);
  response.end(text);
}
