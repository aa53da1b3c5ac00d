/** The API keys at a start: those of the configuration, and the development key. */
import type { ApiKeySetting, Config } from '../config.js';
import { allScopes, defaultScopes, type Grant } from '../contracts/access.js';
import { developmentKeyFile, makeDevelopmentKey, readDevelopmentKey } from '../embedded/data-dir.js';
import { hashKey, shortHash } from '../http/auth.js';
import { isLoopbackHost } from '../http/gate.js';
import { createKeyStore, type KeyStore } from '../store/access/api-keys.js';
import type { RedisClient } from '../store/redis/client.js';
import type { Logger } from '../telemetry.js';

/**
 * Adds the configured keys. Without any live key in store a development key is made, where nobody but this machine can
 * reach it. What was revoked stays revoked.
 *
 * @param redis with its keys: one that came back empty cannot say which of them were revoked
 * @returns a line about the development key for the user, or null
 */
export async function prepareKeys(config: Config, redis: RedisClient, logger: Logger) {
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
    // Somebody may have put it into API_KEYS, too.
    if (!known.development) await store.put(developmentGrant(made));
    return config.apiKeys.length === 0 ? noteOf(made, config) : null;
  }
  // A key that cannot be read may be in force: then nobody is let in by a key that nobody asked for.
  const isLast = unreadable === 0 && keys.every(({ revokedAt }) => revokedAt !== null);
  const isWanted = isLast && isLoopbackHost(config.host);
  if (known !== undefined) {
    const then = isWanted ? 'a fresh one takes its place' : 'delete its file';
    const file = developmentKeyFile(config.dataDir);
    logger.warn({ file }, `the development key was revoked and stays so: ${then}`);
  }
  if (!isWanted) return isLast ? 'no API key is in store; make one: npm run keys -- create' : null;
  const key = made === null || known !== undefined ? makeDevelopmentKey(config.dataDir, made) : made;
  await store.put(developmentGrant(key));
  return noteOf(key, config);
}

async function addConfigured(store: KeyStore, setting: ApiKeySetting, logger: Logger): Promise<void> {
  const { key, tenant, requestsPerMinute } = setting;
  const keyHash = hashKey(key);
  const grant = { keyHash, tenant, requestsPerMinute, scopes: defaultScopes, development: false };
  const done = await store.put(grant);
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
