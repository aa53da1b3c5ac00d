import type { WorkerSettings } from '../../src/contracts/tasks.js';
import { ApiError } from '../../src/errors.js';
import {
  connectRedis,
  connectTimeoutMs,
  type RedisClient,
  whenReady,
  whileRedisServes,
} from '../../src/store/redis/client.js';

type Target = Pick<WorkerSettings, 'redisUrl' | 'waitReplicas'>;

/**
 * The Redis connection of a worker thread; it lives as long as the thread.
 * @returns gives the connection once it can take commands. @throws ApiError UNAVAILABLE where it cannot in time
 */
export function workerRedis(target: Target): () => Promise<RedisClient> {
  const client = connect(target);
  return async () => {
    await whileRedisServes(whenReady(client, connectTimeoutMs));
    return client;
  };
}

/** Does something over a connection of its own: a fit speaks to Redis twice. */
export async function withRedis<Reply>(redisUrl: string, work: (client: RedisClient) => Promise<Reply>) {
  const client = connect({ redisUrl, waitReplicas: 0 });
  const ready = whileRedisServes(whenReady(client, connectTimeoutMs));
  return await tellRefusal(ready.then(() => work(client))).finally(() => client.disconnect());
}

function connect({ redisUrl, waitReplicas }: Target): RedisClient {
  const client = connectRedis(redisUrl, waitReplicas);
  // Commands report what they meet; without a listener the connection's own errors would be printed as well.
  return client.on('error', () => undefined);
}

/** An error's class does not survive the thread boundary, so one that callers are told of becomes plain values. */
export const tellRefusal = <Reply>(work: Promise<Reply>): Promise<Reply | { readonly unavailable: string }> =>
  work.catch((error: unknown) => {
    if (error instanceof ApiError) return { unavailable: error.message };
    throw error;
  });
