import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import type { Redis } from 'ioredis';
import { indices } from '../../src/lists.js';
import { markerKey, metaKey } from '../../src/store/redis/keys.js';
import { attemptRow, rowParts } from '../support/builders/attempt-rows.js';
import { store } from '../support/builders/old-answers.js';
import { type Ended, endOf, runCommand, spawnCommand } from '../support/commands/command.js';
import { dumpRedis } from '../support/inspect/redis-dump.js';
import { testDatabase } from '../support/inspect/warehouse.js';
import { freshDatabase } from '../support/servers/embedded.js';
import { redisOf, startBareRedis } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const [learners, answersEach] = [9000, 20];
const answers = learners * answersEach;

/** Recent answers with and without items and event ids; three of a learner are one commit. */
async function storeAnswers(client: ClickHouseClient): Promise<void> {
  const now = Date.now();
  for (const i of indices(answersEach)) {
    const rows = indices(learners).map((learner) =>
      attemptRow(learner + 7 * i, {
        ...{ userId: `u${learner}`, eventId: i % 2 === 0 ? null : `e${i}` },
        ...{ learnerSeq: i + 1, learnerVersion: 1 + Math.floor(i / 3) },
        ...{ occurredAt: now - 600_000 * (answersEach - i), receivedAt: now - 3_600_000 },
      }),
    );
    await store(client, rows.map(rowParts));
  }
}

async function startEmptyRedis(t: TestContext, clickhouseUrl: string) {
  const server = await startBareRedis(t);
  const redis = (await redisOf(t, server.url)) as Redis;
  const env = { REDIS_URL: server.url, CLICKHOUSE_URL: clickhouseUrl, DATA_DIR: await tempDir(t) };
  return {
    ...{ redis, env },
    rebuild: () => runCommand('rebuild', env, '--json'),
    countDone: async (): Promise<number> =>
      JSON.parse((await redis.get('st:rebuild')) ?? '{"answers":0}').answers,
  };
}

function parseResult({ code, out, err }: Ended) {
  assert.deepEqual([code, err], [0, ''], out);
  return JSON.parse(out);
}

test('`npm run rebuild` resumes after a kill and restores Redis byte for byte', {
  timeout: 600_000,
}, async (t) => {
  const { clickhouseUrl } = await freshDatabase();
  const { client, url } = await testDatabase(t, clickhouseUrl);
  await storeAnswers(client);
  const whole = await startEmptyRedis(t, url);
  const result = parseResult(await whole.rebuild());
  assert.deepEqual([result.learners, result.answers, result.resumed_after], [learners, answers, 0]);

  const killed = await startEmptyRedis(t, url);
  let done = 0;
  for (const share of [0.2, 0.6]) {
    const child = spawnCommand(t, 'rebuild', killed.env, '--json');
    const ended = endOf(child);
    await waitFor('some pages', async () => (await killed.countDone()) > share * answers);
    child.kill('SIGKILL');
    await ended;
    const now = await killed.countDone();
    assert.ok(now > done && now < answers, `${now} of ${answers} answers`);
    assert.equal(await killed.redis.exists(markerKey(0), metaKey), 0);
    done = now;
  }
  // The second of two rebuilds is rejected, or starts when the first is done.
  const ends = await Promise.all([killed.rebuild(), killed.rebuild()]);
  const winner = ends.find(({ code }) => code === 0) as Ended;
  const other = ends.find((end) => end !== winner) as Ended;
  assert.ok(parseResult(winner).resumed_after >= done);
  if (other.code === 0) assert.deepEqual(JSON.parse(other.out), { restored: false });
  else assert.match(other.err, /Another process is rebuilding Redis/);
  const [expected, actual] = [await dumpRedis(whole.redis), await dumpRedis(killed.redis)];
  for (const dump of [expected, actual]) dump.delete(metaKey);
  assert.ok(expected.size > learners);
  assert.deepEqual(actual, expected);
  assert.deepEqual(parseResult(await killed.rebuild()), { restored: false });
});
