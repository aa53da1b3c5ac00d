/** The first connection of a process: where there is none, it is told why. */
import { troubleOf } from '../connection-trouble.js';
import { redisAddress } from '../contracts/redis-address.js';
import { type RedisClient, whenReady } from './client.js';
import { tlsMismatch } from './redis-trouble.js';

/** When it is looked whether one side speaks TLS and the other does not. */
const mismatchAfterMs = 1000;

/**
 * `whenReady`, for a process that starts: also tells where TLS is spoken on one side only.
 * @param url that of the client. @throws Error (`unreachable` says why)
 */
export async function firstReady(client: RedisClient, url: string, timeoutMs: number): Promise<void> {
  const { nodes } = redisAddress(url);
  const over = new AbortController();
  try {
    await Promise.race([whenReady(client, timeoutMs), refuseMismatch(nodes[0] as string, over.signal)]);
  } finally {
    over.abort();
  }
}

/** Where Redis is and why it cannot be reached, without the login. */
export function unreachable(url: string, error: unknown): string {
  const hosts = redisAddress(url).nodes.map((node) => new URL(node).host);
  return `Redis cannot be reached at ${hosts.join()}: ${troubleOf(error).text}`;
}

/** Rejects where there is a mismatch, and never resolves. */
function refuseMismatch(url: string, signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const look = async (): Promise<void> => {
      const mismatch = await tlsMismatch(url);
      if (mismatch !== null) reject(new Error(mismatch));
    };
    const timer = setTimeout(look, mismatchAfterMs);
    signal.addEventListener('abort', () => clearTimeout(timer));
  });
}
