import { createServedModels, type ServedModels } from '../../src/store/catalogue/catalogue-cache.js';
import { createModelCache } from '../../src/store/models/model-cache.js';
import type { RedisClient } from '../../src/store/redis/client.js';
import { createLogger } from '../../src/telemetry.js';

/**
 * The models in force as a worker thread serves with them, each with its catalogue; it watches them as long as the
 * thread lives.
 *
 * @param name of the thread in the log
 */
export function createWorkerModels(redis: () => Promise<RedisClient>, name: string): ServedModels {
  const logger = createLogger('info', name);
  const models = createModelCache({
    redis,
    onUnreadable: (error, tenant, version) =>
      logger.error({ err: error, tenant, version }, 'a model cannot be read: the one before stays in force'),
  });
  return createServedModels({
    models,
    redis,
    onUnreadable: (error, tenant, mark) =>
      logger.error({ err: error, tenant, mark }, 'a catalogue cannot be read: its tenant is refused'),
  });
}
