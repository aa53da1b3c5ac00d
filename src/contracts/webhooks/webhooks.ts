import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { noControls } from '../schema/ids.js';
import { parseJson } from '../schema/json.js';
import { nullable, optionalNullable, validate, validationError } from '../schema/validate.js';
import { hasPrivateAddress } from '../settings/public-address.js';
import { type WebhookType, webhookTypes } from './webhook-events.js';

/** A test goes to one endpoint, whatever its types. */
export const subscribableTypes: readonly WebhookType[] = webhookTypes.filter(
  (type) => type !== 'webhook.test',
);

export const WebhookUrl = Type.String({ maxLength: 2048, pattern: noControls });
export const EventTypes = Type.Array(Type.Enum([...subscribableTypes, '*']), {
  ...{ minItems: 1, maxItems: subscribableTypes.length, uniqueItems: true },
  description: 'Event types to send, or only * for all types.',
});
export const Description = Type.String({ maxLength: 256, pattern: noControls, description: 'Display text.' });

/** `gone`: status 410. `undelivered`: too many pending messages. `restored`: without secrets. */
export const disabledReasons = ['request', 'gone', 'failing', 'undelivered', 'restored'] as const;
export type DisabledReason = (typeof disabledReasons)[number];

/** Times are Unix milliseconds. */
export const StoredWebhook = Type.Object({
  v: Type.Literal(1),
  ...{ tenant: Type.String(), id: Type.String(), url: Type.String({ minLength: 1 }), eventTypes: EventTypes },
  description: nullable(Type.String()),
  disabledReason: nullable(Type.Enum([...disabledReasons])),
  createdAt: Type.Integer(),
  updatedAt: Type.Integer(),
  /** Newest first; `until`: end of a replaced secret. */
  secrets: Type.Array(Type.Object({ secret: Type.String(), until: nullable(Type.Integer()) })),
});
export type StoredWebhook = Static<typeof StoredWebhook>;
export type WebhookRecord = Omit<StoredWebhook, 'v' | 'secrets'>;
export type WebhookSetting = Pick<StoredWebhook, 'url' | 'eventTypes' | 'description'>;

export const NewWebhook = Type.Object(
  { url: WebhookUrl, event_types: EventTypes, description: optionalNullable(Description) },
  { examples: [{ url: 'https://hooks.example.org/skilltrace', event_types: ['*'] }] },
);
const newCheck = Compile(NewWebhook);
export const WebhookChange = Type.Object(
  {
    ...{
      url: optionalNullable(WebhookUrl),
      event_types: optionalNullable(EventTypes),
      description: optionalNullable(Description),
    },
    enabled: optionalNullable(Type.Boolean()),
  },
  { examples: [{ event_types: ['mastery.reached'] }] },
);
const changeCheck = Compile(WebhookChange);
export const RotationRequest = Type.Object(
  { revoke_old: optionalNullable(Type.Boolean()) },
  { examples: [{ revoke_old: true }] },
);
const rotationCheck = Compile(RotationRequest);

/** @param allowPrivate allow http and private addresses. @throws ApiError INVALID_REQUEST */
export function parseNewWebhook(body: unknown, allowPrivate: boolean): WebhookSetting {
  const { url, event_types: eventTypes, description } = validate(newCheck, body, 'webhook');
  checkEndpoint(url, eventTypes, allowPrivate);
  return { url, eventTypes, description: description || null };
}

/** Null keeps the value; an empty description removes it. @throws ApiError INVALID_REQUEST */
export function parseWebhookChange(body: unknown, allowPrivate: boolean) {
  const change = validate(changeCheck, body, 'webhook');
  const { url = null, event_types: eventTypes = null, description = null, enabled = null } = change;
  checkEndpoint(url, eventTypes ?? [], allowPrivate);
  return { url, eventTypes, description, enabled };
}

/** The body may be empty. @throws ApiError INVALID_REQUEST */
export const parseRevokeOld = (body: Uint8Array): boolean =>
  body.length > 0 && validate(rotationCheck, parseJson(body), 'rotation').revoke_old === true;

function checkEndpoint(url: string | null, eventTypes: readonly string[], allowPrivate: boolean): void {
  const message = url === null ? null : findUrlProblem(url, allowPrivate);
  if (message !== null) throw validationError('webhook', { path: 'url', message });
  if (eventTypes.length > 1 && eventTypes.includes('*'))
    throw validationError('webhook', {
      path: 'event_types',
      message: 'must have no other entry if it has *',
    });
}

function findUrlProblem(text: string, allowPrivate: boolean): string | null {
  const url = /^https?:\/\/[^\s\\]+$/i.test(text) && URL.canParse(text) ? new URL(text) : null;
  if (url === null) return 'must be an absolute URL, for example https://example.org/hooks';
  if (url.username !== '' || url.password !== '') return 'must have no user name or password';
  if (text.includes('#')) return 'must have no fragment';
  if (allowPrivate) return null;
  if (url.protocol !== 'https:') return 'must begin with https://';
  return hasPrivateAddress(url) ? 'must name a public host, not a private address' : null;
}
