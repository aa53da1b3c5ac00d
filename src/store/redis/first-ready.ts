/** The first connection of a process: where there is none, it is told why. */
import { setTimeout as sleep } from 'node:timers/promises';
import { troubleOf } from '../../connection-trouble.js';
import { redisAddress } from '../../contracts/redis-address.js';
import { type RedisClient, whenReady } from './client.js';
import { tlsMismatch } from './redis-trouble.js';

/** When it is looked whether one side speaks TLS and the other does not. */
const mismatchAfterMs = 1000;

/**
 * `whenReady`, for a process that starts: also tells where TLS is spoken on one side only.
 * @param url that of the client. @throws Error (`unreachable` says why)
 */
export async function firstReady(client: RedisClient, url: string, timeoutMs: number): Promise<void> {
  const [node] = redisAddress(url).nodes;
  const over = new AbortController();
  const ready = whenReady(client, timeoutMs);
  try {
    await Promise.race([ready, refuseMismatch(node as string, over.signal).then(() => ready)]);
  } finally {
    over.abort();
  }
}

async function refuseMismatch(url: string, signal: AbortSignal): Promise<void> {
  await sleep(mismatchAfterMs, undefined, { signal });
  const mismatch = await tlsMismatch(url);
  if (mismatch !== null) throw new Error(mismatch);
}

/** Where Redis is and why it cannot be reached, without the login. */
export function unreachable(url: string, error: unknown): string {
  const hosts = redisAddress(url).nodes.map((node) => new URL(node).host);
  return `Redis cannot be reached at ${hosts.join()}: ${troubleOf(error).text}`;
}
