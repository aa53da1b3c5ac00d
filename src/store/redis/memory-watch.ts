/**
 * Whether Redis has room for more answers. What moves them on (jobs, their locks, what a trim writes to the append-only
 * file) needs memory of Redis too: one that is filled to its last byte could not be emptied any more.
 */
import { isCluster, type RedisClient } from './client.js';

/** Kept free: a twentieth of `maxmemory`, within these bounds. Between two looks far less than that arrives. */
const reserve = { share: 0.05, min: 8 * 2 ** 20, max: 256 * 2 ** 20 };

/** Of a Cluster any node counts: the queues are on one of them, and all partitions go to ClickHouse through those. */
export function createMemoryWatch(redis: () => Promise<RedisClient>) {
  let full = false;
  return {
    /** As of the last look; false where Redis has no `maxmemory`, or could not be asked yet. */
    isFull: () => full,
    /** Looks once. @throws where Redis cannot be asked; what was known stays */
    look: async (): Promise<void> => {
      const client = await redis();
      const servers = isCluster(client) ? client.nodes('master') : [client];
      const infos = await Promise.all(servers.map((server) => server.info('memory')));
      full = infos.some(isNearlyFull);
    },
  };
}

/** @param info reply of INFO memory */
export function isNearlyFull(info: string): boolean {
  const used = numberIn(info, /^used_memory:(\d+)/m);
  const most = numberIn(info, /^maxmemory:(\d+)/m);
  const free = Math.min(reserve.max, Math.max(reserve.min, reserve.share * most));
  return most > 0 && used > most - free;
}

const numberIn = (info: string, pattern: RegExp): number => Number(pattern.exec(info)?.[1] ?? 0);
