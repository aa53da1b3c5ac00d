import { NewWebhook, Rotation, WebhookChange } from '../contracts/webhooks.js';
import { PageQuery } from '../services/read/pages.js';
import * as deliveries from '../services/webhooks/deliveries.js';
import * as endpoints from '../services/webhooks/manage.js';
import { ok } from './replies.js';
import { type Route, route } from './route.js';
import { administers, smallBody } from './rules.js';

const path = '/api/v1/webhooks/:webhook_id';
const pages = { scope: 'admin', query: PageQuery } as const;
const newWebhook = administers(smallBody(NewWebhook));
const change = administers(smallBody(WebhookChange));
const rotation = administers({ ...smallBody(Rotation), optional: true });

export const webhookRoutes = (ports: endpoints.WebhookPorts): readonly Route[] => [
  route('POST /api/v1/webhooks', newWebhook, ok(endpoints.createWebhook, ports, 'Webhook created', 201)),
  route('GET /api/v1/webhooks', pages, ok(endpoints.listWebhooks, ports)),
  route(`GET ${path}`, administers(), ok(endpoints.readWebhook, ports)),
  route(`PATCH ${path}`, change, ok(endpoints.changeWebhook, ports, 'Webhook changed')),
  route(`DELETE ${path}`, administers(), ok(endpoints.deleteWebhook, ports, 'Webhook deleted')),
  route(`POST ${path}/rotate-secret`, rotation, ok(endpoints.rotateSecret, ports, 'Secret rotated')),
  route(`POST ${path}/test`, administers(), ok(deliveries.testWebhook, ports, 'Test on its way', 202)),
  route(`GET ${path}/deliveries`, pages, ok(deliveries.listDeliveries, ports)),
  route(
    `POST ${path}/deliveries/:message_id/redeliver`,
    administers(),
    ok(deliveries.redeliver, ports, 'Message on its way', 202),
  ),
];
