/** Gzip for large JSON responses (RFC 9110, 8.4 and 12.5.3). */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { createLimiter } from '../concurrency.js';
import type { Reply, Route } from './route.js';

const minChars = 8 * 1024;
/** Of bodies that are being compressed or queued. */
const maxPendingChars = 16 * 1024 * 1024;

/** Two of the four threads of libuv, which also decompress requests, read files and resolve names. */
const limit = createLimiter({
  ...{ maxRunning: 2, maxRunningOfTenant: 2, maxQueuedOfTenant: 32, maxQueueWaitMs: 100 },
  rejectionMessage: 'Too many responses are waiting for compression.',
});
const pack = promisify(gzip);
const options = { level: 5, chunkSize: 128 * 1024 };
let pendingChars = 0;

/**
 * Excludes the calls that record answers, which must not wait, and responses with a strong ETag, which
 * identifies the uncompressed bytes.
 */
export const isCompressible = ({ body, headers, error }: Reply, route: Route | null): boolean =>
  body.length > minChars &&
  route !== null &&
  route.scope !== 'write' &&
  error === undefined &&
  headers?.['Content-Type'] === undefined &&
  !headers?.ETag?.startsWith('"');

/** The body stays uncompressed if the client does not accept gzip, or if too many bodies are pending. */
export async function compressReply(reply: Reply, acceptEncoding: string | null): Promise<Reply> {
  const packed = acceptsGzip(acceptEncoding ?? '') ? await compress(reply.body) : null;
  const headers = { ...reply.headers, Vary: 'Accept-Encoding' };
  if (packed === null) return { ...reply, headers };
  return { ...reply, body: packed, headers: { ...headers, 'Content-Encoding': 'gzip' } };
}

/** @returns null if too many bodies are pending */
async function compress(body: string | Buffer): Promise<Buffer | null> {
  if (pendingChars + body.length > maxPendingChars) return null;
  pendingChars += body.length;
  try {
    return await limit<Buffer | null>(
      '',
      () => pack(body, options),
      () => null,
    );
  } finally {
    pendingChars -= body.length;
  }
}

const codingShape = /^\s*([\w*-]+)\s*(?:;\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*)?$/;

/** Ignores malformed codings. Uncompressed responses are always allowed, even with `identity;q=0`. */
function acceptsGzip(acceptEncoding: string): boolean {
  const weights = new Map<string, number>();
  for (const coding of acceptEncoding.toLowerCase().split(',')) {
    const [, name, weight = '1'] = codingShape.exec(coding) ?? [];
    if (name !== undefined) weights.set(name, Number(weight));
  }
  const gzipWeight = weights.get('gzip') ?? weights.get('x-gzip') ?? weights.get('*') ?? 0;
  return gzipWeight > 0 && gzipWeight >= (weights.get('identity') ?? 0);
}
