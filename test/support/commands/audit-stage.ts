/** Answers and the pipeline apart, so that rows can be damaged between the two. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import { createLogger } from '../../../src/logger.js';
import { createCorrectionApplier } from '../../../src/services/corrections/apply-corrections.js';
import { createDrain } from '../../../src/services/outbox/drain-outbox.js';
import { createCorrectionStore } from '../../../src/store/corrections/corrections.js';
import { createOutbox } from '../../../src/store/outbox/outbox.js';
import type { RedisClient } from '../../../src/store/redis/connection/client.js';
import { defaultPartitions } from '../../../src/store/redis/server/deployment.js';
import { createAttemptWarehouse } from '../../../src/warehouse/ingest/attempt-warehouse.js';
import { createCorrectionWarehouse } from '../../../src/warehouse/maintenance/correction-warehouse.js';
import { callerOf, event } from '../http/http.js';
import { testDatabase } from '../inspect/warehouse.js';
import { startTestRedis } from '../servers/embedded.js';
import { keysOf, redisOf, startService } from '../servers/service.js';
import { tempDir } from '../temp.js';

export interface Stage {
  readonly redis: RedisClient;
  readonly clickhouse: ClickHouseClient;
  /** Puts answers of the tenant into Redis; they stay in the outbox. */
  answer(tenant: string): Promise<void>;
  /** Drains the outbox until it is empty. */
  drain(): Promise<void>;
}

const answersOfEach = 24;
const logger = createLogger('silent', 'test');

const partitions = Array.from({ length: defaultPartitions }, (_, partition) => partition);

/** Answers and pipeline apart, on a Redis and a database of their own. */
export async function stageOf(t: TestContext, clickhouseUrl: string): Promise<Stage> {
  const redisUrl = await startTestRedis(t);
  const { url, client: clickhouse } = await testDatabase(t, clickhouseUrl);
  const redis = await redisOf(t, redisUrl);
  const answering = once(async () => {
    // With a folder of its own a service does not empty a Cluster that is given.
    const servers = { redisUrl, clickhouseUrl: url, dataDir: await tempDir(t) };
    const api = await startService(t, { ...servers, role: 'api' });
    return { api, keys: await keysOf(t, api) };
  });
  return {
    redis,
    clickhouse,
    answer: async (tenant) => {
      const { api, keys } = await answering();
      const caller = callerOf(api, await keys.add({ tenant }));
      const events = Array.from({ length: answersOfEach }, (_, i) =>
        event({ user_id: `u${i % 6}`, skill_id: `s${i % 2}`, is_correct: i % 3 > 0 }),
      );
      assert.equal((await caller.trackAll(events)).status, 200);
    },
    drain: () => drain(redis, clickhouse),
  };
}

/** Does it at the first call. */
function once<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** As a job of the pipeline does. */
async function drain(redis: RedisClient, clickhouse: ClickHouseClient): Promise<void> {
  const outbox = createOutbox(redis, defaultPartitions);
  const applyCorrections = createCorrectionApplier({
    store: createCorrectionStore(redis),
    warehouse: createCorrectionWarehouse(clickhouse),
    logger,
  });
  const drainShard = createDrain({
    outbox,
    warehouse: createAttemptWarehouse(clickhouse),
    logger,
    applyCorrections,
  });
  while ((await outbox.facts()).outboxLength > 0)
    await drainShard({ partitions, batch: null, save: async () => undefined });
}
