/** Logs where Redis is older than ClickHouse, as a backup of another time or a failover would make it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LastRow } from '../contracts/outbox-ids.js';
import { lastRows } from '../store/outbox/outbox.js';
import { countYounger } from '../warehouse/reads/presence.js';
import type { Engine } from './engine.js';

const retryMs = 5000;
/** Looks that wait for ClickHouse. */
const maxLooks = 10;

/**
 * Looks at Redis now and at each new connection to it, before this process adds rows over it, and asks ClickHouse until
 * it answers: rows that are added meanwhile are younger than the look and are not counted.
 *
 * @returns when Redis was looked at: what asks ClickHouse the first time, to be called when its tables are there
 */
export async function watchForOlderRedis(engine: Engine): Promise<() => void> {
  const { redis, clickhouse, partitions, logger, closers } = engine;
  let begin = (): void => undefined;
  let asked = new Promise<void>((resolve) => {
    begin = resolve;
  });
  let waiting = 0;

  async function ask(seen: readonly LastRow[]): Promise<void> {
    while (!closers.closing) {
      try {
        const answers = await countYounger(clickhouse, seen);
        if (answers > 0)
          logger.error(
            { answers },
            'Redis is older than ClickHouse: it does not know of answers that are stored',
          );
        break;
      } catch (error) {
        logger.debug({ err: error }, 'ClickHouse is unavailable: whether Redis is older is asked later');
        await sleep(retryMs, undefined, { ref: false });
      }
    }
    waiting -= 1;
  }

  async function look(): Promise<void> {
    try {
      const seen = await lastRows(redis, partitions);
      if (waiting >= maxLooks) return;
      waiting += 1;
      asked = asked.then(() => ask(seen));
    } catch (error) {
      logger.debug({ err: error }, 'Redis is unavailable: its age is asked with the next connection');
    }
  }

  redis.on('ready', look);
  await look();
  return begin;
}
