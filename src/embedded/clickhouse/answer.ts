import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { createGzip, type Gzip } from 'node:zlib';
import type { EngineFailure } from './errors.js';
import { contentType } from './formats.js';
import type { ResultSink } from './lanes.js';
import type { WriteSummary } from './messages.js';

/** An answer being written: headers go out with the first chunk, so that an early error has its status. */
export interface Answer extends ResultSink {
  finish(summary: WriteSummary | null): void;
  fail(failure: EngineFailure): void;
}

function wantsGzip(request: IncomingMessage, query: URLSearchParams): boolean {
  const accepted = String(request.headers['accept-encoding'] ?? '');
  const asked = query.get('enable_http_compression');
  return (asked === '1' || asked === 'true') && /\bgzip\b/.test(accepted);
}

function summaryHeader(summary: WriteSummary | null): string {
  const rows = String(summary?.writtenRows ?? 0);
  const bytes = String(summary?.writtenBytes ?? 0);
  const read = { read_rows: rows, read_bytes: bytes, total_rows_to_read: '0' };
  const written = { written_rows: rows, written_bytes: bytes, result_rows: rows, result_bytes: bytes };
  return JSON.stringify({ ...read, ...written, elapsed_ns: '0' });
}

/** Opens the answer to a request; nothing is sent yet. */
export function openAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
  format: string,
): Answer {
  const gzip: Gzip | null = wantsGzip(request, query) ? createGzip({ level: 1 }) : null;
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

/** A reader that takes nothing for so long is cut off: its query holds a thread of the engine. */
const stalledMs = 300_000;

async function drainedOrClosed(target: Writable, response: ServerResponse): Promise<void> {
  const stop = new AbortController();
  const { signal } = stop;
  const gone = (): void => stop.abort();
  response.once('close', gone);
  const stalled = setTimeout(() => response.destroy(), stalledMs);
  await once(target, 'drain', { signal }).catch((error: Error) => {
    if (error.name !== 'AbortError') throw error;
  });
  clearTimeout(stalled);
  response.off('close', gone);
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
