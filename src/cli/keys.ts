/** Creates, lists and revokes API keys. */
import { randomBytes } from 'node:crypto';
import { allScopes, defaultScopes, type Grant, type Scope } from '../contracts/access.js';
import { plainName } from '../contracts/ids.js';
import { joinOrStart } from '../embedded/servers.js';
import { hashKey, shortHash } from '../http/auth.js';
import { StartError } from '../lifecycle.js';
import { createKeyStore, type KeyStore } from '../store/access/api-keys.js';
import { openRedis } from '../store/redis/open-redis.js';
import { parseArguments, readInteger, readTenant, usageOf } from './arguments.js';
import { type CommandContext, commandOf } from './command.js';

const help = `Usage: npm run keys -- create [options]
       npm run keys -- list
       npm run keys -- revoke KEY|HASH

create prints the new key, which is stored as a hash only and cannot be shown again. Options:
  --tenant T               whose answers the key reaches (default: default)
  --requests-per-minute N  quota, 1 to 1000000000 (default: 100)
  --unlimited              no quota
  --scopes LIST            comma-separated of read, write, admin, operator (default: all but operator, which
                           reaches beyond its tenant)
  --key KEY                this key, 1 to 128 of A-Za-z0-9._~-, instead of a random one; one that is in
                           store takes the new quota, one that was revoked stays so
list prints hash, tenant, quota, scopes and time of creation of each key.
revoke takes a key, or the first 8 or more characters of its hash as list shows it. The running service
refuses a revoked key within 2 s.

The keys of the service that runs on DATA_DIR (or at REDIS_URL) are meant; where none runs, its servers
are started for the moment.
`;

const options = {
  tenant: { type: 'string' },
  'requests-per-minute': { type: 'string' },
  unlimited: { type: 'boolean' },
  scopes: { type: 'string' },
  key: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** Does the work; resolves with what goes to standard output. */
type Action = (store: KeyStore) => Promise<string>;

export const main = commandOf({ name: 'keys', help, read: readAction, work: runAction });

async function runAction(context: CommandContext, action: Action): Promise<void> {
  context.stdout.write(`${await action(await openStore(context))}\n`);
}

async function openStore(context: CommandContext): Promise<KeyStore> {
  const { config, logger, closers } = context;
  // Keys are in Redis alone: with REDIS_URL set, ClickHouse is neither asked nor started.
  const redisUrl = config.redisUrl ?? (await joinOrStart(config, logger, closers)).redisUrl;
  return createKeyStore(await openRedis(redisUrl, context), (error) =>
    logger.error({ err: error }, 'an API key in store cannot be read'),
  );
}

type Values = ReturnType<typeof parse>['values'];

const usage = usageOf('npm run keys -- create|list|revoke');

const parse = (argv: readonly string[]) => parseArguments(usage, argv, options);

function readAction(argv: readonly string[]): Action | null {
  const { values, positionals } = parse(argv);
  if (values.help) return null;
  const [command, ...rest] = positionals;
  const [name] = rest;
  if (command !== 'create' && Object.keys(values).length > 0) throw usage('only create takes options');
  if (command === 'create' && name === undefined) return create(values);
  if (command === 'list' && name === undefined) return list;
  if (command === 'revoke' && name !== undefined && rest.length === 1) return revoke(name);
  throw usage(command === 'revoke' ? 'revoke takes one KEY or HASH' : 'create, list or revoke is needed');
}

function create(values: Values): Action {
  const key = values.key ?? `sk-${randomBytes(24).toString('base64url')}`;
  if (!plainName.test(key)) throw usage('--key: 1 to 128 of A-Za-z0-9._~- are allowed');
  const grant: Grant = {
    keyHash: hashKey(key),
    tenant: readTenant(values.tenant ?? 'default'),
    requestsPerMinute: readQuota(values),
    scopes: readScopes(values.scopes),
    development: false,
  };
  return async (store) => {
    const stored = await store.find(grant.keyHash);
    if (stored !== null) checkSame(stored, grant);
    if ((await store.put(grant)) === 'revoked')
      throw new StartError('This key was revoked and stays so: create another one');
    return key;
  };
}

/** A stored key keeps its tenant and scopes, so others must not seem to be given to it. */
function checkSame(stored: Grant, wanted: Grant): void {
  if (stored.tenant === wanted.tenant && stored.scopes.join() === wanted.scopes.join()) return;
  throw new StartError(
    `This key is in store for tenant ${stored.tenant} with scopes ${stored.scopes.join()}, which stay: create another one`,
  );
}

const defaultQuota = 100;
const maxQuota = 1_000_000_000;

function readQuota({ unlimited, 'requests-per-minute': text }: Values): number | null {
  if (unlimited && text !== undefined)
    throw usage('--unlimited and --requests-per-minute exclude each other');
  if (unlimited) return null;
  if (text === undefined) return defaultQuota;
  return readInteger(usage, '--requests-per-minute', text, 1, maxQuota);
}

function readScopes(list: string | undefined): readonly Scope[] {
  if (list === undefined) return defaultScopes;
  const names = list.split(',').map((name) => name.trim());
  const unknown = names.find((name) => !allScopes.some((scope) => scope === name));
  if (unknown !== undefined)
    throw usage(`--scopes: ${JSON.stringify(unknown)} is none of ${allScopes.join()}`);
  return allScopes.filter((scope) => names.includes(scope));
}

const list: Action = async (store) => {
  const keys = await store.list();
  const rows = keys.map(({ keyHash, tenant, requestsPerMinute, scopes, development, createdAt }) => [
    shortHash(keyHash),
    tenant,
    requestsPerMinute === null ? 'unlimited' : `${requestsPerMinute}/min`,
    scopes.join(),
    createdAt,
    development ? 'development key' : '',
  ]);
  return table([['HASH', 'TENANT', 'QUOTA', 'SCOPES', 'CREATED', ''], ...rows]);
};

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ');
  return rows.map((row) => line(row).trimEnd()).join('\n');
}

const minPrefix = 8;

/** A key that happens to look like a hash is a key first. */
function revoke(name: string): Action {
  return async (store) => {
    const hash = hashKey(name);
    if (await store.revoke(hash)) return `revoked ${shortHash(hash)}`;
    const prefix = name.toLowerCase();
    const named =
      prefix.length < minPrefix ? [] : (await store.list()).filter((k) => k.keyHash.startsWith(prefix));
    const [found, ...others] = named;
    if (others.length > 0)
      throw new StartError(`${named.length} keys begin with ${prefix}: give more of the hash`);
    if (found === undefined || !(await store.revoke(found.keyHash)))
      throw new StartError('There is no such key');
    return `revoked ${shortHash(found.keyHash)}`;
  };
}
