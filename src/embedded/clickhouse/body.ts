import type { IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createInflate } from 'node:zlib';
import { BridgeError } from './errors.js';

/** Largest body of the service, after decompression, in bytes. */
export const maxInsertBytes = 256 * 1024 * 1024;

/** Largest body of an analyst, who only sends questions. */
export const maxQuestionBytes = 1024 * 1024;

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
    if (bytes > maxBytes) {
      throw new BridgeError(307, 'TOO_MANY_BYTES', `The request body is larger than ${maxBytes} bytes`);
    }
    parts.push(part);
  }
  return Buffer.concat(parts, bytes);
}

async function collectDecoded(request: IncomingMessage, encoding: string, maxBytes: number): Promise<Buffer> {
  let body: Buffer = Buffer.alloc(0);
  await pipeline(request, decoder(encoding), async (source: AsyncIterable<Buffer>) => {
    body = await collect(source, maxBytes);
  });
  return body;
}

/** The whole body, decompressed; a client that goes away in the middle rejects: a cut insert never runs. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const encoding = (request.headers['content-encoding'] ?? 'identity').toLowerCase();
  if (encoding === 'identity' || encoding === '') return collect(request, maxBytes);
  try {
    return await collectDecoded(request, encoding, maxBytes);
  } catch (error) {
    if (error instanceof BridgeError) throw error;
    throw new BridgeError(354, 'ZLIB_INFLATE_FAILED', `The compressed body cannot be read: ${String(error)}`);
  }
}
