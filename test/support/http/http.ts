import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import { gunzipSync } from 'node:zlib';

/** A response as received. */
export interface Answer {
  readonly status: number;
  /** Keys are lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** Decompressed if it is JSON. */
  readonly text: string;
}

type Json = ReturnType<typeof JSON.parse>;

export interface JsonAnswer extends Answer {
  readonly json: Json;
}

export const jsonOf = (answer: Answer): Json => JSON.parse(answer.text);

/** `200`, or status and code of an error: `400 INVALID_REQUEST`. */
export const outcomeOf = ({ status, json }: JsonAnswer): string =>
  json?.error === undefined ? `${status}` : `${status} ${json.error.code}`;

export type Wire = ReturnType<typeof openWire>;

/** Reached only in a failing test. */
const answerLimitMs = 60_000;

/** Opens a raw connection, which sends exactly the given bytes. */
export function openWire(port: number) {
  // Half open: if Node answers the server's FIN while a reset arrives, it fails with EINVAL and leaks a handle, for
  // which the process waits in a busy loop when it exits.
  const socket = connect({ host: '127.0.0.1', port, noDelay: true, allowHalfOpen: true });
  let buffered = Buffer.alloc(0);
  let over = false;
  const changes = new EventEmitter();
  socket.on('data', (chunk) => {
    buffered = Buffer.concat([buffered, chunk]);
    changes.emit('change');
  });
  // A reset also closes the connection. The bytes before it count.
  for (const name of ['end', 'close', 'error'])
    socket.on(name, () => {
      over = true;
      changes.emit('change');
    });

  /** Repeats `look` after each change until it returns a value. */
  async function until<Value>(what: string, limitMs: number, look: () => Value | undefined): Promise<Value> {
    const signal = AbortSignal.timeout(limitMs);
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      await once(changes, 'change', { signal }).catch(() => {
        throw new Error(`${what}: not within ${limitMs} ms; so far: ${buffered}`);
      });
    }
  }

  return {
    socket,
    send: (bytes: string | Buffer): void => void socket.write(bytes),
    /** The next complete response. Rejects if the connection closes first, or after `limitMs`. */
    next: ({ head = false, limitMs = answerLimitMs } = {}): Promise<Answer> =>
      until('answer', limitMs, () => {
        const parsed = parseAnswer(buffered, head);
        if (parsed === null && over) throw new Error(`the connection closed; so far: ${buffered}`);
        if (parsed === null) return undefined;
        buffered = buffered.subarray(parsed.end);
        return parsed.answer;
      }),
    /** Resolves when the server has closed the connection. */
    closed: (limitMs = answerLimitMs): Promise<unknown> => until('close', limitMs, () => over || undefined),
    isClosed: (): boolean => over,
    end: (): void => void socket.destroy(),
  };
}

/** The first response in the bytes; null if it is incomplete. */
function parseAnswer(bytes: Buffer, head: boolean): { answer: Answer; end: number } | null {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return null;
  const [statusLine = '', ...lines] = bytes.subarray(0, headEnd).toString('latin1').split('\r\n');
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const status = Number(statusLine.split(' ')[1]);
  const start = headEnd + 4;
  if (!head && headers['transfer-encoding'] === 'chunked') {
    const body = parseChunks(bytes, start);
    return body && { answer: { status, headers, text: body.text }, end: body.end };
  }
  const end = start + (head ? 0 : Number(headers['content-length'] ?? 0));
  if (bytes.length < end) return null;
  return { answer: { status, headers, text: decodeBody(headers, bytes.subarray(start, end)) }, end };
}

/** Decompresses JSON: pages have bytes after the end of gzip in some responses. */
function decodeBody(headers: Answer['headers'], body: Buffer): string {
  const isPacked = headers['content-encoding'] === 'gzip' && headers['content-type'] === 'application/json';
  return (isPacked && body.length > 0 ? gunzipSync(body) : body).toString('utf8');
}

/** A chunked body (RFC 9112, 7.1) without trailers; null if it is incomplete. */
function parseChunks(bytes: Buffer, start: number): { text: string; end: number } | null {
  const chunks: Buffer[] = [];
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd < 0) return null;
    const line = bytes.toString('latin1', at, lineEnd);
    if (!/^[0-9a-f]+$/i.test(line)) throw new Error(`invalid chunk size; received: ${bytes}`);
    const size = Number.parseInt(line, 16);
    const next = lineEnd + 2 + size + 2;
    if (bytes.length < next) return null;
    if (size === 0) return { text: Buffer.concat(chunks).toString('utf8'), end: next };
    chunks.push(bytes.subarray(lineEnd + 2, next - 2));
    at = next;
  }
}

/** Sends bytes on a new connection. @returns the first response */
export async function exchangeRaw(port: number, bytes: string | Buffer): Promise<Answer> {
  const wire = openWire(port);
  try {
    wire.send(bytes);
    return await wire.next();
  } finally {
    wire.end();
  }
}

export interface RequestParts {
  readonly method?: string;
  readonly path?: string;
  /** A list repeats the header. Null omits a default header. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | null>>;
  readonly body?: string | Buffer | null;
}

/** Bytes of a request; by default a POST of JSON to track-answer. */
export function rawRequest(
  key: string | null,
  { method = 'POST', path = '/api/v1/track-answer', headers = {}, body = null }: RequestParts,
): Buffer {
  const bytes = Buffer.from(body ?? '');
  const all: Record<string, string | readonly string[] | null> = {
    Host: 'localhost',
    'X-API-Key': key,
    ...(body === null ? {} : { 'Content-Type': 'application/json', 'Content-Length': `${bytes.length}` }),
    ...headers,
  };
  const lines = Object.entries(all).flatMap(([name, value]) =>
    value === null ? [] : [value].flat().map((one) => `${name}: ${one}\r\n`),
  );
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`), bytes]);
}

type Headers = RequestParts['headers'];

export type Caller = ReturnType<typeof callerOf>;

/** Sends requests with one API key. */
export function callerOf({ port }: { readonly port: number }, key: string | null) {
  const raw = (parts: RequestParts): Promise<Answer> => exchangeRaw(port, rawRequest(key, parts));
  /** Like `raw`, and parses the response's JSON. */
  const call = async (parts: RequestParts): Promise<JsonAnswer> => {
    const answer = await raw(parts);
    return { ...answer, json: jsonOf(answer) };
  };
  const post = (path: string, body: unknown, headers: Headers = {}): Promise<JsonAnswer> =>
    call({ path, headers, body: isBytes(body) ? body : JSON.stringify(body) });
  return {
    raw,
    call,
    get: (path: string, headers: Headers = {}) => call({ method: 'GET', path, headers }),
    /** Sends a body as JSON, or no body if it is undefined. */
    send: (method: string, path: string, body?: unknown, headers: Headers = {}) =>
      call({ method, path, headers, body: body === undefined ? null : JSON.stringify(body) }),
    head: async (path: string): Promise<Answer> => {
      const wire = openWire(port);
      try {
        wire.send(rawRequest(key, { method: 'HEAD', path }));
        const answer = await wire.next({ head: true });
        assert.equal(answer.headers.connection, 'close');
        await wire.closed();
        await assert.rejects(wire.next({ head: true }), /so far: $/, 'a HEAD response has a body');
        return answer;
      } finally {
        wire.end();
      }
    },
    /** Posts one event. Text and bytes are sent unchanged. */
    track: (event: unknown, headers?: Headers) => post('/api/v1/track-answer', event, headers),
    /** Posts `{"events": [...]}`. */
    trackAll: (events: readonly unknown[], headers?: Headers) =>
      post('/api/v1/track-answers', { events }, headers),
  };
}

const isBytes = (body: unknown): body is string | Buffer => typeof body === 'string' || Buffer.isBuffer(body);

let learners = 0;

/** A learning event of a new learner. */
export function event(change: Record<string, unknown> = {}): Record<string, unknown> {
  learners += 1;
  return { user_id: `learner-${learners}`, skill_id: 'algebra', is_correct: true, ...change };
}
