/**
 * Events that a tenant's endpoints are told of (standardwebhooks.com): one is written to Redis in the step that decides it, and
 * becomes a message for each endpoint afterwards.
 */
import { randomBytes } from 'node:crypto';
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

const randomBytesOfId = 9;

/** What ids of a learner's events begin with, which an erasure finds them by. */
const eventIdPrefix = (hash: string): string => `msg_${hash}_`;

/** The learner's hash in an event's id; null for an event of no learner. */
export const learnerHashOf = (id: string): string | null => /^msg_([\da-f]{32})_/.exec(id)?.[1] ?? null;

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
  const prefix = userId === null ? 'msg_' : eventIdPrefix(learnerHash(tenant, userId));
  const body = JSON.stringify({ type, timestamp: new Date(at).toISOString(), data });
  return { id: prefix + randomBytes(randomBytesOfId).toString('base64url'), tenant, type, body };
}

/** Fields of an entry of an event stream, in turn with their values. */
export const eventFields = ({ id, tenant, type, body }: WebhookEvent): string[] => [
  ...['i', id, 't', tenant, 'y', type, 'b', body],
];

/** Types that a tenant's endpoints ask for, as they stand in Redis; '' for none. */
export const wantedText = (types: Iterable<WebhookType>): string => {
  const text = [...types].join(' ');
  return text === '' ? '' : ` ${text} `;
};

export const isWanted = (wanted: string, type: WebhookType): boolean => wanted.includes(` ${type} `);
