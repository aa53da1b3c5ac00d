import type { IdentifiedAnswer } from './lines.js';
import type { Answer } from './types.js';

/** The answer with an event id, so that it counts once however often it is sent. */
export const withEventId = <Sent extends Answer>(answer: Sent): Sent & { readonly event_id: string } => ({
  ...answer,
  event_id: answer.event_id ?? newId(),
});

/** The answer as it is sent whenever that will be. @param now Unix milliseconds */
export const identified = (answer: Answer, now: number): IdentifiedAnswer => ({
  ...withEventId(answer),
  occurred_at: answer.occurred_at ?? new Date(now).toISOString(),
});

/** What some of the environments lack: pages that are not served securely, Node 18. */
const { crypto } = globalThis as { readonly crypto?: Partial<typeof globalThis.crypto> };

/** A random UUID (RFC 9562, version 4). */
const newId = (): string => crypto?.randomUUID?.() ?? uuidOf(randomBytes());

/** An id need not be unpredictable, only different from those of the same learner in a day. */
const randomBytes = (): Uint8Array =>
  crypto?.getRandomValues?.(new Uint8Array(16)) ?? Uint8Array.from({ length: 16 }, () => Math.random() * 256);

function uuidOf(bytes: Uint8Array): string {
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  const variant = '89ab'[Number.parseInt(hex.charAt(16), 16) % 4];
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20),
  ].join('-');
}
