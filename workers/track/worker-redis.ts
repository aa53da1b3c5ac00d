import type { WorkerSettings } from '../../src/contracts/settings/worker-settings.js';
import { ApiError } from '../../src/errors.js';
import {
  connectRedis,
  connectTimeoutMs,
  mapRedisErrors,
  type RedisClient,
  waitUntilReady,
} from '../../src/store/redis/connection/client.js';

/** The returned function waits until Redis accepts commands. @throws ApiError UNAVAILABLE */
export function connectWorkerRedis({
  redisUrl,
  waitReplicas,
}: Pick<WorkerSettings, 'redisUrl' | 'waitReplicas'>) {
  const client = connectRedis(redisUrl, waitReplicas);
  return async (): Promise<RedisClient> => {
    await mapRedisErrors(waitUntilReady(client, connectTimeoutMs));
    return client;
  };
}

export async function withRedis<Reply>(redisUrl: string, work: (client: RedisClient) => Promise<Reply>) {
  const client = connectRedis(redisUrl);
  const ready = mapRedisErrors(waitUntilReady(client, connectTimeoutMs));
  return convertApiError(ready.then(() => work(client))).finally(() => client.disconnect());
}

/** Returns an ApiError as a plain value: errors lose their class at the thread boundary. */
export const convertApiError = <Reply>(promise: Promise<Reply>): Promise<Reply | { unavailable: string }> =>
  promise.catch((error: unknown) => {
    if (error instanceof ApiError) return { unavailable: error.message };
    throw error;
  });
