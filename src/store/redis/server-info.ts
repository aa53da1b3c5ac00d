import type { Redis } from 'ioredis';
import { maxListpackBytes } from '../../contracts/redis-settings.js';
import { isCluster, type RedisClient, whileRedisServes } from './client.js';

export async function redisWarnings(client: RedisClient): Promise<string[]> {
  if (!isCluster(client)) return warningsOf(client);
  // Waits for pending connections. Skips nodes that do not reply.
  const asked = await Promise.allSettled(client.nodes().map(warningsOf));
  return [...new Set(asked.flatMap((found) => (found.status === 'fulfilled' ? found.value : [])))];
}

async function warningsOf(node: Redis): Promise<string[]> {
  const [info, [, value]] = await Promise.all([
    node.info(),
    // CONFIG may be forbidden.
    (node.config('GET', 'hash-max-*-value') as Promise<string[]>).catch(() => []),
  ]);
  const policy = /^maxmemory_policy:(.*?)\r?$/m.exec(info)?.[1] ?? 'unknown';
  const risks: readonly (readonly [boolean, string])[] = [
    [
      Number(value) < maxListpackBytes,
      `hash-max-listpack-value ${value}: a learner takes a third more memory than it has to, event ids up to twice as much. Set ${maxListpackBytes}`,
    ],
    [
      policy !== 'noeviction',
      `maxmemory-policy ${policy}: when its memory is full it drops learners' states. Set noeviction`,
    ],
    [
      /^maxmemory:0\r?$/m.test(info),
      'no maxmemory: nothing refuses answers before the machine is out of memory. Set maxmemory',
    ],
    [
      !/^aof_enabled:1/m.test(info),
      'no append-only file: answers since its last snapshot are lost when it stops. Set appendonly yes',
    ],
  ];
  return risks.flatMap(([isRisk, text]) => (isRisk ? `Redis has ${text}` : []));
}

/** Answers must leave this share of `maxmemory` free: a completely full Redis cannot be drained. */
const reserve = { share: 0.05, min: 8 * 2 ** 20, max: 256 * 2 ** 20 };

/** One entry per master. */
export async function memoryOf(client: RedisClient): Promise<Memory[]> {
  const servers = isCluster(client) ? client.nodes('master') : [client];
  return (await Promise.all(servers.map((server) => server.info('memory')))).map(memoryIn);
}

type Memory = ReturnType<typeof memoryIn>;

/** Bytes; `limit` is 0 without `maxmemory`. */
export const memoryIn = (info: string) => ({
  used: numberIn(info, /^used_memory:(\d+)/m),
  most: numberIn(info, /^maxmemory:(\d+)/m),
});

export const nearestToFull = (all: readonly Memory[]): Memory =>
  all.reduce((first, second) => (shareOf(second) > shareOf(first) ? second : first));

const shareOf = ({ used, most }: Memory): number => used / (most || Number.MAX_SAFE_INTEGER);

/** One full node is enough, because one node has the queues of all partitions. */
export const isMemoryFull = async (client: RedisClient): Promise<boolean> =>
  (await memoryOf(client)).some(isNearlyFull);

/** False without `maxmemory`. */
export function isNearlyFull({ used, most }: Memory): boolean {
  const free = Math.min(reserve.max, Math.max(reserve.min, reserve.share * most));
  return most > 0 && used > most - free;
}

const numberIn = (info: string, pattern: RegExp): number => Number(pattern.exec(info)?.[1] ?? 0);

export async function redisVersion(client: RedisClient): Promise<string> {
  const [server = client] = isCluster(client) ? client.nodes('master') : [client];
  const info = await whileRedisServes(server.info('server'));
  return /^redis_version:(.*?)\r?$/m.exec(info)?.[1] ?? 'unknown';
}
