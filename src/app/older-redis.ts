/** Logs where Redis is older than ClickHouse, as a backup of another time or a failover would make it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LastRow } from '../contracts/outbox-ids.js';
import type { Closers } from '../lifecycle.js';
import { lastRows } from '../store/outbox/last-rows.js';
import type { Logger } from '../telemetry.js';
import { countYounger } from '../warehouse/reads/younger-rows.js';
import type { Engine } from './engine.js';

const retryMs = 5000;
/** Looks that wait for ClickHouse. */
const maxLooks = 10;
const olderRedis = 'Redis is older than ClickHouse: it does not know of answers that are stored';

/**
 * Looks at Redis now and at each new connection to it, before this process adds rows over it, and asks ClickHouse until
 * it answers: rows that are added meanwhile are younger than the look and are not counted.
 *
 * @returns when Redis was looked at: what asks ClickHouse the first time, to be called when its tables are there
 */
export async function watchForOlderRedis(
  { redis, clickhouse, partitions }: Engine,
  logger: Logger,
  closers: Closers,
): Promise<() => void> {
  const looks: (readonly LastRow[])[] = [];
  let isAsking = true;

  async function look(): Promise<void> {
    try {
      const seen = await lastRows(redis, partitions);
      if (looks.length < maxLooks) looks.push(seen);
      if (!isAsking) void askAll();
    } catch (error) {
      logger.debug({ err: error }, 'Redis is unavailable: its age is asked with the next connection');
    }
  }

  async function askAll(): Promise<void> {
    isAsking = true;
    for (let [oldest] = looks; oldest !== undefined && !closers.closing; [oldest] = looks) {
      try {
        const answers = await countYounger(clickhouse, oldest);
        if (answers > 0) logger.error({ answers }, olderRedis);
        looks.shift();
      } catch (error) {
        logger.debug({ err: error }, 'ClickHouse is unavailable: whether Redis is older is asked later');
        await sleep(retryMs, undefined, { ref: false });
      }
    }
    isAsking = false;
  }

  redis.on('ready', look);
  await look();
  return () => void askAll();
}
