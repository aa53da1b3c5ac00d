import type { ApiKeySetting, Config } from '../config.js';
import { allScopes, defaultScopes, type Grant, hashKey, toKeyId } from '../contracts/access.js';
import {
  createDevelopmentKey,
  demoKeyFile,
  developmentKeyFile,
  readDevelopmentKey,
  removeDemoFiles,
} from '../embedded/data-dir.js';
import { isLoopbackHost } from '../http/gate.js';
import type { Logger } from '../logger.js';
import { createKeyStore, type KeyStore } from '../store/access/api-keys.js';
import type { RedisClient } from '../store/redis/client.js';

export interface KeyNote {
  readonly text: string | null;
  readonly developmentKey: string | null;
}

export const noKeyNote: KeyNote = { text: null, developmentKey: null };

/**
 * Adds the configured keys, except revoked ones. Creates a development key if none is active and HOST is a
 * loopback address.
 * @param redis with its keys: an empty Redis has lost the revocations
 */
export async function prepareKeys(config: Config, redis: RedisClient, logger: Logger): Promise<KeyNote> {
  let unreadable = 0;
  const store = createKeyStore(redis, (error) => {
    unreadable += 1;
    logger.error({ err: error }, 'an API key in store cannot be read: it is refused until it can be');
  });
  for (const setting of config.apiKeys) await addConfigured(store, setting, logger);
  const file = developmentKeyFile(config.dataDir);
  const made = readDevelopmentKey(file);
  const keys = await store.all();
  const known = made === null ? undefined : keys.find(({ keyHash }) => keyHash === hashKey(made));
  if (made !== null && known?.revokedAt === null) {
    // The key may also be in API_KEYS, which stores it without the flag.
    if (!known.development) await store.save(developmentGrant(made, defaultTenant));
    return config.apiKeys.length === 0 ? noteOf(made, config) : noKeyNote;
  }
  // An unreadable key may be active.
  const isLast = unreadable === 0 && keys.every((key) => key.revokedAt !== null || isOfDemo(key));
  const isWanted = isLast && isLoopbackHost(config.host);
  if (known !== undefined) {
    const then = isWanted ? 'a fresh one takes its place' : 'delete its file';
    logger.warn({ file }, `the development key was revoked and stays so: ${then}`);
  }
  const advice = 'no API key is in store; make one: npm run keys -- create';
  if (!isWanted) return isLast ? { ...noKeyNote, text: advice } : noKeyNote;
  const key = made === null || known !== undefined ? createDevelopmentKey(file, made) : made;
  await store.save(developmentGrant(key, defaultTenant));
  return noteOf(key, config);
}

async function addConfigured(store: KeyStore, setting: ApiKeySetting, logger: Logger): Promise<void> {
  const { key, tenant, requestsPerMinute } = setting;
  const keyHash = hashKey(key);
  const grant = { keyHash, tenant, requestsPerMinute, scopes: defaultScopes, development: false };
  const done = await store.save(grant);
  if (done === 'revoked') {
    logger.warn(
      { tenant, hash: toKeyId(keyHash) },
      'a configured key was revoked and stays so: take it out of API_KEYS, and make another one',
    );
  }
  const stored = await store.findActive(keyHash);
  if (stored !== null && stored.tenant !== tenant) {
    logger.warn(
      { tenant: stored.tenant, wanted: tenant },
      'a configured key is in store for another tenant and stays there',
    );
  }
}

/** @returns null if HOST is not a loopback address */
export async function prepareDemoKey({ dataDir, host }: Config, redis: RedisClient, tenant: string) {
  if (!isLoopbackHost(host)) return null;
  const store = createKeyStore(redis);
  const file = keyFile(dataDir, tenant);
  const made = readDevelopmentKey(file);
  if (made !== null && (await store.findActive(hashKey(made))) !== null) return made;
  const key = createDevelopmentKey(file, made);
  await store.save(developmentGrant(key, tenant));
  return key;
}

/** The default tenant's key stays, because startup uses it. */
export async function removeDemoKey({ dataDir }: Config, redis: RedisClient, tenant: string): Promise<void> {
  if (tenant === defaultTenant) return;
  const made = readDevelopmentKey(demoKeyFile(dataDir, tenant));
  if (made !== null) await createKeyStore(redis).revoke(hashKey(made));
  removeDemoFiles(dataDir, tenant);
}

const defaultTenant = 'default';
const keyFile = (dataDir: string, tenant: string): string =>
  tenant === defaultTenant ? developmentKeyFile(dataDir) : demoKeyFile(dataDir, tenant);
/** Keys of demo tenants do not count as keys of the service. */
const isOfDemo = ({ development, tenant }: Grant): boolean => development && tenant !== defaultTenant;

const developmentGrant = (key: string, tenant: string): Grant => ({
  keyHash: hashKey(key),
  tenant,
  requestsPerMinute: null,
  scopes: allScopes,
  development: true,
});

const noteOf = (developmentKey: string, { host }: Config): KeyNote => ({
  developmentKey,
  text: isLoopbackHost(host)
    ? `development API key: ${developmentKey}`
    : `development API key, on this machine only: ${developmentKey}; for others: npm run keys -- create`,
});
