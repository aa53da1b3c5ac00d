/** All functions throw ApiError UNAUTHORIZED or UNAVAILABLE. */
import { randomBytes } from 'node:crypto';
import Type, { type Static } from 'typebox';
import {
  defaultQuota,
  defaultScopes,
  type Grant,
  hashKey,
  type StoredKey,
  toKeyId,
} from '../../contracts/access/access.js';
import type { Call } from '../../contracts/access/call.js';
import { parseKeyChange, parseNewKey, type Quota, rejectKey, Tenant } from '../../contracts/access/keys.js';
import { parseJson } from '../../contracts/schema/json.js';
import { utc } from '../../domain/base/calendar.js';
import { ApiError, unauthorized, unavailable } from '../../errors.js';
import type { KeyStore } from '../../store/access/api-keys.js';
import type { TimeZoneStore } from '../../store/catalogue/time-zones.js';
import {
  buildPage,
  createCursors,
  defaultPageLimit,
  encodeList,
  PageQuery,
  sortNewestFirst,
} from '../paging/pages.js';

export interface KeyPorts
  extends Pick<KeyStore, 'all' | 'get' | 'save' | 'change' | 'revoke' | 'readLastUses'> {
  readonly timeZones: Pick<TimeZoneStore, 'read'>;
  readonly logChange: (act: 'created' | 'changed' | 'revoked', key: StoredKey, by: Grant) => void;
}

/** Per tenant, including revoked keys, because all keys are read together. Operators may exceed it. */
const maxKeys = 1000;

const isOperator = ({ scopes }: Grant): boolean => scopes.includes('operator');
const canAccessTenant = (caller: Grant, tenant: string): boolean =>
  isOperator(caller) || caller.tenant === tenant;

const forbidden = (message: string): ApiError => new ApiError('FORBIDDEN', message);

export const generateKey = (): string => `sk-${randomBytes(24).toString('base64url')}`;

/** Sets only the quota of a stored key. @throws ApiError CONFLICT for a revoked key */
export async function addKey(keys: Pick<KeyStore, 'save'>, grant: Grant): Promise<void> {
  if ((await keys.save(grant)) === 'revoked')
    throw new ApiError('CONFLICT', 'This key is revoked and cannot be enabled again; create another key.');
}

export async function readCallerKey(keys: KeyPorts, { grant }: Call): Promise<object> {
  const { revoked_at: _, last_used_at: __, ...own } = describeKey(await requireActiveKey(keys, grant));
  const change = await keys.timeZones.read(grant.tenant);
  return { ...own, time_zone: change?.timeZone ?? utc };
}

/** Reads the caller's key again: the cached one may be stale. */
async function requireActiveKey(keys: KeyPorts, { keyHash }: Grant): Promise<StoredKey> {
  const own = requireStored(await keys.get(keyHash));
  if (own.revokedAt === null) return own;
  throw unauthorized('The API key is revoked; use another key.');
}

function requireStored(found: StoredKey | null): StoredKey {
  if (found !== null) return found;
  throw unavailable('The API key cannot be looked up now; retry later.');
}

export const KeyQuery = Type.Object({ ...PageQuery.properties, tenant: Type.Optional(Tenant) });

const toPosition = ({ createdAt, keyHash }: StoredKey): string => `${createdAt} ${toKeyId(keyHash)}`;
const cursors = createCursors('key:', (text) => (/^\S+ [\da-f]{12}$/.test(text) ? text : null));

export async function listKeys(keys: KeyPorts, { grant: caller, query }: Call<Static<typeof KeyQuery>>) {
  const { tenant, limit = defaultPageLimit } = query;
  if (tenant !== undefined && !canAccessTenant(caller, tenant))
    throw forbidden('Listing keys of another tenant needs the scope operator.');
  const after = cursors.decode(query.cursor);
  const visibleKeys = (await keys.all()).filter((key) =>
    tenant === undefined ? canAccessTenant(caller, key.tenant) : key.tenant === tenant,
  );
  const left = sortNewestFirst(visibleKeys, toPosition, after);
  const page = buildPage(left, limit, (last) => cursors.encode(toPosition(last)));
  const lastUses = await keys.readLastUses();
  return encodeList({}, 'keys', page, (key) => describeKey(key, lastUses.get(key.keyHash)));
}

export async function createKey(keys: KeyPorts, { grant, body }: Call): Promise<object> {
  const requested = parseNewKey(parseJson(body));
  const caller = await requireActiveKey(keys, grant);
  const tenant = requested.tenant ?? caller.tenant;
  if (!canAccessTenant(caller, tenant))
    throw forbidden('Creating a key for another tenant needs the scope operator.');
  const scopes = requested.scopes ?? defaultScopes.filter((scope) => caller.scopes.includes(scope));
  if (scopes.length === 0) rejectKey('scopes', 'is required, because the calling key has no default scope');
  if (!scopes.every((scope) => caller.scopes.includes(scope)))
    throw forbidden('A key can only grant scopes that it has; remove the other scopes.');
  const requestsPerMinute = requested.quota === undefined ? computeDefaultQuota(caller) : requested.quota;
  checkQuota(caller, requestsPerMinute);
  await checkKeyCount(keys, caller);
  const key = generateKey();
  const keyHash = hashKey(key);
  const { name = null, note = null } = requested;
  await addKey(keys, { keyHash, tenant, requestsPerMinute, scopes, development: false, name, note });
  const createdKey = requireStored(await keys.get(keyHash));
  keys.logChange('created', createdKey, caller);
  return { ...describeKey(createdKey), key };
}

const computeDefaultQuota = (caller: Grant): number =>
  isOperator(caller) ? defaultQuota : Math.min(defaultQuota, caller.requestsPerMinute ?? defaultQuota);

function checkQuota(caller: Grant, quota: Quota): void {
  const most = isOperator(caller) ? null : caller.requestsPerMinute;
  if (most !== null && (quota === null || quota > most))
    throw forbidden(
      `The calling key can grant at most ${most} requests per minute; a higher quota needs the scope operator.`,
    );
}

async function checkKeyCount(keys: KeyPorts, caller: Grant): Promise<void> {
  if (isOperator(caller)) return;
  const own = (await keys.all()).filter(({ tenant }) => tenant === caller.tenant);
  if (own.length >= maxKeys)
    throw new ApiError(
      'LIMIT_EXCEEDED',
      `The tenant has ${maxKeys} keys, the maximum including revoked keys. An operator can create more.`,
    );
}

export async function changeKey(keys: KeyPorts, { grant, body }: Call, id: string): Promise<object> {
  const change = parseKeyChange(parseJson(body));
  const caller = await requireActiveKey(keys, grant);
  const found = await findManageableKey(keys, caller, id);
  if (change.requestsPerMinute !== undefined) checkQuota(caller, change.requestsPerMinute);
  const changed = requireStored(await keys.change(found.keyHash, change));
  if (changed.revokedAt !== null)
    throw new ApiError('CONFLICT', 'This key is revoked and cannot be changed.');
  keys.logChange('changed', changed, caller);
  return describeUsedKey(keys, changed);
}

export async function revokeKey(keys: KeyPorts, { grant }: Call, id: string): Promise<object> {
  const caller = await requireActiveKey(keys, grant);
  const { keyHash } = await findManageableKey(keys, caller, id);
  await keys.revoke(keyHash);
  const revoked = requireStored(await keys.get(keyHash));
  keys.logChange('revoked', revoked, caller);
  return describeUsedKey(keys, revoked);
}

async function findManageableKey(keys: KeyPorts, caller: Grant, id: string): Promise<StoredKey> {
  const all = await keys.all();
  const found = all.find(({ keyHash, tenant }) => toKeyId(keyHash) === id && canAccessTenant(caller, tenant));
  if (found === undefined) throw new ApiError('NOT_FOUND', 'No key has this key_id.');
  if (isOperator(caller) || found.scopes.every((scope) => caller.scopes.includes(scope))) return found;
  throw forbidden('This key has scopes that the calling key lacks.');
}

const describeUsedKey = async (keys: KeyPorts, key: StoredKey) =>
  describeKey(key, (await keys.readLastUses()).get(key.keyHash));

const describeKey = (key: StoredKey, lastUsedAt?: number) => ({
  key_id: toKeyId(key.keyHash),
  tenant: key.tenant,
  name: key.name ?? null,
  note: key.note ?? null,
  scopes: key.scopes,
  requests_per_minute: key.requestsPerMinute,
  development: key.development,
  created_at: key.createdAt,
  revoked_at: key.revokedAt,
  last_used_at: lastUsedAt === undefined ? null : new Date(lastUsedAt).toISOString(),
});
