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
import { noControls, plainName } from '../../contracts/schema/ids.js';
import { formatTableLines } from '../../lab/report/format.js';
import { StartError } from '../../lifecycle.js';
import { addKey, generateKey } from '../../services/access/manage-keys.js';
import { createKeyStore, type KeyStore } from '../../store/access/api-keys.js';
import * as read from '../support/arguments.js';
import { defineCommand } from '../support/command.js';
import { openRedisOnly } from '../support/servers.js';

const checkLabel =
  (maxLength: number) =>
  (text: string, name: string): string => {
    if (text.length <= maxLength && new RegExp(noControls).test(text)) return text;
    throw new read.UsageError(`${name} must have up to ${maxLength} characters, without control characters`);
  };

const options = {
  tenant: read.tenantOption(`tenant of the key (default: ${read.defaultTenant})`),
  'requests-per-minute': read.integerOption(
    1,
    maxQuota,
    `quota in requests per minute, 1 to ${maxQuota} (default: ${defaultQuota})`,
  ),
  unlimited: read.flag('create a key without a quota'),
  scopes: read.option(
    'LIST',
    `comma-separated list of ${allScopes.join(', ')} (default: ${defaultScopes.join()});
operator grants deployment-wide data and actions`,
    (text, name): readonly Scope[] => {
      const names = text.split(',').map((scope) => scope.trim());
      const unknown = names.find((scope) => !allScopes.some((known) => known === scope));
      if (unknown === undefined) return allScopes.filter((scope) => names.includes(scope));
      throw new read.UsageError(`${name} ${JSON.stringify(unknown)} must be one of ${allScopes.join(', ')}`);
    },
  ),
  name: read.option('TEXT', 'display name, up to 64 characters; empty: none', checkLabel(64)),
  note: read.option(
    'TEXT',
    'note for the owners of the key, up to 256 characters; empty: none',
    checkLabel(256),
  ),
  key: read.option(
    'KEY',
    `store this key, 1 to 128 characters of A-Za-z0-9._~-, instead of a random one;
an existing key takes the new quota, a revoked key stays revoked`,
    (text, name) => {
      // The key is secret, so the error omits it.
      if (!plainName.test(text))
        throw new read.UsageError(`${name} must have 1 to 128 characters of A-Za-z0-9._~-`);
      return text;
    },
  ),
};

type KeyAction = (store: KeyStore) => Promise<string>;

export const main = defineCommand({
  name: 'keys',
  ...read.defineArguments({
    usage: 'npm run keys -- create [options] | list | change KEY|HASH [options] | revoke KEY|HASH',
    about: `Creates, lists, changes and revokes API keys.

  create           prints the new key; only its hash is stored, so the key cannot be shown again
  list             prints hash, tenant, quota, scopes, creation time, last use, name and note of the active keys
  change KEY|HASH  changes the name or note of a key
  revoke KEY|HASH  revokes a key, given as the key or as at least 8 leading characters of its hash;
                   the running service rejects it within 2 s

The options apply to create, --name and --note also to change.`,
    options,
    examples: [
      'npm run keys -- create --tenant school-1 --requests-per-minute 600 --scopes read,write',
      'npm run keys -- list',
      "npm run keys -- change 1f2e3d4c --name 'Reports of school 1'",
      'npm run keys -- revoke 1f2e3d4c',
    ],
    notes: `It connects to Redis at REDIS_URL or of the service running on DATA_DIR, or starts the embedded servers itself.`,
    read: (values, { operands: [action, name, ...rest] }): KeyAction => {
      if (action === 'create' && name === undefined) return create(values);
      if (action !== 'change' && action !== 'revoke' && (action !== 'list' || name !== undefined))
        throw new read.UsageError('Pass create, list, change or revoke');
      const allowed = action === 'change' ? changeOptions : [];
      for (const [option, value] of Object.entries(values))
        if (value !== null && value !== false && !allowed.includes(option))
          throw new read.UsageError(`--${option} does not apply to ${action}`);
      if (action === 'list') return list;
      if (name === undefined || rest.length > 0)
        throw new read.UsageError(`Pass one KEY or HASH to ${action}`);
      return action === 'change' ? change(name, values) : revoke(name);
    },
  }),
  run: async (context, action) => {
    const store = createKeyStore(await openRedisOnly(context), (error) =>
      context.logger.error({ err: error }, 'a stored API key cannot be read and is skipped'),
    );
    context.print(await action(store));
  },
});

function create(values: read.OptionValues<typeof options>): KeyAction {
  const { tenant, unlimited, 'requests-per-minute': quota, scopes } = values;
  if (unlimited && quota !== null)
    throw new read.UsageError('Pass either --unlimited or --requests-per-minute');
  const key = values.key ?? generateKey();
  const grant: Grant = {
    keyHash: hashKey(key),
    tenant: tenant ?? read.defaultTenant,
    requestsPerMinute: unlimited ? null : (quota ?? defaultQuota),
    scopes: scopes ?? defaultScopes,
    development: false,
    ...readLabels(values),
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
    `This key exists for tenant ${stored.tenant} with scopes ${stored.scopes.join()}, which cannot change. Create another key`,
  );
}

const list: KeyAction = async (store) => {
  const [keys, lastUses] = [await store.listActive(), await store.readLastUses()];
  const rows = keys.map(({ keyHash, tenant, requestsPerMinute, scopes, createdAt, ...key }) => {
    const quota = requestsPerMinute === null ? 'unlimited' : `${requestsPerMinute}/min`;
    const lastUse = lastUses.get(keyHash);
    const lastUsed = lastUse === undefined ? '' : new Date(lastUse).toISOString();
    const name = key.name ?? (key.development ? 'development key' : '');
    return [toKeyId(keyHash), tenant, quota, scopes.join(), createdAt, lastUsed, name, key.note ?? ''];
  });
  const titles = ['HASH', 'TENANT', 'QUOTA', 'SCOPES', 'CREATED', 'LAST USED', 'NAME', 'NOTE'];
  return formatTableLines([titles, ...rows], 'padEnd').join('\n');
};

const changeOptions: readonly string[] = ['name', 'note'];

function change(name: string, values: read.OptionValues<typeof options>): KeyAction {
  const update = readLabels(values);
  if (Object.keys(update).length === 0) throw new read.UsageError('Pass --name or --note');
  return async (store) => {
    const keyHash = await findActive(store, name);
    await store.change(keyHash, update);
    return `changed ${toKeyId(keyHash)}`;
  };
}

/** Empty texts remove a label. */
const readLabels = ({ name, note }: read.OptionValues<typeof options>) => ({
  ...(name !== null && { name: name || null }),
  ...(note !== null && { note: note || null }),
});

const minPrefixLength = 8;

function revoke(name: string): KeyAction {
  return async (store) => {
    const keyHash = await findActive(store, name);
    await store.revoke(keyHash);
    return `revoked ${toKeyId(keyHash)}`;
  };
}

/** @param name a key, or a unique prefix of a hash @returns the hash @throws StartError */
async function findActive(store: KeyStore, name: string): Promise<string> {
  const hash = hashKey(name);
  if ((await store.findActive(hash)) !== null) return hash;
  const prefix = name.toLowerCase();
  const keys = prefix.length < minPrefixLength ? [] : await store.listActive();
  const [found, ...others] = keys.filter(({ keyHash }) => keyHash.startsWith(prefix));
  if (others.length > 0)
    throw new StartError(
      `${others.length + 1} keys have a hash that starts with ${prefix}. Pass more characters`,
    );
  if (found === undefined)
    throw new StartError('No active key matches. npm run keys -- list shows the hashes');
  return found.keyHash;
}
