import type { Call } from '../contracts/access/call.js';
import { type TaggedValue, toEtagHeader } from '../contracts/schema/preconditions.js';
import { ApiError, type ErrorCode, type Problem, unavailable } from '../errors.js';
import type { EventResult } from '../services/answers/record-attempts.js';
import type { ClassResult } from '../services/forecasts/forecast-scores.js';
import type { Health } from '../services/operations/health.js';
import { mapInSlices } from '../slices.js';
import type { Reply } from './route.js';

const successEnvelope = (data: string, message?: string): string =>
  message === undefined
    ? `{"success":true,"data":${data}}`
    : `{"success":true,"data":${data},"message":${JSON.stringify(message)}}`;

export const toErrorObject = ({ code, message, details }: ApiError): object => ({ code, message, details });

const errorEnvelope = (error: ApiError, data?: object): string =>
  JSON.stringify({ success: false, error: toErrorObject(error), data });

/** During overload, thousands of requests per second get the same error object. */
const errorReplies = new WeakMap<ApiError, Reply>();

export function createErrorReply(error: ApiError): Reply {
  const made = errorReplies.get(error);
  if (made !== undefined) return made;
  const reply = { status: error.status, body: errorEnvelope(error), headers: error.headers, error };
  errorReplies.set(error, reply);
  return reply;
}

export function createOkReply(data: string | object, message?: string, status = 200): Reply {
  const json = typeof data === 'string' ? data : JSON.stringify(data);
  return { status, body: successEnvelope(json, message) };
}

export function createHealthReply(data: Awaited<ReturnType<Health['health']>>): Reply {
  if (data.status !== 'down') return createOkReply(data);
  const error = unavailable('The service cannot accept answers now; see checks in data.');
  return { status: error.status, body: errorEnvelope(error, data), headers: error.headers, error };
}

type ServiceFunction<Data, Ports, Query, Ids extends string[]> = (
  ports: Ports,
  call: Call<Query>,
  ...ids: Ids
) => Promise<Data>;

export const handleJson =
  <Ports, Query, Ids extends string[]>(
    service: ServiceFunction<string | object, Ports, Query, Ids>,
    ports: Ports,
    message?: string,
    status?: number,
  ) =>
  async (call: Call<Query>, ...ids: Ids): Promise<Reply> =>
    createOkReply(await service(ports, call, ...ids), message, status);

export const handleTagged =
  <Ports, Query, Ids extends string[]>(
    service: ServiceFunction<TaggedValue<object>, Ports, Query, Ids>,
    ports: Ports,
    message?: string,
  ) =>
  async (call: Call<Query>, ...ids: Ids): Promise<Reply> => {
    const { value, tag } = await service(ports, call, ...ids);
    return { ...createOkReply(value, message), headers: toEtagHeader(tag) };
  };

export const handleClass =
  <Ports>(service: ServiceFunction<readonly ClassResult[], Ports, unknown, []>, ports: Ports) =>
  async (call: Call): Promise<Reply> =>
    createClassReply(await service(ports, call));

const noHeaders = {};
const replayedHeader = { 'Idempotent-Replayed': 'true' };

export function createEventReply(result: EventResult): Reply {
  if (result instanceof ApiError) return createErrorReply(result);
  const body = successEnvelope(result.data, 'Answer recorded');
  return { status: 200, body, headers: result.replayed ? replayedHeader : noHeaders };
}

const selectDefects = (parts: readonly unknown[]): ApiError[] =>
  parts.filter((part): part is ApiError => part instanceof ApiError && part.code === 'INTERNAL');

const formatEntry = (idFields: string, result: string | ApiError): string =>
  result instanceof ApiError
    ? `{${idFields},"status":${result.status},"error":${JSON.stringify(toErrorObject(result))}}`
    : `{${idFields},"status":200,"data":${result}}`;

function createClassReply(learners: readonly ClassResult[]): Reply {
  const results = learners.map(({ result }) => result);
  const defects = selectDefects(results);
  const found = results.filter((result) => !(result instanceof ApiError)).length;
  const missing = results.length - found - defects.length;
  const entries = learners.map(({ userId, result }, i) =>
    formatEntry(`"index":${i},"user_id":${JSON.stringify(userId)}`, result),
  );
  const data = `{"found":${found},"missing":${missing},"failed":${defects.length},"results":[${entries.join()}]}`;
  return { status: 200, body: successEnvelope(data), defects };
}

/** Status 200 if all events are accepted, 207 if some. */
export async function createBatchReply(results: readonly EventResult[]): Promise<Reply> {
  const errors = results.flatMap((result, index) =>
    result instanceof ApiError ? [{ index, error: result }] : [],
  );
  const accepted = results.length - errors.length;
  const defects = selectDefects(results);
  if (accepted === 0) return { ...createRejectedBatch(errors), defects };
  const entries = await mapInSlices(results.entries(), ([i, result]) =>
    formatEntry(
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
const callerErrors = new Set<ErrorCode>(['INVALID_REQUEST', 'IDEMPOTENCY_KEY_REUSED', 'LIMIT_EXCEEDED']);

function createRejectedBatch(errors: readonly IndexedError[]): Reply {
  const details = errors.flatMap(toDetails);
  const ours = errors.find(({ error }) => !callerErrors.has(error.code))?.error;
  const message = 'No event of the batch was recorded; see details.';
  const { code, headers } = ours === undefined ? new ApiError('INVALID_REQUEST', message) : unavailable('');
  return createErrorReply(new ApiError(code, message, { details, headers, cause: ours }));
}

/** For errors that name no field. */
const faultyFields: Partial<Record<ErrorCode, string>> = {
  IDEMPOTENCY_KEY_REUSED: '/event_id',
  LIMIT_EXCEEDED: '/skill_id',
};

function toDetails({ index, error }: IndexedError): readonly Problem[] {
  if (error.details !== undefined && error.details.length > 0) return error.details;
  return [{ path: `events/${index}${faultyFields[error.code] ?? ''}`, message: error.message }];
}
