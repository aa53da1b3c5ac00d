/** What worker threads share: their connection to Redis, errors as plain values. */
import type { WorkerSettings } from '../../src/contracts/tasks.js';
import { ApiError } from '../../src/errors.js';
import {
  connectRedis,
  connectTimeoutMs,
  type RedisClient,
  whenReady,
  whileRedisServes,
} from '../../src/store/redis/client.js';

/** Connects a thread to Redis. The result waits until it takes commands. @throws ApiError UNAVAILABLE */
export function workerRedis({ redisUrl, waitReplicas }: Pick<WorkerSettings, 'redisUrl' | 'waitReplicas'>) {
  const client = connectRedis(redisUrl, waitReplicas);
  return async (): Promise<RedisClient> => {
    await whileRedisServes(whenReady(client, connectTimeoutMs));
    return client;
  };
}

/** Does something over a connection of its own: a fit speaks to Redis twice. */
export async function withRedis<Reply>(redisUrl: string, work: (client: RedisClient) => Promise<Reply>) {
  const client = connectRedis(redisUrl);
  const ready = whileRedisServes(whenReady(client, connectTimeoutMs));
  return refusalAsValue(ready.then(() => work(client))).finally(() => client.disconnect());
}

/** An error's class does not survive the thread boundary, so one that callers are to see becomes plain values. */
export const refusalAsValue = <Reply>(work: Promise<Reply>): Promise<Reply | { unavailable: string }> =>
  work.catch((error: unknown) => {
    if (error instanceof ApiError) return { unavailable: error.message };
    throw error;
  });
