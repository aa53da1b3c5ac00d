import { Deadline, sleep } from './deadline.js';
import { errorOf, parsed, SkilltraceError } from './errors.js';
import { Pace } from './pace.js';
import { type RetryPolicy, withRetries } from './retry.js';

export interface CallOptions {
  /** Aborts the call, which rejects with ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

export interface TransportSettings {
  readonly baseUrl: string;
  readonly apiKey: string | (() => string | Promise<string>) | undefined;
  readonly fetch: typeof fetch;
  readonly timeoutMs: number;
  readonly retry: RetryPolicy;
}

export interface Request {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** JSON text. */
  readonly body?: string;
  /** Value of the ETag header. */
  readonly ifMatch?: string | undefined;
  /** False: the call is retried only if an attempt certainly had no effect. */
  readonly isIdempotent?: boolean;
  /** Accepted in addition to 2xx. */
  readonly alsoFine?: readonly number[];
}

export interface Received {
  readonly headers: Headers;
  readonly text: string;
}

export class Transport {
  readonly pace = new Pace();

  constructor(readonly settings: TransportSettings) {}

  /** Waits while the quota is exhausted. @throws SkilltraceError */
  call(request: Request, { signal }: CallOptions = {}): Promise<Received> {
    return this.#retrying(request, signal, () => this.once(request, signal));
  }

  /** @throws SkilltraceError */
  async once(request: Request, signal?: AbortSignal): Promise<Received> {
    const { response, deadline } = await this.#open(request, signal);
    try {
      return { headers: response.headers, text: await deadline.guard(() => response.text()) };
    } finally {
      deadline.end();
    }
  }

  /** Retries until the first line. @throws SkilltraceError */
  async *lines(request: Request, { signal }: CallOptions = {}): AsyncGenerator<string> {
    const opened = await this.#retrying(request, signal, () => this.#open(request, signal));
    try {
      yield* linesOf(opened.response, opened.deadline);
    } finally {
      opened.deadline.end();
    }
  }

  async #open(request: Request, signal: AbortSignal | undefined) {
    const deadline = new Deadline(this.settings.timeoutMs, signal);
    try {
      return { response: await this.#answer(request, deadline), deadline };
    } catch (error) {
      deadline.end();
      throw error;
    }
  }

  #retrying<Value>(request: Request, signal: AbortSignal | undefined, attempt: () => Promise<Value>) {
    const { retry: policy } = this.settings;
    const call = async (): Promise<Value> => {
      const waitMs = this.pace.until - Date.now();
      // For longer pauses, the service responds with an error.
      if (waitMs > 0 && waitMs <= policy.withinMs) await sleep(waitMs, signal);
      return attempt();
    };
    const { ifMatch, isIdempotent = true } = request;
    return withRetries(call, { policy, isRepeatable: isIdempotent && ifMatch === undefined, signal });
  }

  /** @throws SkilltraceError for an error status */
  async #answer(request: Request, deadline: Deadline): Promise<Response> {
    const { baseUrl, fetch } = this.settings;
    const { method, path, query = {}, body, alsoFine = [] } = request;
    const response = await deadline.guard(async () =>
      fetch(`${baseUrl.replace(/\/+$/, '')}${path}${queryText(query)}`, {
        method,
        headers: await this.#headers(request),
        ...(body !== undefined && { body }),
        signal: deadline.signal,
        // A redirect could leak the key.
        redirect: 'manual',
      }),
    );
    const retryAfterMs = this.pace.note(response);
    if (response.ok || alsoFine.includes(response.status)) return response;
    throw errorOf(response, await deadline.guard(() => response.text()), retryAfterMs);
  }

  async #headers({ body, ifMatch }: Request): Promise<Record<string, string>> {
    const { apiKey } = this.settings;
    const key = typeof apiKey === 'function' ? await apiKey() : apiKey;
    return {
      ...(key !== undefined && { 'X-API-Key': key }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...(ifMatch !== undefined && { 'If-Match': ifMatch }),
    };
  }
}

function queryText(query: NonNullable<Request['query']>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(given.map(([name, value]) => [name, `${value}`] as [string, string]));
  return given.length === 0 ? '' : `?${text}`;
}

async function* linesOf(response: Response, deadline: Deadline): AsyncGenerator<string> {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await deadline.guard(() => reader.read());
      if (done) break;
      const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) yield line;
    }
    if (rest !== '') yield rest;
  } finally {
    await reader.cancel();
  }
}

/** @throws SkilltraceError BAD_RESPONSE */
export function jsonOf({ text, headers }: Received): unknown {
  const value = parsed(text);
  if (typeof value === 'object' && value !== null) return value;
  const requestId = headers.get('x-request-id');
  throw new SkilltraceError('BAD_RESPONSE', 'The answer is not JSON of Skilltrace', {
    status: 200,
    requestId,
  });
}
