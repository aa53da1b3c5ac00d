// Entry of a pipeline process that tests kill. Arguments: Redis URL, ClickHouse URL, number of partitions.
import { startDrainJobs } from '../../../src/jobs/drain-jobs.js';
import { createLogger } from '../../../src/logger.js';
import { createCorrectionApplier } from '../../../src/services/corrections/apply-corrections.js';
import { createDrain } from '../../../src/services/outbox/drain-outbox.js';
import { createCorrectionStore } from '../../../src/store/corrections/corrections.js';
import { createOutbox } from '../../../src/store/outbox/outbox.js';
import { connectRedis, waitUntilReady } from '../../../src/store/redis/connection/client.js';
import { connectWarehouse } from '../../../src/warehouse/clickhouse/client.js';
import { createAttemptWarehouse } from '../../../src/warehouse/ingest/attempt-warehouse.js';
import { createCorrectionWarehouse } from '../../../src/warehouse/maintenance/correction-warehouse.js';

const [, , redisUrl = '', clickhouseUrl = '', partitions = ''] = process.argv;
const logger = createLogger('fatal', 'pipeline-process');
const redis = connectRedis(redisUrl);
await waitUntilReady(redis, 10_000);
const outbox = createOutbox(redis, Number(partitions));
const clickhouse = connectWarehouse(clickhouseUrl);
const warehouse = createAttemptWarehouse(clickhouse);
const applyCorrections = createCorrectionApplier({
  store: createCorrectionStore(redis),
  warehouse: createCorrectionWarehouse(clickhouse),
  logger,
});
startDrainJobs({
  redisUrl,
  partitions: Number(partitions),
  outbox,
  drain: createDrain({ outbox, warehouse, logger, applyCorrections }),
  logger,
});
process.stdout.write('started\n');
