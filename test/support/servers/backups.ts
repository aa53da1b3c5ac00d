/** Backups of running servers by the steps in docs/operations.md, and empty servers for the restore. */
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import type { ClickHouseClient } from '@clickhouse/client';
import {
  type DrainJobData,
  drainJobId,
  drainQueueName,
  queuePrefix,
  shardCount,
} from '../../../src/contracts/outbox/job-data.js';
import type { RedisClient } from '../../../src/store/redis/connection/client.js';
import { selectRows } from '../../../src/warehouse/clickhouse/client.js';
import { createSchema } from '../../../src/warehouse/schema/create-schema.js';
import { waitFor } from '../wait.js';

const folder = 'appendonlydir';

/**
 * Copies the append-only folder of a running Redis. Without a rewrite, its files only grow. The copy contains all
 * commands from before the call, because the function waits until Redis has written its buffer.
 */
export async function copyAppendOnlyFolder(redis: RedisClient, from: string, to: string): Promise<void> {
  await redis.config('SET', 'auto-aof-rewrite-percentage', '0');
  await waitFor('the end of a rewrite, and the commands to be in the file', async () =>
    /aof_rewrite_in_progress:0\r.*\naof_buffer_length:0\r/s.test(await redis.info('persistence')),
  );
  cpSync(join(from, folder), join(to, folder), { recursive: true });
  await redis.config('SET', 'auto-aof-rewrite-percentage', '100');
}

/**
 * Ages drain jobs by two minutes. Younger jobs trust their insert token, which a restored ClickHouse does not know.
 * @see src/services/outbox/drain-outbox.ts
 */
export async function ageDrainJobs(redis: RedisClient): Promise<void> {
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
  AND engine LIKE '%MergeTree' AND name NOT LIKE 'daily\\_%' AND name != 'schema_migrations' ORDER BY name`;

/** @returns rows of each table as text */
export async function exportTables(client: ClickHouseClient): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  for (const { name } of await selectRows<{ name: string }>(client, exported)) {
    const result = await client.query({ query: `SELECT * FROM ${name}`, format: 'TabSeparatedWithNames' });
    texts.set(name, await result.text());
  }
  return texts;
}

/** Creates the schema and inserts the rows. The materialized views fill the rollups. */
export async function restoreTables(
  client: ClickHouseClient,
  texts: ReadonlyMap<string, string>,
): Promise<void> {
  await createSchema(client);
  for (const [name, text] of texts)
    await client.command({ query: `INSERT INTO ${name} FORMAT TabSeparatedWithNames\n${text}` });
}
