/** What was sent to an endpoint, and sending it. All throw ApiError WEBHOOK_NOT_FOUND and UNAVAILABLE. */
import type { Call } from '../../contracts/call.js';
import { webhookEvent } from '../../contracts/webhook-events.js';
import { ApiError } from '../../errors.js';
import type { Endpoint } from '../../store/webhooks/endpoints.js';
import type { ListedMessage } from '../../store/webhooks/messages.js';
import { createCursors, listJson, type PageQuery, pageLimit } from '../read/pages.js';
import { present, type WebhookPorts } from './manage.js';

/** A disabled endpoint is sent nothing. @throws ApiError CONFLICT */
async function sendable({ endpoints }: WebhookPorts, tenant: string, id: string): Promise<Endpoint> {
  const endpoint = present(await endpoints.find(tenant, id));
  if (!endpoint.enabled) throw new ApiError('CONFLICT', 'This webhook is disabled: enable it first');
  return endpoint;
}

/** Data of POST /api/v1/webhooks/{webhook_id}/test. @throws ApiError CONFLICT */
export async function testWebhook(ports: WebhookPorts, { tenant }: Call, id: string): Promise<object> {
  const endpoint = await sendable(ports, tenant, id);
  const at = Date.now();
  const event = webhookEvent('webhook.test', tenant, null, at, { webhook_id: id });
  if ((await ports.messages.add(endpoint, [{ ...event, at }])) === 0) return { message_id: event.id };
  throw new ApiError('CONFLICT', 'Too many messages wait for this webhook');
}

/** JSON of GET /api/v1/webhooks/{webhook_id}/deliveries. @throws ApiError INVALID_REQUEST */
export async function listDeliveries(ports: WebhookPorts, { tenant, query }: Call<PageQuery>, id: string) {
  const before = cursors.decode(query.cursor);
  const endpoint = present(await ports.endpoints.find(tenant, id));
  const { messages, next } = await ports.messages.list(endpoint, before, query.limit ?? pageLimit);
  const page = { items: messages, next_cursor: next === null ? null : cursors.encode(next) };
  return listJson({ webhook_id: id }, 'deliveries', page, describe);
}

/** Data of POST …/deliveries/{message_id}/redeliver. @throws ApiError CONFLICT; NOT_FOUND for an unknown message */
export async function redeliver(ports: WebhookPorts, { tenant }: Call, id: string, messageId: string) {
  if (await ports.messages.again(await sendable(ports, tenant, id), messageId))
    return { message_id: messageId };
  throw new ApiError('NOT_FOUND', 'This webhook has no message of this id');
}

const cursors = createCursors('delivery:', (mark) => (/^\d{1,16}$/.test(mark) ? mark : null));

const timeOf = (ms: number): string => new Date(ms).toISOString();

const describe = ({
  id,
  type,
  status,
  tries,
  lastStatus,
  lastError,
  nextTryAt,
  at,
}: ListedMessage): object => ({
  message_id: id,
  ...{ type, status, tries },
  last_status: lastStatus,
  last_error: lastError ?? null,
  next_try_at: nextTryAt === null ? null : timeOf(nextTryAt),
  created_at: timeOf(at),
});
