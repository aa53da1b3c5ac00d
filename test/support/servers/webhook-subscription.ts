/** A webhook endpoint that is never reachable: its messages stay in Redis, where a test reads them. */
import type { WebhookSetting } from '../../../src/contracts/webhooks/webhooks.js';
import { indices } from '../../../src/lists.js';
import type { RedisClient } from '../../../src/store/redis/connection/client.js';
import { messagesPrefix, modelEventsKey, webhookEventsKey } from '../../../src/store/redis/keys.js';
import { createEndpointStore } from '../../../src/store/webhooks/endpoints.js';
import { emptied } from '../wait.js';

const url = 'https://127.0.0.1:1/';
const secret = `whsec_${Buffer.alloc(32).toString('base64')}`;

type EventTypes = WebhookSetting['eventTypes'];

export async function subscribe(redis: RedisClient, tenant: string, eventTypes: EventTypes) {
  const store = createEndpointStore(redis);
  const { id } = await store.create(tenant, { url, eventTypes, description: null }, secret);
  const streams = [modelEventsKey, ...indices(16).map(webhookEventsKey)];
  return {
    changeTypes: (types: EventTypes) => store.change(tenant, id, (one) => ({ ...one, eventTypes: types })),
    /** Waits until all events are dispatched. @returns the messages in order */
    messages: async () => {
      await Promise.all(streams.map((key) => emptied(redis, key)));
      const ids = await redis.zrange(`${messagesPrefix(id)}:log`, '0', '-1');
      const bodies = ids.length === 0 ? [] : await redis.hmget(`${messagesPrefix(id)}:b`, ...ids);
      return ids.map((message, i) => ({ id: message, ...JSON.parse(bodies[i] ?? '{}') }));
    },
  };
}
