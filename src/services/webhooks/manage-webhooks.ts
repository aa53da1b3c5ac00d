/** All functions throw ApiError UNAVAILABLE. */
import { randomBytes } from 'node:crypto';
import type { Call } from '../../contracts/access/call.js';
import { parseJson } from '../../contracts/schema/json.js';
import { createWebhookEvent } from '../../contracts/webhooks/webhook-events.js';
import {
  parseNewWebhook,
  parseRevokeOld,
  parseWebhookChange,
  type StoredWebhook,
} from '../../contracts/webhooks/webhooks.js';
import { ApiError } from '../../errors.js';
import type { Endpoint, EndpointStore } from '../../store/webhooks/endpoints.js';
import type { ListedMessage, MessageStore } from '../../store/webhooks/messages.js';
import * as pages from '../paging/pages.js';

export interface WebhookPorts {
  readonly endpoints: EndpointStore;
  readonly messages: Pick<MessageStore, 'add' | 'list' | 'retry' | 'scheduleNextRun'>;
  /** Allows http and private addresses. */
  readonly allowPrivate: boolean;
}

/** 24 to 64 bytes are allowed (standardwebhooks.com). */
const secretBytes = 32;
const generateSecret = (): string => `whsec_${randomBytes(secretBytes).toString('base64')}`;

const secretOverlapMs = 24 * 3_600_000;
/** Each secret lengthens every signature. */
const maxSecrets = 10;

function requireWebhook<Found>(found: Found | null): Found {
  if (found !== null) return found;
  throw new ApiError('WEBHOOK_NOT_FOUND', 'No webhook has this webhook_id.');
}

export async function createWebhook(ports: WebhookPorts, { tenant, body }: Call): Promise<object> {
  const [setting, secret] = [parseNewWebhook(parseJson(body), ports.allowPrivate), generateSecret()];
  return { ...describeWebhook(await ports.endpoints.create(tenant, setting, secret)), secret };
}

export async function listWebhooks(ports: WebhookPorts, { tenant, query }: Call<pages.PageQuery>) {
  const after = pages.decodeIdCursor(query.cursor);
  const found = new Map((await ports.endpoints.list(tenant)).map((one) => [one.id, one]));
  const left = pages.sortIdsAfter(found.keys(), after).flatMap((id) => found.get(id) ?? []);
  const page = pages.buildPage(left, query.limit ?? pages.defaultPageLimit, ({ id }) =>
    pages.encodeIdCursor(id),
  );
  return pages.encodeList({}, 'webhooks', page, describeWebhook);
}

export const readWebhook = async (ports: WebhookPorts, { tenant }: Call, id: string): Promise<object> =>
  describeWebhook(requireWebhook(await ports.endpoints.find(tenant, id)));

export async function changeWebhook(ports: WebhookPorts, { tenant, body }: Call, id: string) {
  const { url, eventTypes, description, enabled } = parseWebhookChange(parseJson(body), ports.allowPrivate);
  const applyChange = (before: StoredWebhook): StoredWebhook => {
    if (enabled && before.secrets.length === 0)
      throw new ApiError(
        'CONFLICT',
        'This webhook was restored without a secret; enable it with rotate-secret.',
      );
    return {
      ...before,
      url: url ?? before.url,
      eventTypes: eventTypes ?? before.eventTypes,
      description: (description ?? before.description) || null,
      disabledReason: enabled === null ? before.disabledReason : enabled ? null : 'request',
    };
  };
  const changed = requireWebhook(await ports.endpoints.change(tenant, id, applyChange));
  // Disabled endpoints are checked rarely: make pending messages due now.
  if (enabled) await ports.messages.scheduleNextRun(changed, 0);
  return describeWebhook(changed);
}

export async function deleteWebhook(ports: WebhookPorts, { tenant }: Call, id: string): Promise<object> {
  requireWebhook(await ports.endpoints.remove(tenant, id));
  return { webhook_id: id };
}

/** Also enables a webhook that was restored without a secret. */
export async function rotateSecret(ports: WebhookPorts, { tenant, body }: Call, id: string) {
  const [revokeOld, secret] = [parseRevokeOld(body), generateSecret()];
  const applyRotation = (before: StoredWebhook): StoredWebhook => {
    const old = revokeOld ? [] : selectValidSecrets(before.secrets, Date.now());
    if (old.length >= maxSecrets)
      throw new ApiError(
        'LIMIT_EXCEEDED',
        `The webhook has the maximum of ${maxSecrets} valid secrets; send revoke_old: true to revoke the old secrets.`,
      );
    const disabledReason = before.disabledReason === 'restored' ? null : before.disabledReason;
    return { ...before, disabledReason, secrets: [{ secret, until: null }, ...old] };
  };
  return {
    ...describeWebhook(requireWebhook(await ports.endpoints.change(tenant, id, applyRotation))),
    secret,
  };
}

const selectValidSecrets = (secrets: StoredWebhook['secrets'], now: number): StoredWebhook['secrets'] =>
  secrets
    .map(({ secret, until }) => ({ secret, until: until ?? now + secretOverlapMs }))
    .filter(({ until }) => until > now);

const describeWebhook = (endpoint: Endpoint): object => ({
  webhook_id: endpoint.id,
  url: endpoint.url,
  event_types: endpoint.eventTypes,
  description: endpoint.description,
  enabled: endpoint.enabled,
  disabled_reason: endpoint.disabledReason,
  created_at: new Date(endpoint.createdAt).toISOString(),
});

/** @throws ApiError CONFLICT for a disabled endpoint */
async function requireEnabledWebhook(
  { endpoints }: WebhookPorts,
  tenant: string,
  id: string,
): Promise<Endpoint> {
  const endpoint = requireWebhook(await endpoints.find(tenant, id));
  if (!endpoint.enabled) throw new ApiError('CONFLICT', 'This webhook is disabled; enable it first.');
  return endpoint;
}

export async function testWebhook(ports: WebhookPorts, { tenant }: Call, id: string): Promise<object> {
  const endpoint = await requireEnabledWebhook(ports, tenant, id);
  const at = Date.now();
  const event = createWebhookEvent('webhook.test', tenant, null, at, { webhook_id: id });
  if ((await ports.messages.add(endpoint, [{ ...event, at }])) === 0) return { message_id: event.id };
  throw new ApiError('CONFLICT', 'This webhook has too many undelivered messages; retry later.');
}

export async function listDeliveries(
  ports: WebhookPorts,
  { tenant, query }: Call<pages.PageQuery>,
  id: string,
) {
  const before = cursors.decode(query.cursor);
  const endpoint = requireWebhook(await ports.endpoints.find(tenant, id));
  const { messages, next } = await ports.messages.list(
    endpoint,
    before,
    query.limit ?? pages.defaultPageLimit,
  );
  const page = { items: messages, next_cursor: next === null ? null : cursors.encode(next) };
  return pages.encodeList({ webhook_id: id }, 'deliveries', page, describeMessage);
}

export async function redeliver(ports: WebhookPorts, { tenant }: Call, id: string, messageId: string) {
  if (await ports.messages.retry(await requireEnabledWebhook(ports, tenant, id), messageId))
    return { message_id: messageId };
  throw new ApiError('NOT_FOUND', 'This webhook has no message with this message_id.');
}

const cursors = pages.createCursors('delivery:', (mark) => (/^\d{1,16}$/.test(mark) ? mark : null));

const formatTime = (ms: number): string => new Date(ms).toISOString();

const describeMessage = (message: ListedMessage): object => ({
  message_id: message.id,
  type: message.type,
  status: message.status,
  tries: message.tries,
  last_status: message.lastStatus,
  last_error: message.lastError,
  next_try_at: message.nextTryAt === null ? null : formatTime(message.nextTryAt),
  created_at: formatTime(message.at),
});
