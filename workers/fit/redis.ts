import { ApiError } from '../../src/errors.js';
import { connectRedis, type RedisClient, whenReady, whileRedisServes } from '../../src/store/client.js';

const connectTimeoutMs = 5000;

/**
 * Does something over a connection of its own: a fit speaks to Redis twice. An error's class does not survive the
 * thread boundary, so one that callers are told of becomes plain values.
 */
export async function withRedis<Reply>(
  redisUrl: string,
  work: (client: RedisClient) => Promise<Reply>,
): Promise<Reply | { readonly unavailable: string }> {
  const client = connectRedis(redisUrl);
  // Commands report what they meet; without a listener the connection's own errors would be printed as well.
  client.on('error', () => undefined);
  try {
    await whileRedisServes(whenReady(client, connectTimeoutMs));
    return await work(client);
  } catch (error) {
    if (error instanceof ApiError) return { unavailable: error.message };
    throw error;
  } finally {
    client.disconnect();
  }
}
