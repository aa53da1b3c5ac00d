import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { plainName } from '../schema/ids.js';
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

export const NewKey = Type.Object(
  { scopes: optionalNullable(Scopes), ...quota, tenant: optionalNullable(Tenant) },
  { examples: [{ scopes: ['read'], requests_per_minute: 60 }] },
);
const newCheck = Compile(NewKey);
export const KeyChange = Type.Object(quota, { examples: [{ requests_per_minute: 120 }] });
const changeCheck = Compile(KeyChange);

export type Quota = number | null;

/** Missing fields are undefined. @throws ApiError INVALID_REQUEST */
export function parseNewKey(body: unknown) {
  const request = validate(newCheck, body, 'key');
  const named: readonly Scope[] | undefined = request.scopes ?? undefined;
  const scopes = named && allScopes.filter((scope) => named.includes(scope));
  return { tenant: request.tenant ?? undefined, scopes, quota: parseQuota(request) };
}

/** @throws ApiError INVALID_REQUEST */
export function parseKeyChange(body: unknown): Quota {
  const newQuota = parseQuota(validate(changeCheck, body, 'change'));
  return newQuota === undefined ? rejectKey('requests_per_minute', 'or unlimited is required') : newQuota;
}

function parseQuota(request: { requests_per_minute?: number | null; unlimited?: boolean | null }) {
  const amount = request.requests_per_minute ?? undefined;
  if (request.unlimited !== true) return amount;
  return amount === undefined ? null : rejectKey('unlimited', 'cannot be combined with requests_per_minute');
}

/** @throws ApiError INVALID_REQUEST */
export function rejectKey(path: string, message: string): never {
  throw validationError('key', { path, message });
}
