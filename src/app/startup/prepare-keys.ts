import type { ApiKeySetting, Config } from '../../config.js';
import { allScopes, defaultScopes, type Grant, hashKey, toKeyId } from '../../contracts/access/access.js';
import {
  createDevelopmentKey,
  demoKeyFile,
  developmentKeyFile,
  readDevelopmentKey,
  removeDemoFiles,
} from '../../embedded/data-dir.js';
import { isLoopbackHost } from '../../http/gate.js';
import type { Logger } from '../../logger.js';
import { createKeyStore, type KeyStore } from '../../store/access/api-keys.js';
import type { RedisClient } from '../../store/redis/connection/client.js';

export interface KeyMessage {
  readonly text: string | null;
  readonly developmentKey: string | null;
}

export const noKeyMessage: KeyMessage = { text: null, developmentKey: null };

/**
 * Adds the configured keys, except revoked ones. Creates a development key if none is active and HOST is a
 * loopback address.
 * @param redis with its keys: an empty Redis has lost the revocations
 */
export async function prepareKeys(config: Config, redis: RedisClient, logger: Logger): Promise<KeyMessage> {
  let unreadable = 0;
  const store = createKeyStore(redis, (error) => {
    unreadable += 1;
    logger.error({ err: error }, 'cannot read a stored API key; it is rejected');
  });
  for (const setting of config.apiKeys) await addConfiguredKey(store, setting, logger);
  const file = developmentKeyFile(config.dataDir);
  const savedKey = readDevelopmentKey(file);
  const keys = await store.all();
  const storedKey = savedKey === null ? undefined : keys.find(({ keyHash }) => keyHash === hashKey(savedKey));
  if (savedKey !== null && storedKey?.revokedAt === null) {
    // The key may also be in API_KEYS, which stores it without the flag.
    if (!storedKey.development) await store.save(createDevelopmentGrant(savedKey, defaultTenant));
    return config.apiKeys.length === 0 ? createKeyMessage(savedKey, config) : noKeyMessage;
  }
  // An unreadable key may be active.
  const lacksActiveKey = unreadable === 0 && keys.every((key) => key.revokedAt !== null || isDemoKey(key));
  const needsDevelopmentKey = lacksActiveKey && isLoopbackHost(config.host);
  if (storedKey !== undefined) {
    const nextStep = needsDevelopmentKey ? 'a new development key replaces it' : 'delete its file';
    logger.warn({ file }, `the development key is revoked; ${nextStep}`);
  }
  const advice = 'no API key exists; create one with npm run keys -- create';
  if (!needsDevelopmentKey) return lacksActiveKey ? { ...noKeyMessage, text: advice } : noKeyMessage;
  const key = savedKey === null || storedKey !== undefined ? createDevelopmentKey(file, savedKey) : savedKey;
  await store.save(createDevelopmentGrant(key, defaultTenant));
  return createKeyMessage(key, config);
}

async function addConfiguredKey(store: KeyStore, setting: ApiKeySetting, logger: Logger): Promise<void> {
  const { key, tenant, requestsPerMinute } = setting;
  const keyHash = hashKey(key);
  const grant = { keyHash, tenant, requestsPerMinute, scopes: defaultScopes, development: false };
  const done = await store.save(grant);
  if (done === 'revoked') {
    logger.warn(
      { tenant, hash: toKeyId(keyHash) },
      'a configured key is revoked and stays revoked; remove it from API_KEYS and create another key',
    );
  }
  const stored = await store.findActive(keyHash);
  if (stored !== null && stored.tenant !== tenant) {
    logger.warn(
      { tenant: stored.tenant, wanted: tenant },
      'a configured key already belongs to another tenant and is not moved; use another key',
    );
  }
}

/** @returns null if HOST is not a loopback address */
export async function prepareDemoKey({ dataDir, host }: Config, redis: RedisClient, tenant: string) {
  if (!isLoopbackHost(host)) return null;
  const store = createKeyStore(redis);
  const file = selectKeyFile(dataDir, tenant);
  const savedKey = readDevelopmentKey(file);
  if (savedKey !== null && (await store.findActive(hashKey(savedKey))) !== null) return savedKey;
  const key = createDevelopmentKey(file, savedKey);
  await store.save(createDevelopmentGrant(key, tenant));
  return key;
}

/** The default tenant's key stays, because startup uses it. */
export async function removeDemoKey({ dataDir }: Config, redis: RedisClient, tenant: string): Promise<void> {
  if (tenant === defaultTenant) return;
  const savedKey = readDevelopmentKey(demoKeyFile(dataDir, tenant));
  if (savedKey !== null) await createKeyStore(redis).revoke(hashKey(savedKey));
  removeDemoFiles(dataDir, tenant);
}

const defaultTenant = 'default';
const selectKeyFile = (dataDir: string, tenant: string): string =>
  tenant === defaultTenant ? developmentKeyFile(dataDir) : demoKeyFile(dataDir, tenant);
/** Keys of demo tenants do not count as keys of the service. */
const isDemoKey = ({ development, tenant }: Grant): boolean => development && tenant !== defaultTenant;

const createDevelopmentGrant = (key: string, tenant: string): Grant => ({
  keyHash: hashKey(key),
  tenant,
  requestsPerMinute: null,
  scopes: allScopes,
  development: true,
});

const createKeyMessage = (developmentKey: string, { host }: Config): KeyMessage => ({
  developmentKey,
  text: isLoopbackHost(host)
    ? `development API key: ${developmentKey}`
    : `development API key, for this machine only: ${developmentKey}; for other machines: npm run keys -- create`,
});
