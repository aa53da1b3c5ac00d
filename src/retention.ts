/** Dropping old answers, in one process: its parts over the engine's connections, and the scheduled runs. */
import type { Endpoints } from './embedded/data-dir.js';
import type { Engine } from './engine.js';
import { startScheduledRetention } from './jobs/retention-queue.js';
import type { Closers } from './lifecycle.js';
import {
  lastMonthOlderThan,
  planRetention,
  type RetentionParts,
  retainAnswers,
} from './services/retain-answers.js';
import { createSnapshotWriter } from './services/snapshot-learners.js';
import { createRetentionFence } from './store/retention-fence.js';
import { decodeSnapshot, encodeSnapshot } from './store/snapshot-codec.js';
import type { Logger } from './telemetry.js';
import { createSnapshotStore } from './warehouse/learner-snapshots.js';
import { createAnswerArchive, createForecastArchive } from './warehouse/retention.js';

const codec = { encode: encodeSnapshot, decode: decodeSnapshot };

const retentionParts = (
  { redis, clickhouse, partitions }: Pick<Engine, 'redis' | 'clickhouse' | 'partitions'>,
  { clickhouseCluster }: Pick<Endpoints, 'clickhouseCluster'>,
  logger: Logger,
): RetentionParts => ({
  archive: createAnswerArchive(clickhouse, clickhouseCluster),
  snapshots: createSnapshotWriter(createSnapshotStore(clickhouse), codec),
  fence: createRetentionFence(redis, partitions),
  forecasts: createForecastArchive(clickhouse, clickhouseCluster),
  logger,
});

/** @param days age of answers in days from which their months are dropped; 0: never */
export function scheduleRetention(
  days: number,
  engine: Engine,
  endpoints: Endpoints,
  logger: Logger,
  closers: Closers,
): void {
  const parts = retentionParts(engine, endpoints, logger);
  const run = async (signal: AbortSignal): Promise<void> => {
    // What Redis has lost is rebuilt from the rows.
    const reason = engine.blocked();
    if (reason !== null) throw new Error(`no retention: ${reason}`);
    const plan = await planRetention(parts, lastMonthOlderThan(days, Date.now()));
    for (const stored of plan.months)
      logger.info(stored, 'the answers of a month are old enough to be dropped');
    await retainAnswers(parts, plan, signal);
  };
  const runs = startScheduledRetention({ redisUrl: endpoints.redisUrl, enabled: days > 0, run, logger });
  closers.add('retention', () => runs.close());
}
