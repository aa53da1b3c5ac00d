export interface Problem {
  readonly path: string;
  readonly message: string;
}

/** All errors that callers see. Other thrown errors are defects and become INTERNAL. */
export const errorTable = {
  INVALID_REQUEST: { status: 400, retry: 'no' },
  UNAUTHORIZED: { status: 401, retry: 'no' },
  FORBIDDEN: { status: 403, retry: 'no' },
  NOT_FOUND: { status: 404, retry: 'no' },
  USER_NOT_FOUND: { status: 404, retry: 'no' },
  SKILL_NOT_FOUND: { status: 404, retry: 'no' },
  GOAL_NOT_FOUND: { status: 404, retry: 'no' },
  WEBHOOK_NOT_FOUND: { status: 404, retry: 'no' },
  METHOD_NOT_ALLOWED: { status: 405, retry: 'no' },
  CONFLICT: { status: 409, retry: 'yes' },
  PRECONDITION_FAILED: { status: 412, retry: 'no' },
  PAYLOAD_TOO_LARGE: { status: 413, retry: 'no' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, retry: 'no' },
  IDEMPOTENCY_KEY_REUSED: { status: 422, retry: 'no' },
  LIMIT_EXCEEDED: { status: 422, retry: 'no' },
  TOO_LATE: { status: 422, retry: 'no' },
  RATE_LIMITED: { status: 429, retry: 'yes' },
  INTERNAL: { status: 500, retry: 'with an event_id' },
  UNAVAILABLE: { status: 503, retry: 'with an event_id' },
} as const;

export type ErrorCode = keyof typeof errorTable;

interface ErrorExtras {
  readonly details?: readonly Problem[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** The message contains no internals. */
export class ApiError extends Error {
  readonly details: readonly Problem[] | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    readonly code: ErrorCode,
    message: string,
    { details, headers = {}, cause }: ErrorExtras = {},
  ) {
    super(message, { cause });
    this.details = details;
    this.headers = headers;
  }

  get status(): number {
    return errorTable[this.code].status;
  }
}

/** For callers that add other advice: "The queue is full; retry later." becomes "The queue is full". */
export const removeRetryAdvice = (message: string): string => message.replace(/(; retry[^;]*)?\.?$/, '');

const maxEchoedCharacters = 100;

/** Request text for a message: printable ASCII, shortened. */
function formatInput(text: string): string {
  const printable = text.slice(0, maxEchoedCharacters).replace(/[^!-~]/g, '?');
  return text.length > maxEchoedCharacters ? `${printable}...` : printable;
}

/** HEAD must get the headers of GET, including Content-Length. */
const formatMethod = (method: string): string => formatInput(method === 'HEAD' ? 'GET' : method);

/** @param hasExtraSlash the path without the slash at its end exists */
export function pathNotFound(method: string, path: string, hasExtraSlash = false): ApiError {
  const advice = hasExtraSlash
    ? `Remove the slash at the end: ${formatInput(path.slice(0, -1))}`
    : 'See /docs for the endpoints';
  return new ApiError('NOT_FOUND', `Not found: ${formatMethod(method)} ${formatInput(path)}. ${advice}.`);
}

/** @param allow as in the header Allow */
export function methodNotAllowed(method: string, allow: string): ApiError {
  const allowed = allow.replace(/, (?=[A-Z]+$)/, ' or ');
  // Methods are case-sensitive, and `method` is in upper case.
  const message = allow.split(', ').includes(method)
    ? `The method must be in upper case; use ${allowed}.`
    : `${formatMethod(method)} is not allowed here; use ${allowed}.`;
  return new ApiError('METHOD_NOT_ALLOWED', message, { headers: { Allow: allow } });
}

const retryAfterSeconds = 1;

export const unavailable = (message: string, cause?: unknown): ApiError =>
  new ApiError('UNAVAILABLE', message, { headers: { 'Retry-After': `${retryAfterSeconds}` }, cause });

/** @throws ApiError UNAVAILABLE */
export const rejectAsUnavailable = <Value>(found: Promise<Value>): Promise<Value> =>
  found.catch((error: unknown) => {
    throw unavailable('Stored data cannot be read now; retry later.', error);
  });

export const unauthorized = (message: string): ApiError =>
  new ApiError('UNAUTHORIZED', message, { headers: { 'WWW-Authenticate': 'ApiKey' } });

export const invalid = (message: string, details?: readonly Problem[]): ApiError =>
  new ApiError('INVALID_REQUEST', message, details === undefined ? {} : { details });

/** A defect: it is unknown whether the answer was counted. */
export const countingError = (cause?: unknown): ApiError =>
  new ApiError('INTERNAL', 'The answer could not be counted; retry with the same event_id.', { cause });

export const preconditionFailed = (): ApiError =>
  new ApiError(
    'PRECONDITION_FAILED',
    'If-Match does not match the current ETag. Read the resource again, then repeat the change.',
  );
