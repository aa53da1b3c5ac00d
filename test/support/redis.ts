import { connectRedis, type RedisClient, whenReady } from '../../src/store/client.js';

/** A connection that ends with the test, errors of a stopped Redis unheard. */
export async function redisOf(t: { after(fn: () => unknown): void }, url: string): Promise<RedisClient> {
  const client = connectRedis(url);
  client.on('error', () => undefined);
  t.after(() => client.disconnect());
  await whenReady(client, 10_000);
  return client;
}
