/** What was sent to an endpoint, and sending it. All throw ApiError WEBHOOK_NOT_FOUND and UNAVAILABLE. */
import type { WebhookType } from '../../contracts/webhook-events.js';
import { ApiError } from '../../errors.js';
import type { Endpoint } from '../../store/webhooks/endpoints.js';
import { createCursors, listJson, type PageQuery, pageLimit } from '../read/pages.js';
import { present, type WebhookPorts } from './manage.js';

export interface Delivery {
  /** Of the message. */
  readonly id: string;
  readonly type: WebhookType;
  /** When the event was decided, Unix milliseconds. */
  readonly at: number;
  readonly status: 'pending' | 'delivered' | 'failed';
  readonly tries: number;
  /** Status of the last response; null where there was none. */
  readonly lastStatus: number | null;
  /** Unix milliseconds; null where none is to come. */
  readonly nextTryAt: number | null;
}

type DeliveryList = { readonly messages: readonly Delivery[]; readonly next: string | null };
type Place = Pick<Endpoint, 'tenant' | 'id'>;

export interface DeliveryPorts extends Pick<WebhookPorts, 'endpoints'> {
  readonly deliveries: {
    /** @returns the message's id */
    test(endpoint: Place): Promise<string>;
    /** Newest first. @param before mark of the last one of the page before @returns its own mark; null at the end */
    list(endpoint: Place, before: string | null, atMost: number): Promise<DeliveryList>;
    /** @returns false for a message that is not there */
    again(endpoint: Place, messageId: string): Promise<boolean>;
  };
}

/** A disabled endpoint is sent nothing. @throws ApiError CONFLICT */
async function sendable({ endpoints }: DeliveryPorts, tenant: string, id: string): Promise<Endpoint> {
  const endpoint = present(await endpoints.find(tenant, id));
  if (!endpoint.enabled) throw new ApiError('CONFLICT', 'This webhook is disabled: enable it first');
  return endpoint;
}

/** Data of POST /api/v1/webhooks/{webhook_id}/test. @throws ApiError CONFLICT */
export const testWebhook = async (ports: DeliveryPorts, tenant: string, id: string): Promise<object> => ({
  message_id: await ports.deliveries.test(await sendable(ports, tenant, id)),
});

/** JSON of GET /api/v1/webhooks/{webhook_id}/deliveries. @throws ApiError INVALID_REQUEST */
export async function listDeliveries(ports: DeliveryPorts, tenant: string, id: string, query: PageQuery) {
  const before = cursors.decode(query.cursor);
  const endpoint = present(await ports.endpoints.find(tenant, id));
  const { messages, next } = await ports.deliveries.list(endpoint, before, query.limit ?? pageLimit);
  const end = { next_cursor: next === null ? null : cursors.encode(next) };
  return listJson({ webhook_id: id }, { name: 'deliveries', items: messages, describe }, end);
}

/** Data of POST …/deliveries/{message_id}/redeliver. @throws ApiError CONFLICT; NOT_FOUND for an unknown message */
export async function redeliver(ports: DeliveryPorts, tenant: string, id: string, messageId: string) {
  if (await ports.deliveries.again(await sendable(ports, tenant, id), messageId))
    return { message_id: messageId };
  throw new ApiError('NOT_FOUND', 'This webhook has no message of this id');
}

const cursors = createCursors('delivery:', (mark) => (/^\d+(\.\d+)?$/.test(mark) ? mark : null));

const timeOf = (ms: number): string => new Date(ms).toISOString();

const describe = ({ id, type, status, tries, lastStatus, nextTryAt, at }: Delivery): object => ({
  message_id: id,
  ...{ type, status, tries },
  last_status: lastStatus,
  next_try_at: nextTryAt === null ? null : timeOf(nextTryAt),
  created_at: timeOf(at),
});
