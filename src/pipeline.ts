/** The stream pipeline of one process: schema, outbox and drain jobs over the engine's connections. */
import { carryOutOf } from './correcting.js';
import type { Endpoints } from './embedded/data-dir.js';
import type { Engine } from './engine.js';
import { startWatchedPipeline, type WatchedPipeline } from './jobs/watched-pipeline.js';
import { type Closers, StartError } from './lifecycle.js';
import { createDrain } from './services/drain-outbox.js';
import type { Outbox } from './services/pipeline-ports.js';
import type { Logger } from './telemetry.js';
import { createAttemptWarehouse } from './warehouse/attempt-warehouse.js';
import { ensureDatabase } from './warehouse/client.js';
import { migrate, SchemaError } from './warehouse/migrations.js';

type RunningPipeline = Pick<WatchedPipeline, 'stalled' | 'counts'>;

const migrationRetryMs = 2000;

/** @throws StartError when the database is that of a newer version of the service, or not one of the cluster */
export async function runPipeline(
  endpoints: Endpoints,
  engine: Engine,
  outbox: Outbox,
  logger: Logger,
  closers: Closers,
): Promise<RunningPipeline> {
  await prepareSchema(endpoints, engine, logger, closers);
  const warehouse = createAttemptWarehouse(engine.clickhouse, endpoints.clickhouseCluster);
  const { redisUrl } = endpoints;
  const correct = carryOutOf(endpoints, engine, logger);
  const drain = createDrain({ outbox, warehouse, logger, correct });
  const pipeline = startWatchedPipeline({ redisUrl, partitions: engine.partitions, outbox, drain, logger });
  closers.add('pipeline', () => pipeline.close());
  return pipeline;
}

/**
 * Brings the schema up to date. With ClickHouse away the service starts all the same, for the outbox keeps what
 * comes in; the schema follows as soon as ClickHouse is there, and inserts fail and repeat until then.
 */
async function prepareSchema(
  { clickhouseUrl, clickhouseCluster }: Endpoints,
  engine: Engine,
  logger: Logger,
  closers: Closers,
): Promise<void> {
  const attempt = async (): Promise<boolean> => {
    try {
      await ensureDatabase(clickhouseUrl, clickhouseCluster);
      const applied = await migrate(engine.clickhouse, clickhouseCluster);
      if (applied.length > 0) logger.info({ versions: applied }, 'ClickHouse schema migrated');
      return true;
    } catch (error) {
      if (error instanceof SchemaError) throw new StartError(error.message, { cause: error });
      logger.warn({ err: error }, 'the ClickHouse schema cannot be prepared yet');
      return false;
    }
  };
  if (await attempt()) return;
  const timer = setInterval(() => {
    void attempt().then((done) => {
      if (done) clearInterval(timer);
    });
  }, migrationRetryMs);
  closers.add('schema preparation', () => clearInterval(timer));
}
