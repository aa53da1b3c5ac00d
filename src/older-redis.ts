/** Tells at a start whether Redis is older than ClickHouse, as a backup of another time would make it. */
import type { Engine } from './engine.js';
import { lastRowIds } from './store/last-row-ids.js';
import type { Logger } from './telemetry.js';
import { countYounger } from './warehouse/younger-rows.js';

/**
 * Only right at the start, before new answers arrive: their ids are younger. Where a server is away, it is not told.
 */
export async function warnOfOlderRedis(
  { redis, clickhouse, partitions }: Engine,
  logger: Logger,
): Promise<void> {
  try {
    const answers = await countYounger(clickhouse, await lastRowIds(redis, partitions));
    if (answers > 0)
      logger.error(
        { answers },
        'Redis is older than ClickHouse: it does not know of answers that are stored',
      );
  } catch (error) {
    logger.debug({ err: error }, 'whether Redis is older than ClickHouse is not known');
  }
}
