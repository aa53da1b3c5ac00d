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
} from '../../contracts/access.js';
import type { Call } from '../../contracts/call.js';
import { parseJson } from '../../contracts/json.js';
import { parseKeyChange, parseNewKey, type Quota, rejectKey, Tenant } from '../../contracts/keys.js';
import { ApiError, unauthorized, unavailable } from '../../errors.js';
import type { KeyStore } from '../../store/access/api-keys.js';
import { createCursors, listJson, newestFirst, PageQuery, pageLimit, pageOf } from '../read/pages.js';

export interface KeyPorts extends Pick<KeyStore, 'all' | 'get' | 'save' | 'setQuota' | 'revoke'> {
  readonly log: (act: 'made' | 'given another quota' | 'revoked', key: StoredKey, by: Grant) => void;
}

/** Per tenant, including revoked keys, because all keys are read together. Operators may exceed it. */
const maxKeys = 1000;

const isOperator = ({ scopes }: Grant): boolean => scopes.includes('operator');
const reaches = (caller: Grant, tenant: string): boolean => isOperator(caller) || caller.tenant === tenant;

const forbidden = (message: string): ApiError => new ApiError('FORBIDDEN', message);

export const makeKey = (): string => `sk-${randomBytes(24).toString('base64url')}`;

/** Sets only the quota of a stored key. @throws ApiError CONFLICT for a revoked key */
export async function addKey(keys: Pick<KeyStore, 'save'>, grant: Grant): Promise<void> {
  if ((await keys.save(grant)) === 'revoked')
    throw new ApiError('CONFLICT', 'This key was revoked and stays so: create another one');
}

export async function readOwnKey(keys: KeyPorts, { grant }: Call): Promise<object> {
  const { revoked_at: _, ...own } = describe(await inForce(keys, grant));
  return own;
}

/** Reads the caller's key again: the cached one may be stale. */
async function inForce(keys: KeyPorts, { keyHash }: Grant): Promise<StoredKey> {
  const own = still(await keys.get(keyHash));
  if (own.revokedAt === null) return own;
  throw unauthorized('The API key was revoked');
}

function still(found: StoredKey | null): StoredKey {
  if (found !== null) return found;
  throw unavailable('The API key cannot be looked up right now');
}

export const KeyQuery = Type.Object({ ...PageQuery.properties, tenant: Type.Optional(Tenant) });

const placeOf = ({ createdAt, keyHash }: StoredKey): string => `${createdAt} ${toKeyId(keyHash)}`;
const cursors = createCursors('key:', (text) => (/^\S+ [\da-f]{12}$/.test(text) ? text : null));

export async function listKeys(keys: KeyPorts, { grant: caller, query }: Call<Static<typeof KeyQuery>>) {
  const { tenant, limit = pageLimit } = query;
  if (tenant !== undefined && !reaches(caller, tenant))
    throw forbidden('Only operators see keys of other tenants');
  const after = cursors.decode(query.cursor);
  const wanted = (await keys.all()).filter((key) =>
    tenant === undefined ? reaches(caller, key.tenant) : key.tenant === tenant,
  );
  const left = newestFirst(wanted, placeOf, after);
  const page = pageOf(left, limit, (last) => cursors.encode(placeOf(last)));
  return listJson({}, 'keys', page, describe);
}

export async function createKey(keys: KeyPorts, { grant, body }: Call): Promise<object> {
  const wanted = parseNewKey(parseJson(body));
  const caller = await inForce(keys, grant);
  const tenant = wanted.tenant ?? caller.tenant;
  if (!reaches(caller, tenant)) throw forbidden('Only operators make keys of other tenants');
  const scopes = wanted.scopes ?? defaultScopes.filter((scope) => caller.scopes.includes(scope));
  if (scopes.length === 0) rejectKey('scopes', 'has to be given: yours has none of the standard ones');
  if (!scopes.every((scope) => caller.scopes.includes(scope)))
    throw forbidden('A key may have no scope that the one which makes it lacks');
  const requestsPerMinute = wanted.quota === undefined ? standardQuota(caller) : wanted.quota;
  refuseMore(caller, requestsPerMinute);
  await refuseMany(keys, caller);
  const key = makeKey();
  const keyHash = hashKey(key);
  await addKey(keys, { keyHash, tenant, requestsPerMinute, scopes, development: false });
  const made = still(await keys.get(keyHash));
  keys.log('made', made, caller);
  return { ...describe(made), key };
}

const standardQuota = (caller: Grant): number =>
  isOperator(caller) ? defaultQuota : Math.min(defaultQuota, caller.requestsPerMinute ?? defaultQuota);

function refuseMore(caller: Grant, quota: Quota): void {
  const most = isOperator(caller) ? null : caller.requestsPerMinute;
  if (most !== null && (quota === null || quota > most))
    throw forbidden(`This key may make ${most} requests a minute, and give no more`);
}

async function refuseMany(keys: KeyPorts, caller: Grant): Promise<void> {
  if (isOperator(caller)) return;
  const own = (await keys.all()).filter(({ tenant }) => tenant === caller.tenant);
  if (own.length >= maxKeys)
    throw new ApiError('LIMIT_EXCEEDED', `A tenant has at most ${maxKeys} keys, revoked ones included`);
}

export async function changeQuota(keys: KeyPorts, { grant, body }: Call, id: string): Promise<object> {
  const quota = parseKeyChange(parseJson(body));
  const caller = await inForce(keys, grant);
  const found = await manageable(keys, caller, id);
  refuseMore(caller, quota);
  const changed = still(await keys.setQuota(found.keyHash, quota));
  if (changed.revokedAt !== null) throw new ApiError('CONFLICT', 'This key was revoked and stays so');
  keys.log('given another quota', changed, caller);
  return describe(changed);
}

export async function revokeKey(keys: KeyPorts, { grant }: Call, id: string): Promise<object> {
  const caller = await inForce(keys, grant);
  const { keyHash } = await manageable(keys, caller, id);
  await keys.revoke(keyHash);
  const revoked = still(await keys.get(keyHash));
  keys.log('revoked', revoked, caller);
  return describe(revoked);
}

async function manageable(keys: KeyPorts, caller: Grant, id: string): Promise<StoredKey> {
  const all = await keys.all();
  const found = all.find(({ keyHash, tenant }) => toKeyId(keyHash) === id && reaches(caller, tenant));
  if (found === undefined) throw new ApiError('NOT_FOUND', 'There is no key of this id');
  if (isOperator(caller) || found.scopes.every((scope) => caller.scopes.includes(scope))) return found;
  throw forbidden('This key has scopes that yours lacks');
}

const describe = (key: StoredKey) => ({
  key_id: toKeyId(key.keyHash),
  tenant: key.tenant,
  scopes: key.scopes,
  requests_per_minute: key.requestsPerMinute,
  development: key.development,
  created_at: key.createdAt,
  revoked_at: key.revokedAt,
});
