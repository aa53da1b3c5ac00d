/** The stream pipeline of one process: outbox and drain jobs over the engine's connections. */

import type { Endpoints } from '../embedded/data-dir.js';
import type { WatchedConsumer } from '../jobs/consumer.js';
import { startDrains } from '../jobs/drain-queue.js';
import type { Closers } from '../lifecycle.js';
import { createDrain } from '../services/pipeline/drain-outbox.js';
import type { Outbox } from '../store/outbox/outbox.js';
import type { Logger } from '../telemetry.js';
import { createAttemptWarehouse } from '../warehouse/ingest/attempt-warehouse.js';
import { correctionsOf } from './corrections.js';
import type { Engine } from './engine.js';

export function runPipeline(
  endpoints: Endpoints,
  engine: Engine,
  outbox: Outbox,
  logger: Logger,
  closers: Closers,
): WatchedConsumer {
  const warehouse = createAttemptWarehouse(engine.clickhouse, endpoints.clickhouseCluster);
  const { redisUrl } = endpoints;
  const applyCorrections = correctionsOf(endpoints, engine, logger);
  const drain = createDrain({ outbox, warehouse, logger, applyCorrections });
  const pipeline = startDrains({ redisUrl, partitions: engine.partitions, outbox, drain, logger });
  closers.add('pipeline', () => pipeline.close());
  return pipeline;
}
