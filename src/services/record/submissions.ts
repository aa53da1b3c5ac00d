/** What can be told of a submission on this side of the workers. */

import type { Submission } from '../../compute/tracking.js';
import type { InvalidEvent } from '../../contracts/tasks.js';
import { type ApiError, invalid } from '../../errors.js';

/** @param data JSON of an `InvalidEvent` */
export function invalidEvent(data: string): ApiError {
  const { message, details }: InvalidEvent = JSON.parse(data);
  return details.length === 0 ? invalid(message) : invalid(message, details);
}

/** Ids in a body, as they are; null for what is not there or is no text. */
export interface Ids {
  readonly userId: string | null;
  readonly eventId: string | null;
}

/** The ids of an event, or of the first of an import's. Whatever else is wrong with a body, a worker tells. */
export function idsIn({ body, idempotencyKey }: Submission): Ids {
  const parsed = parsedOrNull(body);
  const event = Array.isArray(parsed) ? parsed[0] : parsed;
  if (typeof event !== 'object' || event === null) return { userId: null, eventId: null };
  const { user_id, userId, event_id } = event;
  return { userId: textOrNull(user_id ?? userId), eventId: textOrNull(event_id ?? idempotencyKey) };
}

function parsedOrNull(body: Uint8Array) {
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.length).toString('utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null);
