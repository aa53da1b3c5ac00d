import { Deadline, sleep } from './deadline.js';
import { readError, SkilltraceError, tryParseJson } from './errors.js';
import { QuotaPause } from './quota-pause.js';
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

export interface ApiRequest {
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
  readonly acceptedStatuses?: readonly number[];
}

export interface TextResponse {
  readonly headers: Headers;
  readonly text: string;
}

export class Transport {
  readonly quotaPause = new QuotaPause();

  constructor(readonly settings: TransportSettings) {}

  /** Waits while the quota is exhausted. @throws SkilltraceError */
  call(request: ApiRequest, { signal }: CallOptions = {}): Promise<TextResponse> {
    return this.#callWithRetries(request, signal, () => this.sendOnce(request, signal));
  }

  /** @throws SkilltraceError */
  async sendOnce(request: ApiRequest, signal?: AbortSignal): Promise<TextResponse> {
    const { response, deadline } = await this.#open(request, signal);
    try {
      return { headers: response.headers, text: await deadline.guard(() => response.text()) };
    } finally {
      deadline.release();
    }
  }

  /** Retries until the response starts. `timeoutMs` limits the wait for each piece. @throws SkilltraceError */
  async *streamLines(request: ApiRequest, { signal }: CallOptions = {}): AsyncGenerator<string> {
    const opened = await this.#callWithRetries(request, signal, () => this.#open(request, signal));
    try {
      yield* readLines(opened.response, opened.deadline);
    } finally {
      opened.deadline.release();
    }
  }

  async #open(request: ApiRequest, signal: AbortSignal | undefined) {
    const deadline = new Deadline(this.settings.timeoutMs, signal);
    try {
      return { response: await this.#fetchResponse(request, deadline), deadline };
    } catch (error) {
      deadline.release();
      throw error;
    }
  }

  #callWithRetries<Value>(
    request: ApiRequest,
    signal: AbortSignal | undefined,
    attempt: () => Promise<Value>,
  ) {
    const { retry: policy } = this.settings;
    const call = async (): Promise<Value> => {
      const waitMs = this.quotaPause.until - Date.now();
      // For longer pauses, the service responds with an error.
      if (waitMs > 0 && waitMs <= policy.withinMs) await sleep(waitMs, signal);
      return attempt();
    };
    const { ifMatch, isIdempotent = true } = request;
    return withRetries(call, { policy, isRepeatable: isIdempotent && ifMatch === undefined, signal });
  }

  /** @throws SkilltraceError for an error status */
  async #fetchResponse(request: ApiRequest, deadline: Deadline): Promise<Response> {
    const { baseUrl, fetch } = this.settings;
    const { method, path, query = {}, body, acceptedStatuses = [] } = request;
    const response = await deadline.guard(async () =>
      fetch(`${baseUrl.replace(/\/+$/, '')}${path}${formatQuery(query)}`, {
        method,
        headers: await this.#headers(request),
        ...(body !== undefined && { body }),
        signal: deadline.signal,
        // A redirect could leak the key.
        redirect: 'manual',
      }),
    );
    const retryAfterMs = this.quotaPause.update(response);
    if (response.ok || acceptedStatuses.includes(response.status)) return response;
    throw readError(response, await deadline.guard(() => response.text()), retryAfterMs);
  }

  async #headers({ body, ifMatch }: ApiRequest): Promise<Record<string, string>> {
    const { apiKey } = this.settings;
    const key = typeof apiKey === 'function' ? await apiKey() : apiKey;
    return {
      ...(key !== undefined && { 'X-API-Key': key }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...(ifMatch !== undefined && { 'If-Match': ifMatch }),
    };
  }
}

function formatQuery(query: NonNullable<ApiRequest['query']>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(given.map(([name, value]) => [name, `${value}`] as [string, string]));
  return given.length === 0 ? '' : `?${text}`;
}

async function* readLines(response: Response, deadline: Deadline): AsyncGenerator<string> {
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
export function parseResponse({ text, headers }: TextResponse): unknown {
  const value = tryParseJson(text);
  if (typeof value === 'object' && value !== null) return value;
  const requestId = headers.get('x-request-id');
  throw new SkilltraceError(
    'BAD_RESPONSE',
    'The response is not a Skilltrace JSON envelope. Check the base URL and proxies',
    {
      status: 200,
      requestId,
    },
  );
}
