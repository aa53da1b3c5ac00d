import { createSendingThread } from '../compute/threads.js';
import type { Config } from '../config.js';
import type { Consumer } from '../jobs/consumer.js';
import { endpointsTogether, startDeliveries } from '../jobs/deliveries.js';
import type { Figures } from '../services/read/figures.js';
import { createDeliverer } from '../services/webhooks/deliver.js';
import { createHandOut } from '../services/webhooks/hand-out.js';
import { createEventStreams } from '../store/webhooks/event-streams.js';
import { createMessageStore } from '../store/webhooks/messages.js';
import type { Engine } from './engine.js';
import { byLabel } from './metrics.js';

/** Hands events to endpoints, and sends them. */
export function startWebhooks(
  { redis, partitions, endpoints: { redisUrl }, webhooks: endpoints, logger, closers }: Engine,
  { webhookAllowPrivate: allowPrivate }: Pick<Config, 'webhookAllowPrivate'>,
  figures: Figures,
): Consumer {
  const thread = createSendingThread(endpointsTogether, logger);
  closers.add('sending of webhooks', () => thread.close());
  const messages = createMessageStore(redis);
  const streams = createEventStreams(redis, partitions);
  const counts = { delivered: 0, failed: 0, given_up: 0 };
  const deliver = createDeliverer({ endpoints, messages, send: thread.send, allowPrivate, counts, logger });
  const handOut = createHandOut({ streams, endpoints, messages, logger });
  const { endpointsDue } = messages;
  const deliveries = startDeliveries({ redisUrl, handOut, endpointsDue, deliver, logger });
  closers.add('delivery of webhooks', () => deliveries.close());
  figures.add('webhooks_total', () => byLabel('outcome', counts));
  figures.add('webhook_events_waiting', () => streams.waiting());
  return deliveries;
}
