/** Answers and the pipeline apart, so that rows can be damaged between the two. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import type { RedisClient } from '../../src/store/client.js';
import { outboxKey } from '../../src/store/keys.js';
import { startTestClickhouse, startTestRedis } from './embedded.js';
import { callerOf, event } from './http.js';
import { keysOf, redisOf, startService } from './service.js';
import { tempDir } from './temp.js';
import { waitFor } from './wait.js';
import { testDatabase } from './warehouse.js';

export interface Stage {
  readonly redis: RedisClient;
  readonly clickhouse: ClickHouseClient;
  /** Puts answers of the tenant into Redis; they stay in the outbox. */
  answer(tenant: string): Promise<void>;
  /** Starts the pipeline, and waits until the outbox is empty. */
  drain(): Promise<void>;
}

const answersOfEach = 24;

/** Answers and pipeline apart, on servers of their own. */
export async function stageOf(t: TestContext): Promise<Stage> {
  const [redisUrl, { clickhouseUrl }] = await Promise.all([startTestRedis(t), startTestClickhouse(t)]);
  const { url, client: clickhouse } = await testDatabase(t, clickhouseUrl);
  // With a folder of its own a service does not empty a Cluster that is given.
  const servers = async () => ({ redisUrl, clickhouseUrl: url, dataDir: await tempDir(t) });
  const api = await startService(t, { ...(await servers()), role: 'api' });
  const [redis, keys] = [await redisOf(t, redisUrl), await keysOf(t, api)];
  return {
    redis,
    clickhouse,
    answer: async (tenant) => {
      const caller = callerOf(api, await keys.add({ tenant }));
      const events = Array.from({ length: answersOfEach }, (_, i) =>
        event({ user_id: `u${i % 6}`, skill_id: `s${i % 2}`, is_correct: i % 3 > 0 }),
      );
      assert.equal((await caller.trackAll(events)).status, 200);
    },
    drain: async () => {
      const pipeline = await startService(t, { ...(await servers()), role: 'all', auditIntervalHours: 0 });
      await waitFor('an empty outbox', async () => (await waitingIn(redis)) === 0);
      await pipeline.stop();
    },
  };
}

const partitions = Array.from({ length: 16 }, (_, partition) => partition);
const waitingIn = async (redis: RedisClient): Promise<number> =>
  (await Promise.all(partitions.map((p) => redis.xlen(outboxKey(p))))).reduce((sum, n) => sum + n, 0);
