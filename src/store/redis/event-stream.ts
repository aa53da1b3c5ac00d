import type { CorrectedRows } from '../../contracts/corrections.js';
import { parseOutboxId } from '../../contracts/outbox-ids.js';
import { createErasureFilter, toStreamFields, type WebhookEvent } from '../../contracts/webhook-events.js';
import { groupByPartition } from '../../lists.js';
import { type RedisClient, whileRedisServes } from './client.js';
import type { CommandBytes } from './command-bytes.js';
import { eventsBound, eventsKey, wantedEventsKey } from './keys.js';
import { fieldOf, removeMatching } from './reads.js';

const eventWords = 8;

/** Appends the events in ARGV from index `from` on. */
export const appendEventsLua = `
local function appendEvents(stream, from)
  for i = from, #ARGV, ${eventWords} do
    redis.call('XADD', stream, 'MAXLEN', '~', ${eventsBound}, '*', unpack(ARGV, i, i + ${eventWords - 1}))
  end
end
`;

export const writeEvent = (request: CommandBytes, partition: number, event: WebhookEvent): void =>
  request.whole('XADD', eventsKey(partition), 'MAXLEN', '~', `${eventsBound}`, '*', ...toStreamFields(event));

/** In the order of the tenants; '' without subscriptions. */
export async function wantedEvents(client: RedisClient, tenants: readonly string[]): Promise<string[]> {
  if (tenants.length === 0) return [];
  return (await whileRedisServes(client.hmget(wantedEventsKey, ...tenants))).map((text) => text ?? '');
}

export async function forgetEvents(client: RedisClient, rows: readonly CorrectedRows[]): Promise<void> {
  for (const [partition, own] of groupByPartition(rows)) {
    const isOver = createErasureFilter(own);
    await removeMatching(client, eventsKey(partition), (id, fields) =>
      isOver(fieldOf(fields, 'i') ?? '', parseOutboxId(id).ms),
    );
  }
}
