import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { noControls, plainName } from '../schema/ids.js';
import { optionalNullable, validate, validationError } from '../schema/validate.js';
import { allScopes, maxQuota, type Scope } from './access.js';

const quota = {
  requests_per_minute: optionalNullable(
    Type.Integer({ minimum: 1, maximum: maxQuota, description: 'Requests per minute.' }),
  ),
  unlimited: optionalNullable(Type.Boolean({ description: 'If true, the key has no quota.' })),
};
export const Tenant = Type.String({
  pattern: plainName.source,
  maxLength: 128,
  description: '1 to 128 characters of A-Za-z0-9._~-.',
});
export const Scopes = Type.Array(Type.Enum([...allScopes]), {
  ...{ minItems: 1, maxItems: allScopes.length, uniqueItems: true },
});

export const KeyName = Type.String({ maxLength: 64, pattern: noControls, description: 'Display name.' });
export const KeyNote = Type.String({
  ...{ maxLength: 256, pattern: noControls },
  description: 'Note for the owners of the key. Do not store personal data here.',
});
const labels = { name: optionalNullable(KeyName), note: optionalNullable(KeyNote) };

export const NewKey = Type.Object(
  { scopes: optionalNullable(Scopes), ...quota, tenant: optionalNullable(Tenant), ...labels },
  { examples: [{ scopes: ['read'], requests_per_minute: 60, name: 'Reports' }] },
);
const newCheck = Compile(NewKey);
export const KeyChange = Type.Object(
  { ...quota, ...labels },
  { examples: [{ requests_per_minute: 120, note: 'Nightly export' }] },
);
const changeCheck = Compile(KeyChange);

export type Quota = number | null;

/** Missing fields are undefined. @throws ApiError INVALID_REQUEST */
export function parseNewKey(body: unknown) {
  const request = validate(newCheck, body, 'key');
  const named: readonly Scope[] | undefined = request.scopes ?? undefined;
  const scopes = named && allScopes.filter((scope) => named.includes(scope));
  const { tenant, name, note } = request;
  return { tenant: tenant ?? undefined, scopes, quota: parseQuota(request), ...parseLabels({ name, note }) };
}

/** Fields of the change only. An empty name or note removes it. @throws ApiError INVALID_REQUEST */
export function parseKeyChange(body: unknown) {
  const { name, note, ...request } = validate(changeCheck, body, 'change');
  const requestsPerMinute = parseQuota(request);
  const change = {
    ...(requestsPerMinute !== undefined && { requestsPerMinute }),
    ...parseLabels({ name, note }),
  };
  if (Object.keys(change).length > 0) return change;
  return rejectKey('requests_per_minute', 'or unlimited, name or note is required');
}

const parseLabels = (labels: { readonly [Name in 'name' | 'note']: string | null | undefined }) =>
  Object.fromEntries(
    Object.entries(labels).flatMap(([label, text]) => (text == null ? [] : [[label, text || null]])),
  ) as { name?: string | null; note?: string | null };

function parseQuota(request: { requests_per_minute?: number | null; unlimited?: boolean | null }) {
  const amount = request.requests_per_minute ?? undefined;
  if (request.unlimited !== true) return amount;
  return amount === undefined ? null : rejectKey('unlimited', 'cannot be combined with requests_per_minute');
}

/** @throws ApiError INVALID_REQUEST */
export function rejectKey(path: string, message: string): never {
  throw validationError('key', { path, message });
}
