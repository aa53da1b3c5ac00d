import { ApiError } from '../errors.js';
import type { Reply } from './routes.js';

/** Every JSON answer of the API stands in one of these two envelopes. */

/** @param data JSON text */
export const successEnvelope = (data: string, message?: string): string =>
  message === undefined
    ? `{"success":true,"data":${data}}`
    : `{"success":true,"data":${data},"message":${JSON.stringify(message)}}`;

/** The error object of the envelope. */
export const errorObject = ({ code, message, details }: ApiError): object =>
  details === undefined ? { code, message } : { code, message, details };

/** @param data added where an error has data to tell as well */
export const errorEnvelope = (error: ApiError, data?: object): string =>
  JSON.stringify({ success: false, error: errorObject(error), ...(data === undefined ? {} : { data }) });

/** In overload one error refuses thousands of requests a second. */
const replies = new WeakMap<ApiError, Reply>();

/** The answer that an error is. */
export function errorReply(error: ApiError): Reply {
  const made = replies.get(error);
  if (made !== undefined) return made;
  const reply = { status: error.status, body: errorEnvelope(error), headers: error.headers, error };
  replies.set(error, reply);
  return reply;
}

/** Of the parts of an answer those that failed by a defect. */
export const defectsAmong = (parts: readonly unknown[]): ApiError[] =>
  parts.filter((part): part is ApiError => part instanceof ApiError && part.code === 'INTERNAL');
