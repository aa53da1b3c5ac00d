/**
 * Whether Redis has room for more answers. What moves them on (jobs, their locks, what a trim writes to the append-only
 * file) needs memory of Redis too: one that is filled to its last byte could not be emptied any more.
 */
import { isCluster, type RedisClient } from './client.js';

export interface MemoryWatch {
  /** As of the last look; false where Redis has no `maxmemory`, or could not be asked yet. */
  isFull(): boolean;
  /** Looks once. @throws where Redis cannot be asked; what was known stays */
  look(): Promise<void>;
}

/** Kept free: a twentieth of `maxmemory`, within these bounds. Between two looks far less than that arrives. */
const reserve = { share: 0.05, least: 8 * 2 ** 20, most: 256 * 2 ** 20 };

/** Of a Cluster any node counts: the queues are on one of them, and all partitions go to ClickHouse through those. */
export function createMemoryWatch(redis: () => Promise<RedisClient>): MemoryWatch {
  let full = false;
  return {
    isFull: () => full,
    look: async () => {
      const client = await redis();
      const servers = isCluster(client) ? client.nodes('master') : [client];
      const told = await Promise.all(servers.map((server) => server.info('memory')));
      full = told.some(isNearlyFull);
    },
  };
}

/** @param info what INFO memory tells */
export function isNearlyFull(info: string): boolean {
  const used = numberIn(info, /^used_memory:(\d+)/m);
  const most = numberIn(info, /^maxmemory:(\d+)/m);
  const free = Math.min(reserve.most, Math.max(reserve.least, reserve.share * most));
  return most > 0 && used > most - free;
}

const numberIn = (info: string, pattern: RegExp): number => Number(pattern.exec(info)?.[1] ?? 0);
