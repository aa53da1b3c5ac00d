/** Logs an error if Redis is older than ClickHouse, after a restored backup or a failover. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LastRow } from '../../contracts/outbox/outbox-ids.js';
import { readLastRows } from '../../store/outbox/outbox.js';
import { countNewerRows } from '../../warehouse/reads/stored-state.js';
import type { Engine } from '../startup/engine.js';

const retryMs = 5000;
const maxPendingChecks = 10;

/**
 * Checks now, before this process adds rows, and at each new connection. Retries the comparison until
 * ClickHouse responds.
 */
export async function watchForStaleRedis(engine: Engine): Promise<void> {
  const { redis, partitions, logger } = engine;
  let comparisons: Promise<unknown> = Promise.resolve();
  let pendingChecks = 0;

  async function checkAge(): Promise<void> {
    try {
      const newestRows = await readLastRows(redis, partitions);
      if (pendingChecks >= maxPendingChecks) return;
      pendingChecks += 1;
      comparisons = comparisons
        .then(() => compareWithClickhouse(engine, newestRows))
        .finally(() => {
          pendingChecks -= 1;
        });
    } catch (error) {
      logger.debug({ err: error }, 'Redis is unavailable; its age is checked at the next connection');
    }
  }

  redis.on('ready', checkAge);
  await checkAge();
}

async function compareWithClickhouse(
  { clickhouse, logger, closers }: Engine,
  newestRows: readonly LastRow[],
): Promise<void> {
  const message =
    'Redis is older than ClickHouse and lacks stored answers; rebuild Redis (docs/operate/back-up-and-restore.md)';
  while (!closers.closing)
    try {
      const answers = await countNewerRows(clickhouse, newestRows);
      if (answers > 0) logger.error({ answers }, message);
      return;
    } catch (error) {
      logger.debug({ err: error }, 'ClickHouse is unavailable; the age of Redis is checked later');
      await sleep(retryMs, undefined, { ref: false });
    }
}
