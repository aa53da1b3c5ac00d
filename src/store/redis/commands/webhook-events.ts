import type { CorrectedRows } from '../../../contracts/corrections/corrections.js';
import { parseOutboxId } from '../../../contracts/outbox/outbox-ids.js';
import {
  createErasureFilter,
  toStreamFields,
  type WebhookEvent,
} from '../../../contracts/webhooks/webhook-events.js';
import { groupByPartition } from '../../../lists.js';
import { mapRedisErrors, type RedisClient } from '../connection/client.js';
import { maxPendingEvents, subscriptionsKey, webhookEventsKey } from '../keys.js';
import type { CommandEncoder } from '../wire/command-encoder.js';
import { findField, removeMatchingEntries } from './bulk-operations.js';

const argumentsPerEvent = 8;

/** Appends the events in ARGV from index `from` on. */
export const appendEventsLua = `
local function appendEvents(stream, from)
  for i = from, #ARGV, ${argumentsPerEvent} do
    redis.call('XADD', stream, 'MAXLEN', '~', ${maxPendingEvents}, '*', unpack(ARGV, i, i + ${argumentsPerEvent - 1}))
  end
end
`;

export const writeEvent = (request: CommandEncoder, partition: number, event: WebhookEvent): void =>
  request.writeCommand(
    'XADD',
    webhookEventsKey(partition),
    'MAXLEN',
    '~',
    `${maxPendingEvents}`,
    '*',
    ...toStreamFields(event),
  );

/** In the order of the tenants; '' without subscriptions. */
export async function fetchSubscriptions(client: RedisClient, tenants: readonly string[]): Promise<string[]> {
  if (tenants.length === 0) return [];
  return (await mapRedisErrors(client.hmget(subscriptionsKey, ...tenants))).map((text) => text ?? '');
}

export async function removeErasedEvents(client: RedisClient, rows: readonly CorrectedRows[]): Promise<void> {
  for (const [partition, own] of groupByPartition(rows)) {
    const isErased = createErasureFilter(own);
    await removeMatchingEntries(client, webhookEventsKey(partition), (id, fields) =>
      isErased(findField(fields, 'i') ?? '', parseOutboxId(id).ms),
    );
  }
}
