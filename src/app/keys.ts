/** The keys that a start brings with it. */
import type { ApiKeySetting, Config } from '../config.js';
import { allScopes, defaultScopes, type Grant } from '../contracts/access.js';
import { developmentKeyFile, makeDevelopmentKey, readDevelopmentKey } from '../embedded/development-key.js';
import { hashKey, shortHash } from '../http/auth.js';
import { isLoopbackHost } from '../http/loopback.js';
import type { KeptKey } from '../services/rebuild/deployment-facts.js';
import { createKeyStore, type KeyStore } from '../store/access/api-keys.js';
import type { RedisClient } from '../store/redis/client.js';
import type { Logger } from '../telemetry.js';

/**
 * Adds the configured keys. Without any live key in store a development key is made, where nobody but this machine can
 * reach it. What was revoked stays revoked.
 *
 * @param redis with its keys: one that came back empty cannot say which of them were revoked
 * @returns what the user is told of keys, or null
 */
export async function prepareKeys(
  config: Config,
  redis: RedisClient,
  logger: Logger,
): Promise<string | null> {
  let unreadable = 0;
  const store = createKeyStore(redis, (error) => {
    unreadable += 1;
    logger.error({ err: error }, 'an API key in store cannot be read: it is refused until it can be');
  });
  for (const setting of config.apiKeys) await addConfigured(store, setting, logger);
  const made = readDevelopmentKey(config.dataDir);
  const keys = await store.all();
  const known = made === null ? undefined : keys.find(({ keyHash }) => keyHash === hashKey(made));
  if (made !== null && known?.revokedAt === null) {
    if (!known.development) await store.put(developmentGrant(made));
    return config.apiKeys.length === 0 ? noteOf(made, config) : null;
  }
  return freshKey(config, store, { made, isRevoked: known !== undefined, keys, unreadable }, logger);
}

async function addConfigured(
  store: KeyStore,
  { key, tenant, requestsPerMinute }: ApiKeySetting,
  logger: Logger,
): Promise<void> {
  const keyHash = hashKey(key);
  const done = await store.put({
    keyHash,
    tenant,
    requestsPerMinute,
    scopes: defaultScopes,
    development: false,
  });
  if (done === 'revoked') {
    logger.warn(
      { tenant, hash: shortHash(keyHash) },
      'a configured key was revoked and stays so: take it out of API_KEYS, and make another one',
    );
  }
  const stored = await store.find(keyHash);
  if (stored !== null && stored.tenant !== tenant) {
    logger.warn(
      { tenant: stored.tenant, wanted: tenant },
      'a configured key is in store for another tenant and stays there',
    );
  }
}

interface Found {
  /** The key in the file; null without one. */
  readonly made: string | null;
  readonly isRevoked: boolean;
  readonly keys: readonly KeptKey[];
  /** One that cannot be read may be in force: then nobody is let in by a key that nobody asked for. */
  readonly unreadable: number;
}

async function freshKey(
  config: Config,
  store: KeyStore,
  { made, isRevoked, keys, unreadable }: Found,
  logger: Logger,
): Promise<string | null> {
  const isLast = unreadable === 0 && !keys.some(({ revokedAt }) => revokedAt === null);
  const isWanted = isLast && isLoopbackHost(config.host);
  if (isRevoked) {
    const then = isWanted ? 'a fresh one takes its place' : 'delete its file';
    logger.warn(
      { file: developmentKeyFile(config.dataDir) },
      `the development key was revoked and stays so: ${then}`,
    );
  }
  if (!isWanted) return isLast ? 'no API key is in store; make one: npm run keys -- create' : null;
  const key = isRevoked || made === null ? makeDevelopmentKey(config.dataDir, made) : made;
  await store.put(developmentGrant(key));
  return noteOf(key, config);
}

const developmentGrant = (key: string): Grant => ({
  keyHash: hashKey(key),
  tenant: 'default',
  requestsPerMinute: null,
  scopes: allScopes,
  development: true,
});

/** Who listens for others has to know that the key is not for them. */
const noteOf = (key: string, { host }: Config): string =>
  isLoopbackHost(host)
    ? `development API key: ${key}`
    : `development API key, on this machine only: ${key}; for others: npm run keys -- create`;
