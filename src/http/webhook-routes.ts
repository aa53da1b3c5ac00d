import { parseJson } from '../contracts/json.js';
import { NewWebhook, Rotation, WebhookChange } from '../contracts/webhooks.js';
import { PageQuery } from '../services/read/pages.js';
import * as deliveries from '../services/webhooks/deliveries.js';
import * as endpoints from '../services/webhooks/manage.js';
import { ok } from './replies.js';
import { type Route, route } from './route.js';
import { administers, smallBody } from './rules.js';

const pages = { scope: 'admin', query: PageQuery } as const;

export const webhookRoutes = (ports: endpoints.WebhookPorts): readonly Route[] => [
  route('POST', '/api/v1/webhooks', administers(smallBody(NewWebhook)), async ({ tenant, body }) =>
    ok(await endpoints.createWebhook(ports, tenant, parseJson(body)), 'Webhook created', 201),
  ),
  route('GET', '/api/v1/webhooks', pages, async ({ tenant, query }) =>
    ok(await endpoints.listWebhooks(ports, tenant, query)),
  ),
  route('GET', '/api/v1/webhooks/:webhook_id', administers(), async ({ tenant }, id) =>
    ok(await endpoints.readWebhook(ports, tenant, id)),
  ),
  route(
    'PATCH',
    '/api/v1/webhooks/:webhook_id',
    administers(smallBody(WebhookChange)),
    async ({ tenant, body }, id) =>
      ok(await endpoints.changeWebhook(ports, tenant, id, parseJson(body)), 'Webhook changed'),
  ),
  route('DELETE', '/api/v1/webhooks/:webhook_id', administers(), async ({ tenant }, id) =>
    ok(await endpoints.deleteWebhook(ports, tenant, id), 'Webhook deleted'),
  ),
  route(
    'POST',
    '/api/v1/webhooks/:webhook_id/rotate-secret',
    administers({ ...smallBody(Rotation), optional: true }),
    async (call, id) => ok(await endpoints.rotateSecret(ports, call.tenant, id, call.body), 'Secret rotated'),
  ),
  route('POST', '/api/v1/webhooks/:webhook_id/test', administers(), async ({ tenant }, id) =>
    ok(await deliveries.testWebhook(ports, tenant, id), 'Test on its way', 202),
  ),
  route('GET', '/api/v1/webhooks/:webhook_id/deliveries', pages, async ({ tenant, query }, id) =>
    ok(await deliveries.listDeliveries(ports, tenant, id, query)),
  ),
  route(
    'POST',
    '/api/v1/webhooks/:webhook_id/deliveries/:message_id/redeliver',
    administers(),
    async ({ tenant }, id, messageId) =>
      ok(await deliveries.redeliver(ports, tenant, id, messageId), 'Message on its way', 202),
  ),
];
