/**
 * Events that a tenant's endpoints are told of (standardwebhooks.com): one is written to Redis in the step that decides it, and
 * becomes a message for each endpoint afterwards.
 */
import { randomUUID } from 'node:crypto';
import type { CorrectedRows } from './corrections.js';
import { learnerHash } from './learner-name.js';

export const webhookTypes = [
  ...(['mastery.reached', 'plateau.detected', 'plateau.ended'] as const),
  ...(['goal.reached', 'goal.at_risk'] as const),
  ...(['model.published', 'erasure.completed', 'webhook.test'] as const),
] as const;
export type WebhookType = (typeof webhookTypes)[number];

export interface WebhookEvent {
  /** The header webhook-id of all its messages. */
  readonly id: string;
  readonly tenant: string;
  readonly type: WebhookType;
  /** What receivers get: JSON of `type`, `timestamp` and `data`. */
  readonly body: string;
}

/** The learner's hash in an event's id, by which an erasure finds it; null for an event of no learner. */
export const learnerHashOf = (id: string): string | null => /^msg_([\da-f]{32})_/.exec(id)?.[1] ?? null;

/**
 * Of histories that erasures have ended.
 * @returns whether an event is of one of them, by its id and its time, in milliseconds on Redis' clock; of the millisecond of the
 * erasure itself it is taken for one of before
 */
export function endedEvents(rows: readonly CorrectedRows[]): (id: string, at: number) => boolean {
  const ends = new Map(rows.map(({ tenant, userId, below }) => [learnerHash(tenant, userId), below.ms]));
  return (id, at) => at <= (ends.get(learnerHashOf(id) ?? '') ?? Number.NEGATIVE_INFINITY);
}

/**
 * @param userId null for an event of no learner
 * @param at Unix milliseconds
 * @param data as src/contracts/responses/webhooks.ts describes it
 */
export function webhookEvent(
  type: WebhookType,
  tenant: string,
  userId: string | null,
  at: number,
  data: object,
): WebhookEvent {
  const learner = userId === null ? '' : `${learnerHash(tenant, userId)}_`;
  // Node makes these many at a time: random bytes for each event cost as much as all the rest of it.
  const id = `msg_${learner}${randomUUID()}`;
  return { id, tenant, type, body: JSON.stringify({ type, timestamp: new Date(at).toISOString(), data }) };
}

/** Fields of an entry of an event stream, in turn with their values. */
export const eventFields = ({ id, tenant, type, body }: WebhookEvent): string[] => [
  ...['i', id, 't', tenant, 'y', type, 'b', body],
];

/** @param wanted types that a tenant's endpoints ask for, as they stand in Redis: each between spaces, `*` for all */
export const isWanted = (wanted: string, type: WebhookType): boolean =>
  wanted.includes(` ${type} `) || wanted.includes(' * ');
