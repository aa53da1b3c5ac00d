import {
  allScopes,
  defaultQuota,
  defaultScopes,
  type Grant,
  hashKey,
  maxQuota,
  type Scope,
  toKeyId,
} from '../../contracts/access/access.js';
import { plainName } from '../../contracts/schema/ids.js';
import { formatTableLines } from '../../lab/report/format.js';
import { StartError } from '../../lifecycle.js';
import { addKey, generateKey } from '../../services/access/manage-keys.js';
import { createKeyStore, type KeyStore } from '../../store/access/api-keys.js';
import * as read from '../support/arguments.js';
import { defineCommand } from '../support/command.js';
import { openRedisOnly } from '../support/servers.js';

const options = {
  tenant: read.tenantOption(`whose answers the key reaches (default: ${read.defaultTenant})`),
  'requests-per-minute': read.integerOption(
    1,
    maxQuota,
    `quota, 1 to ${maxQuota} (default: ${defaultQuota})`,
  ),
  unlimited: read.flag('no quota'),
  scopes: read.option(
    'LIST',
    `comma-separated of ${allScopes.join(', ')} (default: all but operator, which
reaches beyond its tenant)`,
    (text, name): readonly Scope[] => {
      const names = text.split(',').map((scope) => scope.trim());
      const unknown = names.find((scope) => !allScopes.some((known) => known === scope));
      if (unknown === undefined) return allScopes.filter((scope) => names.includes(scope));
      throw new read.UsageError(`${name}: ${JSON.stringify(unknown)} is none of ${allScopes.join()}`);
    },
  ),
  key: read.option(
    'KEY',
    `this key, 1 to 128 of A-Za-z0-9._~-, instead of a random one; one that is in
store takes the new quota, one that was revoked stays so`,
    (text, name) => {
      // The key is secret, so the error omits it.
      if (!plainName.test(text)) throw new read.UsageError(`${name}: 1 to 128 of A-Za-z0-9._~- are allowed`);
      return text;
    },
  ),
};

type KeyAction = (store: KeyStore) => Promise<string>;

export const main = defineCommand({
  name: 'keys',
  ...read.defineArguments({
    usage: 'npm run keys -- create [options] | list | revoke KEY|HASH',
    about: `create prints the new key, which is stored as a hash only and cannot be shown again. The options are for create.
list prints hash, tenant, quota, scopes and time of creation of each key.
revoke takes a key, or the first 8 or more characters of its hash as list shows it. The running service
refuses a revoked key within 2 s.`,
    options,
    notes: `The keys of the service that runs on DATA_DIR (or at REDIS_URL) are meant; where none runs, its servers
are started for the moment.`,
    read: (values, { operands: [action, name, ...rest] }): KeyAction => {
      const hasOptions = Object.values(values).some((value) => value !== null && value !== false);
      if (action !== 'create' && hasOptions) throw new read.UsageError('only create takes options');
      if (action === 'create' && name === undefined) return create(values);
      if (action === 'list' && name === undefined) return list;
      if (action === 'revoke' && name !== undefined && rest.length === 0) return revoke(name);
      throw new read.UsageError(
        action === 'revoke' ? 'revoke takes one KEY or HASH' : 'create, list or revoke is needed',
      );
    },
  }),
  run: async (context, action) => {
    const store = createKeyStore(await openRedisOnly(context), (error) =>
      context.logger.error({ err: error }, 'an API key in store cannot be read'),
    );
    context.print(await action(store));
  },
});

function create(values: read.OptionValues<typeof options>): KeyAction {
  const { tenant, unlimited, 'requests-per-minute': quota, scopes } = values;
  if (unlimited && quota !== null)
    throw new read.UsageError('--unlimited and --requests-per-minute exclude each other');
  const key = values.key ?? generateKey();
  const grant: Grant = {
    keyHash: hashKey(key),
    tenant: tenant ?? read.defaultTenant,
    requestsPerMinute: unlimited ? null : (quota ?? defaultQuota),
    scopes: scopes ?? defaultScopes,
    development: false,
  };
  return async (store) => {
    const stored = await store.findActive(grant.keyHash);
    if (stored !== null) requireSameGrant(stored, grant);
    await addKey(store, grant);
    return key;
  };
}

/** The tenant and scopes of a stored key never change. */
function requireSameGrant(stored: Grant, requested: Grant): void {
  if (stored.tenant === requested.tenant && stored.scopes.join() === requested.scopes.join()) return;
  throw new StartError(
    `This key is in store for tenant ${stored.tenant} with scopes ${stored.scopes.join()}, which stay: create another one`,
  );
}

const list: KeyAction = async (store) => {
  const keys = await store.listActive();
  const rows = keys.map(({ keyHash, tenant, requestsPerMinute, scopes, development, createdAt }) => [
    toKeyId(keyHash),
    tenant,
    requestsPerMinute === null ? 'unlimited' : `${requestsPerMinute}/min`,
    scopes.join(),
    createdAt,
    development ? 'development key' : '',
  ]);
  return formatTableLines([['HASH', 'TENANT', 'QUOTA', 'SCOPES', 'CREATED', ''], ...rows], 'padEnd').join(
    '\n',
  );
};

const minPrefixLength = 8;

/** Accepts a key, or a unique prefix of a hash. */
function revoke(name: string): KeyAction {
  return async (store) => {
    const hash = hashKey(name);
    if (await store.revoke(hash)) return `revoked ${toKeyId(hash)}`;
    const prefix = name.toLowerCase();
    const keys = prefix.length < minPrefixLength ? [] : await store.listActive();
    const [found, ...others] = keys.filter(({ keyHash }) => keyHash.startsWith(prefix));
    if (others.length > 0)
      throw new StartError(`${others.length + 1} keys begin with ${prefix}: give more of the hash`);
    if (found === undefined || !(await store.revoke(found.keyHash)))
      throw new StartError('There is no such key');
    return `revoked ${toKeyId(found.keyHash)}`;
  };
}
