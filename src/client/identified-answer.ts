import type { IdentifiedAnswer } from './answer-queue.js';
import type { Answer } from './types.js';

/** Adds a missing event id: repeated requests count the answer once. */
export const withEventId = <Sent extends Answer>(answer: Sent): Sent & { readonly event_id: string } => ({
  ...answer,
  event_id: answer.event_id ?? createUuid(),
});

/** Also adds a missing time. @param now Unix milliseconds */
export const toIdentifiedAnswer = (answer: Answer, now: number): IdentifiedAnswer => ({
  ...withEventId(answer),
  occurred_at: answer.occurred_at ?? new Date(now).toISOString(),
});

/** Incomplete on insecure pages; missing in Node 18. */
const { crypto } = globalThis as { readonly crypto?: Partial<typeof globalThis.crypto> };

/** UUID (RFC 9562, version 4), which need not be unpredictable. */
function createUuid(): string {
  if (crypto?.randomUUID !== undefined) return crypto.randomUUID();
  const zeros = new Uint8Array(16);
  const bytes = crypto?.getRandomValues?.(zeros) ?? zeros.map(() => Math.random() * 256);
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  const groups = [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`];
  return [...groups, hex.slice(20)].join('-');
}
