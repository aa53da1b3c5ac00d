// A pipeline in a process of its own, for tests that kill it: REDIS_URL CLICKHOUSE_URL PARTITIONS.
import { startPipeline } from '../../src/jobs/worker.js';
import { createDrain } from '../../src/services/drain-outbox.js';
import { connectRedis, whenReady } from '../../src/store/client.js';
import { createOutbox } from '../../src/store/outbox.js';
import { createLogger } from '../../src/telemetry.js';
import { createAttemptWarehouse } from '../../src/warehouse/attempt-warehouse.js';
import { connectWarehouse } from '../../src/warehouse/client.js';

const [, , redisUrl = '', clickhouseUrl = '', partitions = ''] = process.argv;
const logger = createLogger('fatal', 'pipeline-process');
const redis = connectRedis(redisUrl);
await whenReady(redis, 10_000);
const outbox = createOutbox(redis, Number(partitions));
const warehouse = createAttemptWarehouse(connectWarehouse(clickhouseUrl));
startPipeline({
  redisUrl,
  partitions: Number(partitions),
  outbox,
  drain: createDrain({ outbox, warehouse, logger }),
  logger,
});
process.stdout.write('started\n');
