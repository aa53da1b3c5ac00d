/** Dropping old answers, in one process: its parts over the engine's connections, and one run. */
import type { Endpoints } from '../embedded/data-dir.js';
import {
  createSnapshotWriter,
  lastMonthOlderThan,
  planRetention,
  type RetentionParts,
  retainAnswers,
} from '../services/retention/retain-answers.js';
import { createRetentionFence } from '../store/audit/retention-fence.js';
import type { Logger } from '../telemetry.js';
import { connectWarehouse } from '../warehouse/clickhouse/client.js';
import { createAnswerArchive, createForecastArchive } from '../warehouse/maintenance/retention.js';
import { createLearnerSnapshots } from '../warehouse/reads/learner-snapshots.js';
import type { Engine } from './engine.js';

/** Of one question to ClickHouse: a month of answers is compared with its sums in one. */
const questionTimeoutMs = 1_800_000;

/** A connection of its own, because it may wait long for an answer. Close it at the end. */
export function openRetention(
  { redis, partitions }: Pick<Engine, 'redis' | 'partitions'>,
  { clickhouseUrl, clickhouseCluster }: Endpoints,
  logger: Logger,
): RetentionParts & { close(): Promise<void> } {
  const clickhouse = connectWarehouse(clickhouseUrl, clickhouseCluster, questionTimeoutMs);
  return {
    archive: createAnswerArchive(clickhouse, clickhouseCluster),
    snapshots: createSnapshotWriter(createLearnerSnapshots(clickhouse)),
    fence: createRetentionFence(redis, partitions),
    forecasts: createForecastArchive(clickhouse, clickhouseCluster),
    logger,
    close: () => clickhouse.close(),
  };
}

/** @param days age of answers in days from which their months are dropped */
export async function runRetention(engine: Engine, days: number, signal: AbortSignal): Promise<void> {
  const { endpoints, logger } = engine;
  const parts = openRetention(engine, endpoints, logger);
  try {
    const plan = await planRetention(parts, lastMonthOlderThan(days, Date.now()));
    for (const stored of plan.months)
      logger.info(stored, 'the answers of a month are old enough to be dropped');
    await retainAnswers(parts, plan, signal);
  } finally {
    await parts.close();
  }
}
