/** Requests one after the other and many at once, over connections that stay; bytes are counted and thrown away. */
import { Agent, request } from 'node:http';
import type { RequestParts } from '../http/http.js';

export interface Asked {
  readonly status: number;
  readonly bytes: number;
  readonly ms: number;
}

export interface Asking extends Pick<RequestParts, 'method' | 'path' | 'body'> {
  readonly key: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

const agent = new Agent({ keepAlive: true, maxSockets: 200 });
/** Only bounds a service that stands still. */
const limitMs = 20_000;

/** Status 0 where the connection ended instead. */
export function ask(port: number, { method = 'GET', path, key, headers, body }: Asking): Promise<Asked> {
  const since = performance.now();
  const bytesOf = Buffer.from(body ?? '');
  return new Promise((resolve) => {
    let bytes = 0;
    const tell = (status: number) => (): void => resolve({ status, bytes, ms: performance.now() - since });
    const sent = request({
      host: '127.0.0.1',
      port,
      agent,
      method,
      path,
      timeout: limitMs,
      headers: {
        ...(key === null ? {} : { 'X-API-Key': key }),
        ...(bytesOf.length === 0
          ? {}
          : { 'Content-Type': 'application/json', 'Content-Length': bytesOf.length }),
        ...headers,
      },
    });
    sent.on('response', (answer) => {
      answer.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      answer.on('end', tell(answer.statusCode ?? 0));
      answer.on('error', tell(0));
    });
    sent.on('timeout', () => sent.destroy());
    sent.on('error', tell(0));
    sent.end(bytesOf);
  });
}

/** So many at any time until the time is over; gives all answers. */
export async function askFor(port: number, asking: Asking, together: number, ms: number): Promise<Asked[]> {
  const end = performance.now() + ms;
  const all: Asked[] = [];
  const loop = async (): Promise<void> => {
    while (performance.now() < end) all.push(await ask(port, asking));
  };
  await Promise.all(Array.from({ length: together }, loop));
  return all;
}

export const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
