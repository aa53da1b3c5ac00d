import { NewWebhook, RotationRequest, WebhookChange } from '../contracts/webhooks/webhooks.js';
import { PageQuery } from '../services/paging/pages.js';
import * as webhooks from '../services/webhooks/manage-webhooks.js';
import { handleJson } from './replies.js';
import { type Route, route } from './route.js';
import { allowAdmin, smallBody } from './route-rules.js';

const endpoint = '/api/v1/webhooks/:webhook_id';
const pages = { scope: 'admin', query: PageQuery } as const;
const newWebhook = allowAdmin(smallBody(NewWebhook), 'webhook.created');
const change = allowAdmin(smallBody(WebhookChange), 'webhook.changed');
const removal = allowAdmin(null, 'webhook.deleted');
const rotation = allowAdmin({ ...smallBody(RotationRequest), optional: true }, 'webhook.secret_rotated');

export const createWebhookRoutes = (ports: webhooks.WebhookPorts): readonly Route[] => [
  route(
    'POST /api/v1/webhooks',
    newWebhook,
    handleJson(webhooks.createWebhook, ports, 'Webhook created', 201),
  ),
  route('GET /api/v1/webhooks', pages, handleJson(webhooks.listWebhooks, ports)),
  route(`GET ${endpoint}`, allowAdmin(), handleJson(webhooks.readWebhook, ports)),
  route(`PATCH ${endpoint}`, change, handleJson(webhooks.changeWebhook, ports, 'Webhook updated')),
  route(`DELETE ${endpoint}`, removal, handleJson(webhooks.deleteWebhook, ports, 'Webhook deleted')),
  route(
    `POST ${endpoint}/rotate-secret`,
    rotation,
    handleJson(webhooks.rotateSecret, ports, 'Secret rotated'),
  ),
  route(
    `POST ${endpoint}/test`,
    allowAdmin(),
    handleJson(webhooks.testWebhook, ports, 'Test event queued', 202),
  ),
  route(`GET ${endpoint}/deliveries`, pages, handleJson(webhooks.listDeliveries, ports)),
  route(
    `POST ${endpoint}/deliveries/:message_id/redeliver`,
    allowAdmin(),
    handleJson(webhooks.redeliver, ports, 'Message queued', 202),
  ),
];
