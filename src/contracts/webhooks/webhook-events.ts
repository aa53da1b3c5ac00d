/**
 * Redis stores an event in the step that decides it. Later it becomes one message per endpoint
 * (standardwebhooks.com).
 */
import { randomUUID } from 'node:crypto';
import type { CorrectedRows } from '../corrections/corrections.js';
import { hashLearner } from '../learners/learner-name.js';

export const webhookTypes = [
  ...(['mastery.reached', 'plateau.detected', 'plateau.ended'] as const),
  ...(['goal.reached', 'goal.at_risk'] as const),
  ...(['model.published', 'erasure.completed', 'webhook.test'] as const),
] as const;
export type WebhookType = (typeof webhookTypes)[number];

export interface WebhookEvent {
  /** Header webhook-id of all its messages. */
  readonly id: string;
  readonly tenant: string;
  readonly type: WebhookType;
  readonly body: string;
}

/** Null: no learner. */
export const parseLearnerHash = (id: string): string | null => /^msg_([\da-f]{32})_/.exec(id)?.[1] ?? null;

/**
 * The filter takes an event id and its milliseconds on Redis' clock. It returns true for events of an erased
 * history, including the erasure's millisecond.
 */
export function createErasureFilter(rows: readonly CorrectedRows[]): (id: string, at: number) => boolean {
  const ends = new Map(rows.map(({ tenant, userId, below }) => [hashLearner(tenant, userId), below.ms]));
  return (id, at) => at <= (ends.get(parseLearnerHash(id) ?? '') ?? Number.NEGATIVE_INFINITY);
}

/** @param userId null: no learner @param at Unix milliseconds @param data as in `webhookDescriptions` */
export function createWebhookEvent(
  type: WebhookType,
  tenant: string,
  userId: string | null,
  at: number,
  data: object,
): WebhookEvent {
  const learner = userId === null ? '' : `${hashLearner(tenant, userId)}_`;
  // Node buffers UUIDs: random bytes would double the cost of an event.
  const id = `msg_${learner}${randomUUID()}`;
  return { id, tenant, type, body: JSON.stringify({ type, timestamp: new Date(at).toISOString(), data }) };
}

export const toStreamFields = ({ id, tenant, type, body }: WebhookEvent): string[] => [
  ...['i', id, 't', tenant, 'y', type, 'b', body],
];

/** @param subscribedTypes as in Redis: each between spaces, `*` for all */
export const isSubscribed = (subscribedTypes: string, type: WebhookType): boolean =>
  subscribedTypes.includes(` ${type} `) || subscribedTypes.includes(' * ');
