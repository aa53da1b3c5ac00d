/** Logs an error if Redis is older than ClickHouse, after a restored backup or a failover. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LastRow } from '../contracts/outbox-ids.js';
import { readLastRows } from '../store/outbox/outbox.js';
import { countNewerRows } from '../warehouse/reads/stored-state.js';
import type { Engine } from './engine.js';

const retryMs = 5000;
const maxLooks = 10;

/**
 * Checks now, before this process adds rows, and at each new connection. Retries the comparison until
 * ClickHouse responds.
 */
export async function watchForOlderRedis(engine: Engine): Promise<void> {
  const { redis, partitions, logger } = engine;
  let asked: Promise<unknown> = Promise.resolve();
  let waiting = 0;

  async function look(): Promise<void> {
    try {
      const seen = await readLastRows(redis, partitions);
      if (waiting >= maxLooks) return;
      waiting += 1;
      asked = asked
        .then(() => compare(engine, seen))
        .finally(() => {
          waiting -= 1;
        });
    } catch (error) {
      logger.debug({ err: error }, 'Redis is unavailable: its age is asked with the next connection');
    }
  }

  redis.on('ready', look);
  await look();
}

async function compare({ clickhouse, logger, closers }: Engine, seen: readonly LastRow[]): Promise<void> {
  const message = 'Redis is older than ClickHouse: it does not know of answers that are stored';
  while (!closers.closing)
    try {
      const answers = await countNewerRows(clickhouse, seen);
      if (answers > 0) logger.error({ answers }, message);
      return;
    } catch (error) {
      logger.debug({ err: error }, 'ClickHouse is unavailable: whether Redis is older is asked later');
      await sleep(retryMs, undefined, { ref: false });
    }
}
