import { ApiError, type ErrorCode, type Problem, unavailable } from '../errors.js';
import type { EventResult } from '../services/record/record-attempts.js';
import { mapInSlices } from '../slices.js';
import { defectsAmong, errorObject, errorReply, successEnvelope } from './envelope.js';
import type { Reply } from './routes.js';

/** The answer to a batch: 200 when all were accepted, 207 when some; an error when none. */
export async function batchReply(results: readonly EventResult[]): Promise<Reply> {
  const errors = results.flatMap((result, index) =>
    result instanceof ApiError ? [{ index, error: result }] : [],
  );
  const accepted = results.length - errors.length;
  const defects = defectsAmong(results);
  if (accepted === 0) return { ...refused(errors), defects };
  const entries = await mapInSlices(results.entries(), renderResult);
  const data = `{"accepted":${accepted},"rejected":${errors.length},"results":[${entries.join()}]}`;
  const message = `${accepted} of ${results.length} answers recorded`;
  return { status: errors.length === 0 ? 200 : 207, body: successEnvelope(data, message), defects };
}

function renderResult([index, result]: readonly [number, EventResult]): string {
  if (result instanceof ApiError) {
    return `{"index":${index},"status":${result.status},"error":${JSON.stringify(errorObject(result))}}`;
  }
  const replayed = result.replayed ? ',"replayed":true' : '';
  return `{"index":${index},"status":200,"data":${result.data}${replayed}}`;
}

interface IndexedError {
  readonly index: number;
  readonly error: ApiError;
}

/** Causes that are the caller's: sending the same batch again will not help. */
const callersOwn = new Set(['INVALID_REQUEST', 'IDEMPOTENCY_KEY_REUSED', 'LIMIT_EXCEEDED']);

function refused(errors: readonly IndexedError[]): Reply {
  const details = errors.flatMap(detailsOf);
  const ours = errors.find(({ error }) => !callersOwn.has(error.code));
  const message = 'No event of the batch was recorded';
  const error =
    ours === undefined
      ? new ApiError('INVALID_REQUEST', message, { details })
      : new ApiError('UNAVAILABLE', message, {
          details,
          headers: unavailable('').headers,
          cause: ours.error,
        });
  return errorReply(error);
}

/** What is at fault where the error itself does not say. */
const fields: Partial<Record<ErrorCode, string>> = {
  IDEMPOTENCY_KEY_REUSED: '/event_id',
  LIMIT_EXCEEDED: '/skill_id',
};

function detailsOf({ index, error }: IndexedError): readonly Problem[] {
  if (error.details !== undefined && error.details.length > 0) return error.details;
  return [{ path: `events/${index}${fields[error.code] ?? ''}`, message: error.message }];
}
