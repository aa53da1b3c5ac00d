import type { Redis } from 'ioredis';
import { maxListpackBytes } from '../../../contracts/settings/redis-settings.js';
import { isCluster, mapRedisErrors, type RedisClient } from '../connection/client.js';

export async function collectRedisWarnings(client: RedisClient): Promise<string[]> {
  if (!isCluster(client)) return checkNodeSettings(client);
  // Waits for pending connections. Skips nodes that do not reply.
  const asked = await Promise.allSettled(client.nodes().map(checkNodeSettings));
  return [...new Set(asked.flatMap((found) => (found.status === 'fulfilled' ? found.value : [])))];
}

async function checkNodeSettings(node: Redis): Promise<string[]> {
  const [info, [, value]] = await Promise.all([
    node.info(),
    // CONFIG may be forbidden.
    (node.config('GET', 'hash-max-*-value') as Promise<string[]>).catch(() => []),
  ]);
  const policy = /^maxmemory_policy:(.*?)\r?$/m.exec(info)?.[1] ?? 'unknown';
  const risks: readonly (readonly [boolean, string])[] = [
    [
      Number(value) < maxListpackBytes,
      `hash-max-listpack-value ${value}: learners use a third more memory than necessary, event ids up to twice as much. Set it to ${maxListpackBytes}.`,
    ],
    [
      policy !== 'noeviction',
      `maxmemory-policy ${policy}: Redis evicts learner state when its memory is full. Set it to noeviction.`,
    ],
    [
      /^maxmemory:0\r?$/m.test(info),
      'no maxmemory: answers are accepted until the machine is out of memory. Set maxmemory.',
    ],
    [
      !/^aof_enabled:1/m.test(info),
      'no append-only file: a stop loses all answers since the last snapshot. Set appendonly to yes.',
    ],
  ];
  return risks.flatMap(([isRisk, text]) => (isRisk ? `Redis has ${text}` : []));
}

/** Answers must leave this share of `maxmemory` free: a completely full Redis cannot be drained. `min`, `max`: bytes. */
const memoryReserve = { share: 0.05, min: 8 * 2 ** 20, max: 256 * 2 ** 20 };

/** One entry per master. */
export async function fetchMemoryUsage(client: RedisClient): Promise<MemoryUsage[]> {
  const servers = isCluster(client) ? client.nodes('master') : [client];
  return (await Promise.all(servers.map((server) => server.info('memory')))).map(parseMemoryUsage);
}

type MemoryUsage = ReturnType<typeof parseMemoryUsage>;

/** Bytes; `limit` is 0 without `maxmemory`. */
export const parseMemoryUsage = (info: string) => ({
  used: parseNumber(info, /^used_memory:(\d+)/m),
  limit: parseNumber(info, /^maxmemory:(\d+)/m),
});

export const selectFullest = (all: readonly MemoryUsage[]): MemoryUsage =>
  all.reduce((first, second) => (computeUsedShare(second) > computeUsedShare(first) ? second : first));

const computeUsedShare = ({ used, limit }: MemoryUsage): number => used / (limit || Number.MAX_SAFE_INTEGER);

/** One full node is enough, because one node has the queues of all partitions. */
export const isMemoryFull = async (client: RedisClient): Promise<boolean> =>
  (await fetchMemoryUsage(client)).some(isNearlyFull);

/** False without `maxmemory`. */
export function isNearlyFull({ used, limit }: MemoryUsage): boolean {
  const free = Math.min(memoryReserve.max, Math.max(memoryReserve.min, memoryReserve.share * limit));
  return limit > 0 && used > limit - free;
}

const parseNumber = (info: string, pattern: RegExp): number => Number(pattern.exec(info)?.[1] ?? 0);

export async function fetchRedisVersion(client: RedisClient): Promise<string> {
  const [server = client] = isCluster(client) ? client.nodes('master') : [client];
  const info = await mapRedisErrors(server.info('server'));
  return /^redis_version:(.*?)\r?$/m.exec(info)?.[1] ?? 'unknown';
}
