/** Learners of an older version are replaced by runs that are killed again and again, wherever they are. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { rebuildLockKey } from '../../src/store/rebuild/rebuild-store.js';
import { metaKey } from '../../src/store/redis/keys.js';
import { storeManyAnswers } from '../support/builders/many-answers.js';
import { endOf, runCommand, spawnCommand } from '../support/commands/command.js';
import { dumpRedis } from '../support/inspect/redis-dump.js';
import { testDatabase } from '../support/inspect/warehouse.js';
import { freshDatabase } from '../support/servers/embedded.js';
import { makeOlder } from '../support/servers/older-deployment.js';
import { redisOf, startBareRedis } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';

const [learners, each, rounds] = [6000, 20, 3];
/** A run gets so much longer than the one before, in milliseconds, from less than its start takes. */
const [firstMs, moreMs] = [420, 120];

test('the last of many runs ends it, and learners are as they were', { timeout: 900_000 }, async (t) => {
  const { clickhouseUrl } = await freshDatabase();
  const { client, url } = await testDatabase(t, clickhouseUrl);
  await storeManyAnswers(client, learners, each, 16);
  const server = await startBareRedis(t);
  const redis = (await redisOf(t, server.url)) as Redis;
  const env = { REDIS_URL: server.url, CLICKHOUSE_URL: url, DATA_DIR: await tempDir(t) };
  const first = await runCommand('rebuild', env, '--json');
  assert.equal(JSON.parse(first.out).learners, learners, first.err);
  const before = await dumpRedis(redis);
  for (let round = 0; round < rounds; round++) {
    await makeOlder(redis);
    for (let limit = firstMs; ; limit += moreMs * Math.random()) {
      const child = spawnCommand(t, 'rebuild', env, '--json');
      const killed = sleep(limit).then(() => child.kill('SIGKILL'));
      const { code, err } = await endOf(child);
      await killed;
      await redis.del(rebuildLockKey);
      if (code === null) continue;
      assert.equal(code, 0, err);
      break;
    }
    const now = await dumpRedis(redis);
    for (const dump of [before, now]) dump.delete(metaKey);
    assert.deepEqual(now, before);
  }
});
