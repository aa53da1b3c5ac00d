/** Backups that are taken while answers come in, restored into empty servers. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readLastRows } from '../../src/store/outbox/outbox.js';
import { acceptedCountsKey, outboxKey } from '../../src/store/redis/keys.js';
import { ensureDatabase } from '../../src/warehouse/clickhouse/client.js';
import { countNewerRows } from '../../src/warehouse/reads/stored-state.js';
import { auditsOf } from '../support/commands/audits.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf, event } from '../support/http/http.js';
import { allOnce, counts } from '../support/inspect/warehouse.js';
import {
  ageDrainJobs,
  copyAppendOnlyFolder,
  exportTables,
  restoreTables,
  startRedisOn,
} from '../support/servers/backups.js';
import { freshDatabase, startTestRedis } from '../support/servers/embedded.js';
import { clickhouseOf, redisOf, type Service, startService } from '../support/servers/service.js';
import { launchService } from '../support/servers/service-process.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const partitions = Array.from({ length: 16 }, (_, i) => i);

type Redis = Awaited<ReturnType<typeof redisOf>>;

async function waiting(redis: Redis): Promise<number> {
  const lengths = await Promise.all(partitions.map((partition) => redis.xlen(outboxKey(partition))));
  return lengths.reduce((sum, length) => sum + length, 0);
}

/** When the oldest row came that waits, Unix milliseconds: all older ones are stored. */
async function oldestWaiting(redis: Redis): Promise<number> {
  const firsts = await Promise.all(
    partitions.map((partition) => redis.xrange(outboxKey(partition), '-', '+', 'COUNT', 1)),
  );
  return Math.min(...firsts.flat().map(([id]) => Number(id.split('-')[0])));
}

async function accepted(redis: Redis): Promise<number> {
  const days = await Promise.all(partitions.map((partition) => redis.hvals(acceptedCountsKey(partition))));
  return days.flat().reduce((sum, count) => sum + Number(count), 0);
}

/** Sends answers until it is told to stop; `confirmed` are those that got 200, in order. */
function answering(service: Service) {
  const caller = callerOf(service, service.key);
  const confirmed: Record<string, unknown>[] = [];
  let going = true;
  let sent = 0;
  const done = (async () => {
    while (going) {
      const events = Array.from({ length: 20 }, () => {
        sent += 1;
        return event({ user_id: `u${sent % 37}`, event_id: `e${sent}`, item_id: `i${sent % 50}` });
      });
      assert.equal((await caller.trackAll(events)).status, 200);
      confirmed.push(...events);
      await sleep(100);
    }
  })();
  return {
    confirmed,
    stop: () => {
      going = false;
      return done;
    },
  };
}

async function emptyClickhouse(t: TestContext) {
  const { clickhouseUrl } = await freshDatabase();
  await ensureDatabase(clickhouseUrl);
  return { clickhouseUrl, client: clickhouseOf(t, { clickhouseUrl }) };
}

test('Redis and then ClickHouse, copied while answers come in, are restored', {
  timeout: 600_000,
}, async (t) => {
  const dir = await tempDir(t);
  const [first, copy] = [join(dir, 'first'), join(dir, 'copy')];
  for (const made of [first, copy]) mkdirSync(made);
  const redisServer = await startRedisOn(t, first);
  const redis = await redisOf(t, redisServer.url);
  const { clickhouseUrl, client } = await emptyClickhouse(t);
  const service = await startService(t, { redisUrl: redisServer.url, clickhouseUrl });
  const answers = answering(service);
  await waitFor('stored answers', async () => (await counts(client)).rows > 0);
  await waitFor('waiting answers', async () => (await waiting(redis)) > 0);
  const before = answers.confirmed.length;
  await copyAppendOnlyFolder(redis, first, copy);
  const copiedAt = Date.now();
  // Partitions are drained in turns: that some younger answers are stored does not say that all of the copy are.
  await waitFor('the answers of the copy to be stored', async () => (await oldestWaiting(redis)) > copiedAt);
  await waitFor('younger stored answers', async () => (await counts(client)).rows > before + 100);
  const tables = await exportTables(client);
  await answers.stop();
  assert.ok(await service.stop());
  await redisServer.stop();

  const restored = await emptyClickhouse(t);
  await restoreTables(restored.client, tables);
  const stored = (await counts(restored.client)).rows;
  const older = await startRedisOn(t, copy);
  const olderRedis = await redisOf(t, older.url);
  await ageDrainJobs(olderRedis);
  const known = await accepted(olderRedis);
  const unknown = await countNewerRows(restored.client, await readLastRows(olderRedis, partitions.length));
  t.diagnostic(
    `confirmed ${before}, known ${known}, waiting ${await waiting(olderRedis)}, stored ${stored}, unknown ${unknown}`,
  );
  assert.ok(known >= before);
  assert.ok(unknown > 0);
  assert.equal(
    stored,
    known + unknown,
    'what waited in the older Redis was stored when ClickHouse was copied',
  );

  const settings = {
    ROLE: 'api',
    REDIS_URL: older.url,
    CLICKHOUSE_URL: restored.clickhouseUrl,
    DATA_DIR: dir,
  };
  const api = await launchService(t, settings);
  await waitFor('the warning', () => api.written().includes(`"answers":${unknown},"msg":"Redis is older`));
  await api.stop();

  const second = await startService(t, { redisUrl: older.url, clickhouseUrl: restored.clickhouseUrl });
  assert.equal((await callerOf(second, second.key).track(event({ user_id: 'late' }))).status, 200);
  await waitFor('the outbox', async () => (await waiting(olderRedis)) === 0);
  const rows = stored + 1;
  assert.deepEqual(await counts(restored.client), allOnce(rows), 'nothing is stored twice');
  const told = await auditsOf(olderRedis, restored.client)();
  assert.deepEqual([...new Set(told.mismatches.map(({ kind }) => kind))], ['surplus']);
  assert.ok(await second.stop());
  await older.stop();

  const redisUrl = await startTestRedis(t);
  const env = { DATA_DIR: dir, REDIS_URL: redisUrl, CLICKHOUSE_URL: restored.clickhouseUrl };
  const rebuilt = await runCommand('rebuild', env);
  assert.equal(rebuilt.code, 0, rebuilt.err);
  const third = await startService(t, { redisUrl, clickhouseUrl: restored.clickhouseUrl });
  const repeated = await callerOf(third, third.key).trackAll(answers.confirmed.slice(0, before).slice(-500));
  assert.equal(repeated.status, 200);
  assert.ok(repeated.json.data.results.every(({ replayed }: { replayed?: boolean }) => replayed));
  assert.deepEqual(await counts(restored.client), allOnce(rows));
  const verified = await runCommand('rebuild', env, '--verify');
  assert.equal(verified.code, 0, verified.out);
  const audited = await auditsOf(await redisOf(t, redisUrl), restored.client)();
  assert.deepEqual(audited.mismatches, []);
});
