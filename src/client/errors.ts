import { type ErrorCode, errorTable, type Problem } from '../errors.js';

/** As the service's table of errors has it: `with an event_id` where it is not known whether the call took effect. */
type Retry = (typeof errorTable)[ErrorCode]['retry'];

/** What goes wrong without an error of the service, and whether to try again. */
const clientErrors = {
  /** No answer: no connection, or it broke. */
  NETWORK_ERROR: 'with an event_id',
  /** No answer within `timeoutMs`. */
  TIMEOUT: 'with an event_id',
  /** The caller's signal; its reason is the `cause`. */
  ABORTED: 'no',
  /** An answer that is not the service's, of a proxy for one; from status 500 on it is tried again. */
  BAD_RESPONSE: 'no',
  /** `track` found no room. */
  QUEUE_FULL: 'no',
  /** The client was closed. */
  CLOSED: 'no',
  /** An answer waited so long that its event id may be forgotten. */
  EXPIRED: 'no',
  /** The `store` failed; its error is the `cause`. */
  STORE_FAILED: 'no',
} as const satisfies Readonly<Record<string, Retry>>;

export type SkilltraceErrorCode = ErrorCode | keyof typeof clientErrors;

interface ErrorFields {
  /** HTTP status; 0 without an answer. */
  readonly status?: number;
  readonly details?: readonly Problem[];
  readonly requestId?: string | null;
  readonly retryAfterMs?: number | null;
  readonly cause?: unknown;
}

/** Everything that a call of the client rejects with. */
export class SkilltraceError extends Error {
  override readonly name = 'SkilltraceError';
  /** HTTP status of the answer; 0 where none came. */
  readonly status: number;
  /** Fields at fault, where the service names them. */
  readonly details: readonly Problem[];
  /** X-Request-Id of the answer, to look for in the service's log. */
  readonly requestId: string | null;
  /** What the service asks to wait before the next try, in milliseconds. */
  readonly retryAfterMs: number | null;
  /** Tries of the call that failed, this one included. */
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

  /** Whether the same call may succeed later, and does no harm where it had taken effect already. */
  get retryable(): boolean {
    return this.#retry !== 'no';
  }

  /** Whether the call certainly had no effect, so that even one with a condition may be sent again. */
  get hadNoEffect(): boolean {
    return this.#retry === 'yes';
  }

  get #retry(): Retry {
    if (Object.hasOwn(errorTable, this.code)) return errorTable[this.code as ErrorCode].retry;
    if (this.status === 429 || this.status >= 500) return 'with an event_id';
    return clientErrors[this.code as keyof typeof clientErrors] ?? 'no';
  }
}

/** The error of an answer that is not a success. @param text body of the answer */
export function errorOf({ status, headers }: Response, text: string, retryAfterMs: number | null) {
  const error = errorIn(text);
  const fields = { status, retryAfterMs, requestId: headers.get('x-request-id') };
  if (error === null)
    return new SkilltraceError('BAD_RESPONSE', `Answer without an error of Skilltrace: ${status}`, fields);
  return new SkilltraceError(error.code, error.message, { ...fields, details: error.details ?? [] });
}

interface SentError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details?: readonly Problem[];
}

function errorIn(text: string): SentError | null {
  const body = parsed(text) as { readonly error?: Partial<SentError> } | null | undefined;
  return typeof body?.error?.code === 'string' ? (body.error as SentError) : null;
}

/** The value of a JSON text; undefined for any other text. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
