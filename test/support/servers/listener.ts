/** An endpoint of webhooks at which nobody listens: what it is to be told stays in Redis, where a test looks at it. */
import type { WebhookSetting } from '../../../src/contracts/webhooks/webhooks.js';
import { indices } from '../../../src/lists.js';
import type { RedisClient } from '../../../src/store/redis/connection/client.js';
import { messagesPrefix, modelEventsKey, webhookEventsKey } from '../../../src/store/redis/keys.js';
import { createEndpointStore } from '../../../src/store/webhooks/endpoints.js';
import { waitFor } from '../wait.js';

const url = 'https://127.0.0.1:1/';
const secret = `whsec_${Buffer.alloc(32).toString('base64')}`;

export type Listener = Awaited<ReturnType<typeof listenFor>>;

/** @param eventTypes that the tenant asks for from now on */
export async function listenFor(
  redis: RedisClient,
  tenant: string,
  eventTypes: WebhookSetting['eventTypes'],
) {
  const store = createEndpointStore(redis);
  const { id } = await store.create(tenant, { url, eventTypes, description: null }, secret);
  return {
    id,
    askFor: (types: WebhookSetting['eventTypes']) =>
      store.change(tenant, id, (one) => ({ ...one, eventTypes: types })),
    /** Every message so far, in order. */
    told: async () => {
      await handedOut(redis);
      const ids = await redis.zrange(`${messagesPrefix(id)}:log`, '0', '-1');
      const bodies = ids.length === 0 ? [] : await redis.hmget(`${messagesPrefix(id)}:b`, ...ids);
      return ids.map((message, i) => ({ id: message, ...JSON.parse(bodies[i] ?? '{}') }));
    },
  };
}

/** Waits until every event is a message. */
async function handedOut(redis: RedisClient): Promise<void> {
  const streams = [modelEventsKey, ...indices(16).map(webhookEventsKey)];
  await waitFor('messages of all events', async () => {
    const lengths = await Promise.all(streams.map((key) => redis.xlen(key)));
    return lengths.every((length) => length === 0);
  });
}
