import assert from 'node:assert/strict';
import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClickHouseClient } from '@clickhouse/client';
import {
  type DrainJobData,
  drainJobId,
  drainQueueName,
  queuePrefix,
  shardCount,
} from '../../src/contracts/outbox/job-data.js';
import { computeSum, indices } from '../../src/lists.js';
import { readLastRows } from '../../src/store/outbox/outbox.js';
import type { RedisClient } from '../../src/store/redis/connection/client.js';
import { acceptedCountsKey, outboxKey } from '../../src/store/redis/keys.js';
import { ensureDatabase, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { countNewerRows } from '../../src/warehouse/reads/stored-state.js';
import { createSchema } from '../../src/warehouse/schema/create-schema.js';
import { auditsOf } from '../support/commands/audits.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf, event } from '../support/http/http.js';
import { allOnce, counts } from '../support/inspect/warehouse.js';
import { freshDatabase, startRedisOn, startTestRedis } from '../support/servers/embedded.js';
import { clickhouseOf, redisOf, type Service, startService } from '../support/servers/service.js';
import { launchService } from '../support/servers/service-process.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const appendOnlyFolder = 'appendonlydir';

/**
 * Copies the append-only folder of a running Redis. Without a rewrite, its files only grow. The copy contains all
 * commands from before the call, because the function waits until Redis has written its buffer.
 */
async function copyAppendOnlyFolder(redis: RedisClient, from: string, to: string): Promise<void> {
  await redis.config('SET', 'auto-aof-rewrite-percentage', '0');
  await waitFor('the end of a rewrite, and the commands to be in the file', async () =>
    /aof_rewrite_in_progress:0\r.*\naof_buffer_length:0\r/s.test(await redis.info('persistence')),
  );
  cpSync(join(from, appendOnlyFolder), join(to, appendOnlyFolder), { recursive: true });
  await redis.config('SET', 'auto-aof-rewrite-percentage', '100');
}

/**
 * Ages drain jobs by two minutes. Younger jobs trust their insert token, which a restored ClickHouse does not know.
 * @see src/services/outbox/drain-outbox.ts
 */
async function ageDrainJobs(redis: RedisClient): Promise<void> {
  for (let shard = 0; shard < shardCount; shard++) {
    const key = `${queuePrefix}:${drainQueueName}:${drainJobId(shard)}`;
    const data = JSON.parse((await redis.hget(key, 'data')) ?? 'null') as DrainJobData | null;
    if (data?.batch == null) continue;
    data.batch.fixedAt -= 120_000;
    await redis.hset(key, 'data', JSON.stringify(data));
  }
}

/** All tables except schema_migrations and the targets of materialized views. */
const exported = `SELECT name FROM system.tables WHERE database = currentDatabase()
  AND engine LIKE '%MergeTree' AND name NOT IN ('learner_sums', 'daily_skill', 'schema_migrations') ORDER BY name`;

/** @returns rows of each table as text */
async function exportTables(client: ClickHouseClient): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  for (const { name } of await selectRows<{ name: string }>(client, exported)) {
    const result = await client.query({ query: `SELECT * FROM ${name}`, format: 'TabSeparatedWithNames' });
    texts.set(name, await result.text());
  }
  return texts;
}

/** Creates the schema and inserts the rows. The materialized views fill the rollups. */
async function restoreTables(client: ClickHouseClient, texts: ReadonlyMap<string, string>): Promise<void> {
  await createSchema(client);
  for (const [name, text] of texts)
    await client.command({ query: `INSERT INTO ${name} FORMAT TabSeparatedWithNames\n${text}` });
}

const partitions = indices(16);
type Redis = Awaited<ReturnType<typeof redisOf>>;

const countWaiting = async (redis: Redis): Promise<number> =>
  computeSum(await Promise.all(partitions.map((partition) => redis.xlen(outboxKey(partition)))));

const countAccepted = async (redis: Redis): Promise<number> => {
  const days = await Promise.all(partitions.map((partition) => redis.hvals(acceptedCountsKey(partition))));
  return computeSum(days.flat().map(Number));
};

/** ClickHouse has all rows that are older. */
async function findOldestWaitingMs(redis: Redis): Promise<number> {
  const firsts = await Promise.all(
    partitions.map((partition) => redis.xrange(outboxKey(partition), '-', '+', 'COUNT', 1)),
  );
  return Math.min(...firsts.flat().map(([id]) => Number(id.split('-')[0])));
}

/** Sends answers until `stop`. */
function startSending(service: Service) {
  const caller = callerOf(service, service.key);
  const confirmed: Record<string, unknown>[] = [];
  let stopped = false;
  let sent = 0;
  const send = async (): Promise<void> => {
    while (!stopped) {
      const events = Array.from({ length: 20 }, () => {
        sent += 1;
        return event({ user_id: `u${sent % 37}`, event_id: `e${sent}`, item_id: `i${sent % 50}` });
      });
      assert.equal((await caller.trackAll(events)).status, 200);
      confirmed.push(...events);
      await sleep(100);
    }
  };
  const sending = send();
  const stop = (): Promise<void> => {
    stopped = true;
    return sending;
  };
  return { confirmed, stop };
}

async function createDatabase(t: TestContext) {
  const { clickhouseUrl } = await freshDatabase();
  await ensureDatabase(clickhouseUrl);
  return { clickhouseUrl, client: clickhouseOf(t, { clickhouseUrl }) };
}

test('The service and `npm run rebuild` count each answer once after a restore of copies made under load', {
  timeout: 600_000,
}, async (t) => {
  const dir = await tempDir(t);
  const [first, copy] = [join(dir, 'first'), join(dir, 'copy')];
  for (const folder of [first, copy]) mkdirSync(folder);
  const redisServer = await startRedisOn(t, first);
  const redis = await redisOf(t, redisServer.url);
  const { clickhouseUrl, client } = await createDatabase(t);
  const service = await startService(t, { redisUrl: redisServer.url, clickhouseUrl });
  const answers = startSending(service);
  await waitFor('stored answers', async () => (await counts(client)).rows > 0);
  await waitFor('waiting answers', async () => (await countWaiting(redis)) > 0);
  const before = answers.confirmed.length;
  await copyAppendOnlyFolder(redis, first, copy);
  const copiedAt = Date.now();
  // Partitions are drained in turns, so newer stored answers do not prove that all older ones are stored.
  await waitFor('the stored answers of the copy', async () => (await findOldestWaitingMs(redis)) > copiedAt);
  await waitFor('newer stored answers', async () => (await counts(client)).rows > before + 100);
  const tables = await exportTables(client);
  await answers.stop();
  assert.ok(await service.stop());
  await redisServer.stop();

  // ClickHouse is newer than Redis.
  const restored = await createDatabase(t);
  await restoreTables(restored.client, tables);
  const stored = (await counts(restored.client)).rows;
  const sums = 'SELECT toUInt32(sum(attempts)) AS answers FROM learner_skill_total';
  assert.deepEqual(await selectRows(restored.client, sums), [{ answers: stored }]);
  const older = await startRedisOn(t, copy);
  const olderRedis = await redisOf(t, older.url);
  await ageDrainJobs(olderRedis);
  const known = await countAccepted(olderRedis);
  const unknown = await countNewerRows(restored.client, await readLastRows(olderRedis, partitions.length));
  assert.ok(known >= before, `${known} of ${before} confirmed answers are in the copy of Redis`);
  assert.ok(unknown > 0);
  assert.equal(stored, known + unknown);
  const urls = { REDIS_URL: older.url, CLICKHOUSE_URL: restored.clickhouseUrl, DATA_DIR: dir };
  const api = await launchService(t, { ...urls, ROLE: 'api' });
  const warning = `"answers":${unknown},"msg":"Redis is older`;
  await waitFor('the warning', () => api.written().includes(warning));
  await api.stop();
  const second = await startService(t, { redisUrl: older.url, clickhouseUrl: restored.clickhouseUrl });
  assert.equal((await callerOf(second, second.key).track(event({ user_id: 'late' }))).status, 200);
  await waitFor('an empty outbox', async () => (await countWaiting(olderRedis)) === 0);
  const rows = stored + 1;
  assert.deepEqual(await counts(restored.client), allOnce(rows));
  const audited = await auditsOf(olderRedis, restored.client)();
  assert.deepEqual([...new Set(audited.mismatches.map(({ kind }) => kind))], ['surplus']);
  assert.ok(await second.stop());
  await older.stop();

  const redisUrl = await startTestRedis(t);
  const env = { ...urls, REDIS_URL: redisUrl };
  const rebuilt = await runCommand('rebuild', env);
  assert.equal(rebuilt.code, 0, rebuilt.err);
  const third = await startService(t, { redisUrl, clickhouseUrl: restored.clickhouseUrl });
  const repeated = await callerOf(third, third.key).trackAll(answers.confirmed.slice(0, before).slice(-500));
  assert.equal(repeated.status, 200);
  assert.ok(repeated.json.data.results.every(({ replayed }: { replayed?: boolean }) => replayed));
  assert.deepEqual(await counts(restored.client), allOnce(rows));
  const verified = await runCommand('rebuild', env, '--verify');
  assert.equal(verified.code, 0, verified.out);
  const { mismatches } = await auditsOf(await redisOf(t, redisUrl), restored.client)();
  assert.deepEqual(mismatches, []);
});
