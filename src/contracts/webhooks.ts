import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { checked, misfit, nullable, orNull } from './checked.js';
import { noControls } from './ids.js';
import { parseJson } from './json.js';
import { namesPrivateAddress } from './public-address.js';
import { type WebhookType, webhookTypes } from './webhook-events.js';

/** A test goes to one endpoint, whatever its types. */
export const askedTypes: readonly WebhookType[] = webhookTypes.filter((type) => type !== 'webhook.test');

export const WebhookUrl = Type.String({ maxLength: 2048, pattern: noControls });
export const EventTypes = Type.Array(Type.Enum([...askedTypes, '*']), {
  ...{ minItems: 1, maxItems: askedTypes.length, uniqueItems: true },
  description: 'Types of events, or * alone for all of them',
});
export const Description = Type.String({ maxLength: 256, pattern: noControls, description: 'For display' });

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
  { url: WebhookUrl, event_types: EventTypes, description: orNull(Description) },
  { examples: [{ url: 'https://hooks.example.org/skilltrace', event_types: ['*'] }] },
);
const newCheck = Compile(NewWebhook);
export const WebhookChange = Type.Object(
  {
    ...{ url: orNull(WebhookUrl), event_types: orNull(EventTypes), description: orNull(Description) },
    enabled: orNull(Type.Boolean()),
  },
  { examples: [{ event_types: ['mastery.reached'] }] },
);
const changeCheck = Compile(WebhookChange);
export const Rotation = Type.Object(
  { revoke_old: orNull(Type.Boolean()) },
  { examples: [{ revoke_old: true }] },
);
const rotationCheck = Compile(Rotation);

/** @param allowPrivate also http. @throws ApiError INVALID_REQUEST */
export function readNewWebhook(body: unknown, allowPrivate: boolean): WebhookSetting {
  const { url, event_types: eventTypes, description } = checked(newCheck, body, 'webhook');
  refuseMisfit(url, eventTypes, allowPrivate);
  return { url, eventTypes, description: description || null };
}

/** Null keeps the value; an empty description removes it. @throws ApiError INVALID_REQUEST */
export function readWebhookChange(body: unknown, allowPrivate: boolean) {
  const change = checked(changeCheck, body, 'webhook');
  const { url = null, event_types: eventTypes = null, description = null, enabled = null } = change;
  refuseMisfit(url, eventTypes ?? [], allowPrivate);
  return { url, eventTypes, description, enabled };
}

/** The body may be empty. @throws ApiError INVALID_REQUEST */
export const readRotation = (body: Uint8Array): boolean =>
  body.length > 0 && checked(rotationCheck, parseJson(body), 'rotation').revoke_old === true;

function refuseMisfit(url: string | null, eventTypes: readonly string[], allowPrivate: boolean): void {
  const message = url === null ? null : urlProblem(url, allowPrivate);
  if (message !== null) throw misfit('webhook', { path: 'url', message });
  if (eventTypes.length > 1 && eventTypes.includes('*'))
    throw misfit('webhook', { path: 'event_types', message: 'must have nothing beside *' });
}

function urlProblem(text: string, allowPrivate: boolean): string | null {
  const url = /^https?:\/\/[^\s\\]+$/i.test(text) && URL.canParse(text) ? new URL(text) : null;
  if (url === null) return 'must be an absolute URL such as https://example.org/hooks';
  if (url.username !== '' || url.password !== '') return 'must have no user name and no password';
  if (text.includes('#')) return 'must have no fragment';
  if (allowPrivate) return null;
  if (url.protocol !== 'https:') return 'must begin with https://';
  return namesPrivateAddress(url) ? 'must not name an address that is not public' : null;
}
