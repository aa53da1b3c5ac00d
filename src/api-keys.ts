/** The keys that a start brings with it. */
import type { Config } from './config.js';
import { makeDevelopmentKey, readDevelopmentKey } from './embedded/development-key.js';
import { hashKey } from './http/auth.js';
import { allScopes } from './services/ports.js';
import { createKeyStore } from './store/api-keys.js';
import type { RedisClient } from './store/client.js';
import type { Logger } from './telemetry.js';

/**
 * Adds the configured keys. Where there is no key at all, a development key without limit is made; but not over a Redis
 * that came back empty, whose keys wait for a rebuild.
 * @returns the development key, if it is in store and no keys are configured
 */
export async function prepareKeys(
  config: Config,
  redis: RedisClient,
  logger: Logger,
  blocked: boolean,
): Promise<string | null> {
  let unreadable = 0;
  const store = createKeyStore(redis, (error) => {
    unreadable += 1;
    logger.error({ err: error }, 'an API key in store cannot be read: it is refused until it can be');
  });
  for (const { key, tenant, requestsPerMinute } of config.apiKeys) {
    const keyHash = hashKey(key);
    const stored = await store.find(keyHash);
    await store.put({ keyHash, tenant, requestsPerMinute, scopes: allScopes });
    if (stored !== null && stored.tenant !== tenant) {
      logger.warn(
        { tenant: stored.tenant, wanted: tenant },
        'a configured key is in store for another tenant and stays there',
      );
    }
  }
  if (config.apiKeys.length > 0) return null;
  const made = readDevelopmentKey(config.dataDir);
  if (made !== null && (await store.find(hashKey(made))) !== null) return made;
  // One that cannot be read may be in force: then nobody is let in by a key that nobody asked for.
  if (blocked || (await store.list()).length + unreadable > 0) return null;
  const key = made ?? makeDevelopmentKey(config.dataDir);
  await store.put({ keyHash: hashKey(key), tenant: 'default', requestsPerMinute: null, scopes: allScopes });
  return key;
}
