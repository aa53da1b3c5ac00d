/** What is at risk with the way a Redis is set up. */
import type { Redis } from 'ioredis';
import { listpackBytes } from '../../contracts/redis.js';
import { isCluster, type RedisClient } from './client.js';

/** Of this Redis, or any node of the Cluster; empty where nothing is at risk. */
export async function redisWarnings(client: RedisClient): Promise<string[]> {
  if (!isCluster(client)) return warningsOf(client);
  // A connection that is still being made is waited for; a node that cannot be asked has no say.
  const asked = await Promise.allSettled(client.nodes().map(warningsOf));
  return [...new Set(asked.flatMap((found) => (found.status === 'fulfilled' ? found.value : [])))];
}

async function warningsOf(node: Redis): Promise<string[]> {
  const [info, config] = await Promise.allSettled([node.info(), node.config('GET', 'hash-max-*-value')]);
  if (info.status === 'rejected') throw info.reason;
  // CONFIG may not be allowed.
  const [, value] = config.status === 'fulfilled' ? (config.value as string[]) : [];
  const policy = /^maxmemory_policy:(.*?)\r?$/m.exec(info.value)?.[1] ?? 'unknown';
  const risks: readonly (readonly [boolean, string])[] = [
    [
      Number(value) < listpackBytes,
      `hash-max-listpack-value ${value}: a learner takes a third more memory than it has to, event ids up to twice as much. Set ${listpackBytes}`,
    ],
    [
      policy !== 'noeviction',
      `maxmemory-policy ${policy}: when its memory is full it drops learners' states. Set noeviction`,
    ],
    [
      /^maxmemory:0\r?$/m.test(info.value),
      'no maxmemory: nothing refuses answers before the machine is out of memory. Set maxmemory',
    ],
    [
      !/^aof_enabled:1/m.test(info.value),
      'no append-only file: answers since its last snapshot are lost when it stops. Set appendonly yes',
    ],
  ];
  return risks.flatMap(([isRisk, text]) => (isRisk ? `Redis has ${text}` : []));
}
