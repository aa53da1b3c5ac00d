import { type ErrorCode, errorTable, type Problem } from '../errors.js';

/** `with an event_id`: unknown whether the call had an effect. */
type RetryRule = (typeof errorTable)[ErrorCode]['retry'];

const clientErrors = {
  /** No connection, or it broke. */
  NETWORK_ERROR: 'with an event_id',
  TIMEOUT: 'with an event_id',
  /** The reason of the caller's signal is the `cause`. */
  ABORTED: 'no',
  /** The response is not from Skilltrace but, for example, from a proxy. Retried from status 500 on. */
  BAD_RESPONSE: 'no',
  QUEUE_FULL: 'no',
  CLOSED: 'no',
  /** The service may have forgotten the event id. */
  EXPIRED: 'no',
  /** The store's error is the `cause`. */
  STORE_FAILED: 'no',
} as const satisfies Readonly<Record<string, RetryRule>>;

export type SkilltraceErrorCode = ErrorCode | keyof typeof clientErrors;

interface ErrorFields {
  readonly status?: number;
  readonly details?: readonly Problem[];
  readonly requestId?: string | null;
  readonly retryAfterMs?: number | null;
  readonly cause?: unknown;
}

export class SkilltraceError extends Error {
  override readonly name = 'SkilltraceError';
  /** HTTP status; 0 without a response. */
  readonly status: number;
  readonly details: readonly Problem[];
  /** X-Request-Id, as in the service's log. */
  readonly requestId: string | null;
  readonly retryAfterMs: number | null;
  /** Attempts of the call so far. */
  tries = 1;

  constructor(
    readonly code: SkilltraceErrorCode,
    message: string,
    { status = 0, details = [], requestId = null, retryAfterMs = null, cause }: ErrorFields = {},
  ) {
    super(message, cause === undefined ? {} : { cause });
    this.status = status;
    this.details = details;
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
  }

  /** The call may succeed later, and repeating it is harmless. */
  get retryable(): boolean {
    return this.#retry !== 'no';
  }

  /** Even a conditional write can be repeated. */
  get hadNoEffect(): boolean {
    return this.#retry === 'yes';
  }

  get #retry(): RetryRule {
    if (Object.hasOwn(errorTable, this.code)) return errorTable[this.code as ErrorCode].retry;
    if (this.status === 429 || this.status >= 500) return 'with an event_id';
    return clientErrors[this.code as keyof typeof clientErrors] ?? 'no';
  }
}

export function readError({ status, headers }: Response, text: string, retryAfterMs: number | null) {
  const error = parseErrorBody(text);
  const fields = { status, retryAfterMs, requestId: headers.get('x-request-id') };
  if (error === null)
    return new SkilltraceError(
      'BAD_RESPONSE',
      `Status ${status} without a Skilltrace error in the body. Check the base URL and proxies`,
      fields,
    );
  return new SkilltraceError(error.code, error.message, { ...fields, details: error.details ?? [] });
}

interface ErrorBody {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details?: readonly Problem[];
}

function parseErrorBody(text: string): ErrorBody | null {
  const body = tryParseJson(text) as { readonly error?: Partial<ErrorBody> } | null | undefined;
  return typeof body?.error?.code === 'string' ? (body.error as ErrorBody) : null;
}

/** @returns undefined for invalid JSON */
export function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
