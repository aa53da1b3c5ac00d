import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { allScopes, maxQuota, type Scope } from './access.js';
import { checked, misfit, orNull } from './checked.js';
import { plainName } from './ids.js';

const quota = {
  requests_per_minute: orNull(
    Type.Integer({ minimum: 1, maximum: maxQuota, description: 'Quota of requests' }),
  ),
  unlimited: orNull(Type.Boolean({ description: 'True: no quota' })),
};
export const Tenant = Type.String({
  pattern: plainName.source,
  maxLength: 128,
  description: 'Of A-Za-z0-9._~-',
});
export const Scopes = Type.Array(Type.Enum([...allScopes]), {
  ...{ minItems: 1, maxItems: allScopes.length, uniqueItems: true },
});

export const NewKey = Type.Object(
  { scopes: orNull(Scopes), ...quota, tenant: orNull(Tenant) },
  { examples: [{ scopes: ['read'], requests_per_minute: 60 }] },
);
const newCheck = Compile(NewKey);
export const KeyChange = Type.Object(quota, { examples: [{ requests_per_minute: 120 }] });
const changeCheck = Compile(KeyChange);

export type Quota = number | null;

/** Missing fields are undefined. @throws ApiError INVALID_REQUEST */
export function readNewKey(body: unknown) {
  const wanted = checked(newCheck, body, 'key');
  const named: readonly Scope[] | undefined = wanted.scopes ?? undefined;
  const scopes = named && allScopes.filter((scope) => named.includes(scope));
  return { tenant: wanted.tenant ?? undefined, scopes, quota: quotaOf(wanted) };
}

/** @throws ApiError INVALID_REQUEST */
export function readKeyChange(body: unknown): Quota {
  const wanted = quotaOf(checked(changeCheck, body, 'change'));
  return wanted === undefined ? refuseKey('requests_per_minute', 'or unlimited is required') : wanted;
}

function quotaOf(wanted: { requests_per_minute?: number | null; unlimited?: boolean | null }) {
  const amount = wanted.requests_per_minute ?? undefined;
  if (wanted.unlimited !== true) return amount;
  return amount === undefined ? null : refuseKey('unlimited', 'excludes requests_per_minute');
}

/** @throws ApiError INVALID_REQUEST */
export function refuseKey(path: string, message: string): never {
  throw misfit('key', { path, message });
}
