import type { WorkerSettings } from '../src/contracts/tasks.js';
import { connectRedis, type RedisClient, whenReady, whileRedisServes } from '../src/store/client.js';

const connectTimeoutMs = 5000;

/**
 * The Redis connection of a worker thread; it lives as long as the thread.
 * @returns gives the connection once it can take commands. @throws ApiError UNAVAILABLE where it cannot in time
 */
export function workerRedis(
  settings: Pick<WorkerSettings, 'redisUrl' | 'waitReplicas'>,
): () => Promise<RedisClient> {
  const client = connectRedis(settings.redisUrl, settings.waitReplicas);
  // Commands report what they meet; without a listener the connection's own errors would be printed as well.
  client.on('error', () => undefined);
  return async () => {
    await whileRedisServes(whenReady(client, connectTimeoutMs));
    return client;
  };
}
