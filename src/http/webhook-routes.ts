import { NewWebhook, Rotation, WebhookChange } from '../contracts/webhooks.js';
import { PageQuery } from '../services/read/pages.js';
import * as webhooks from '../services/webhooks/manage.js';
import { ok } from './replies.js';
import { type Route, route } from './route.js';
import { administers, smallBody } from './rules.js';

const path = '/api/v1/webhooks/:webhook_id';
const pages = { scope: 'admin', query: PageQuery } as const;
const newWebhook = administers(smallBody(NewWebhook));
const change = administers(smallBody(WebhookChange));
const rotation = administers({ ...smallBody(Rotation), optional: true });

export const webhookRoutes = (ports: webhooks.WebhookPorts): readonly Route[] => [
  route('POST /api/v1/webhooks', newWebhook, ok(webhooks.createWebhook, ports, 'Webhook created', 201)),
  route('GET /api/v1/webhooks', pages, ok(webhooks.listWebhooks, ports)),
  route(`GET ${path}`, administers(), ok(webhooks.readWebhook, ports)),
  route(`PATCH ${path}`, change, ok(webhooks.changeWebhook, ports, 'Webhook changed')),
  route(`DELETE ${path}`, administers(), ok(webhooks.deleteWebhook, ports, 'Webhook deleted')),
  route(`POST ${path}/rotate-secret`, rotation, ok(webhooks.rotateSecret, ports, 'Secret rotated')),
  route(`POST ${path}/test`, administers(), ok(webhooks.testWebhook, ports, 'Test on its way', 202)),
  route(`GET ${path}/deliveries`, pages, ok(webhooks.listDeliveries, ports)),
  route(
    `POST ${path}/deliveries/:message_id/redeliver`,
    administers(),
    ok(webhooks.redeliver, ports, 'Message on its way', 202),
  ),
];
