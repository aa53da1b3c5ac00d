/** Bodies as JSON. */
import { isUtf8 } from 'node:buffer';
import { ApiError, invalid } from '../errors.js';

/** @throws ApiError INVALID_REQUEST for what is not JSON in UTF-8 */
export const parseJson = (body: Uint8Array): unknown => parseText(textOf(body));

/** @throws ApiError INVALID_REQUEST */
export function textOf(body: Uint8Array): string {
  if (!isUtf8(body)) throw invalid('The body is not valid UTF-8');
  return Buffer.from(body.buffer, body.byteOffset, body.length).toString('utf8');
}

/** @throws ApiError INVALID_REQUEST */
export function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw invalid('The body is not valid JSON');
  }
}
