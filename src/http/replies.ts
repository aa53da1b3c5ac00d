import type { Call } from '../contracts/call.js';
import { type Tagged, tagHeader } from '../contracts/preconditions.js';
import { ApiError, type ErrorCode, type Problem, unavailable } from '../errors.js';
import type { ClassResult } from '../services/read/forecast-scores.js';
import type { Health } from '../services/read/health.js';
import type { EventResult } from '../services/record/record-attempts.js';
import { mapInSlices } from '../slices.js';
import type { Reply } from './route.js';

const successEnvelope = (data: string, message?: string): string =>
  message === undefined
    ? `{"success":true,"data":${data}}`
    : `{"success":true,"data":${data},"message":${JSON.stringify(message)}}`;

export const errorObject = ({ code, message, details }: ApiError): object => ({ code, message, details });

const errorEnvelope = (error: ApiError, data?: object): string =>
  JSON.stringify({ success: false, error: errorObject(error), data });

/** During overload, thousands of requests per second get the same error object. */
const errorReplies = new WeakMap<ApiError, Reply>();

export function errorReply(error: ApiError): Reply {
  const made = errorReplies.get(error);
  if (made !== undefined) return made;
  const reply = { status: error.status, body: errorEnvelope(error), headers: error.headers, error };
  errorReplies.set(error, reply);
  return reply;
}

export function okReply(data: string | object, message?: string, status = 200): Reply {
  const json = typeof data === 'string' ? data : JSON.stringify(data);
  return { status, body: successEnvelope(json, message) };
}

export function healthReply(data: Awaited<ReturnType<Health['health']>>): Reply {
  if (data.status !== 'down') return okReply(data);
  const error = unavailable('The service cannot take answers right now');
  return { status: error.status, body: errorEnvelope(error, data), headers: error.headers, error };
}

type Service<Data, Ports, Query, Ids extends string[]> = (
  ports: Ports,
  call: Call<Query>,
  ...ids: Ids
) => Promise<Data>;

export const ok =
  <Ports, Query, Ids extends string[]>(
    serve: Service<string | object, Ports, Query, Ids>,
    ports: Ports,
    message?: string,
    status?: number,
  ) =>
  async (call: Call<Query>, ...ids: Ids): Promise<Reply> =>
    okReply(await serve(ports, call, ...ids), message, status);

export const tagged =
  <Ports, Query, Ids extends string[]>(
    serve: Service<Tagged<object>, Ports, Query, Ids>,
    ports: Ports,
    message?: string,
  ) =>
  async (call: Call<Query>, ...ids: Ids): Promise<Reply> => {
    const { value, tag } = await serve(ports, call, ...ids);
    return { ...okReply(value, message), headers: tagHeader(tag) };
  };

export const ofClass =
  <Ports>(serve: Service<readonly ClassResult[], Ports, unknown, []>, ports: Ports) =>
  async (call: Call): Promise<Reply> =>
    classReply(await serve(ports, call));

const noHeaders = {};
const replayedHeader = { 'Idempotent-Replayed': 'true' };

export function eventReply(result: EventResult): Reply {
  if (result instanceof ApiError) return errorReply(result);
  const body = successEnvelope(result.data, 'Answer recorded');
  return { status: 200, body, headers: result.replayed ? replayedHeader : noHeaders };
}

const defectsAmong = (parts: readonly unknown[]): ApiError[] =>
  parts.filter((part): part is ApiError => part instanceof ApiError && part.code === 'INTERNAL');

const entryOf = (names: string, result: string | ApiError): string =>
  result instanceof ApiError
    ? `{${names},"status":${result.status},"error":${JSON.stringify(errorObject(result))}}`
    : `{${names},"status":200,"data":${result}}`;

function classReply(learners: readonly ClassResult[]): Reply {
  const results = learners.map(({ result }) => result);
  const defects = defectsAmong(results);
  const found = results.filter((result) => !(result instanceof ApiError)).length;
  const missing = results.length - found - defects.length;
  const entries = learners.map(({ userId, result }, i) =>
    entryOf(`"index":${i},"user_id":${JSON.stringify(userId)}`, result),
  );
  const data = `{"found":${found},"missing":${missing},"failed":${defects.length},"results":[${entries.join()}]}`;
  return { status: 200, body: successEnvelope(data), defects };
}

/** Status 200 if all events are accepted, 207 if some. */
export async function batchReply(results: readonly EventResult[]): Promise<Reply> {
  const errors = results.flatMap((result, index) =>
    result instanceof ApiError ? [{ index, error: result }] : [],
  );
  const accepted = results.length - errors.length;
  const defects = defectsAmong(results);
  if (accepted === 0) return { ...refusedBatch(errors), defects };
  const entries = await mapInSlices(results.entries(), ([i, result]) =>
    entryOf(
      `"index":${i}`,
      result instanceof ApiError ? result : `${result.data}${result.replayed ? ',"replayed":true' : ''}`,
    ),
  );
  const data = `{"accepted":${accepted},"rejected":${errors.length},"results":[${entries.join()}]}`;
  const message = `${accepted} of ${results.length} answers recorded`;
  return { status: errors.length === 0 ? 200 : 207, body: successEnvelope(data, message), defects };
}

type IndexedError = { readonly index: number; readonly error: ApiError };

/** Errors of the caller: a retry fails again. */
const callersOwn = new Set<ErrorCode>(['INVALID_REQUEST', 'IDEMPOTENCY_KEY_REUSED', 'LIMIT_EXCEEDED']);

function refusedBatch(errors: readonly IndexedError[]): Reply {
  const details = errors.flatMap(detailsOf);
  const ours = errors.find(({ error }) => !callersOwn.has(error.code))?.error;
  const message = 'No event of the batch was recorded';
  const { code, headers } = ours === undefined ? new ApiError('INVALID_REQUEST', message) : unavailable('');
  return errorReply(new ApiError(code, message, { details, headers, cause: ours }));
}

/** For errors that name no field. */
const fields: Partial<Record<ErrorCode, string>> = {
  IDEMPOTENCY_KEY_REUSED: '/event_id',
  LIMIT_EXCEEDED: '/skill_id',
};

function detailsOf({ index, error }: IndexedError): readonly Problem[] {
  if (error.details !== undefined && error.details.length > 0) return error.details;
  return [{ path: `events/${index}${fields[error.code] ?? ''}`, message: error.message }];
}
