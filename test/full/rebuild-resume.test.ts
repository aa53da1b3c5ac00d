/** A rebuild that is killed in the middle is taken up by the next one; two at once do not meet. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Redis } from 'ioredis';
import { markerKey, metaKey } from '../../src/store/redis/keys.js';
import { storeManyAnswers } from '../support/builders/many-answers.js';
import { type Ended, endOf, runCommand, spawnCommand } from '../support/commands/command.js';
import { dumpRedis } from '../support/inspect/redis-dump.js';
import { testDatabase } from '../support/inspect/warehouse.js';
import { freshDatabase } from '../support/servers/embedded.js';
import { redisOf, startBareRedis } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const [learners, each] = [9000, 20];

interface Emptied {
  readonly env: Record<string, string>;
  readonly redis: Redis;
}

async function emptied(t: TestContext, clickhouseUrl: string): Promise<Emptied> {
  const server = await startBareRedis(t);
  const redis = (await redisOf(t, server.url)) as Redis;
  return { redis, env: { REDIS_URL: server.url, CLICKHOUSE_URL: clickhouseUrl, DATA_DIR: await tempDir(t) } };
}

const rebuild = ({ env }: Emptied) => runCommand('rebuild', env, '--json');

function resultOf({ code, out, err }: Ended) {
  assert.deepEqual([code, err], [0, ''], out);
  return JSON.parse(out);
}

const answersDone = async ({ redis }: Emptied): Promise<number> =>
  JSON.parse((await redis.get('st:rebuild')) ?? '{"answers":0}').answers;

test('a killed rebuild goes on where it stood', { timeout: 600_000 }, async (t) => {
  const { clickhouseUrl } = await freshDatabase();
  const { client, url } = await testDatabase(t, clickhouseUrl);
  await storeManyAnswers(client, learners, each, 16);
  const whole = await emptied(t, url);
  const result = resultOf(await rebuild(whole));
  assert.deepEqual([result.learners, result.answers, result.resumed_after], [learners, learners * each, 0]);
  t.diagnostic(`${result.learners_per_second} learners/s, ${result.answers_per_second} answers/s`);

  const killed = await emptied(t, url);
  let from = 0;
  for (const share of [0.2, 0.6]) {
    const child = spawnCommand(t, 'rebuild', killed.env, '--json');
    const ended = endOf(child);
    await waitFor('some pages', async () => (await answersDone(killed)) > share * learners * each);
    child.kill('SIGKILL');
    await ended;
    const done = await answersDone(killed);
    assert.ok(done > from && done < learners * each, `${done}`);
    assert.equal(await killed.redis.exists(markerKey(0), metaKey), 0);
    from = done;
  }
  const ends = await Promise.all([rebuild(killed), rebuild(killed)]);
  const winner = ends.find(({ code }) => code === 0) as Ended;
  const other = ends.find((end) => end !== winner) as Ended;
  assert.ok(resultOf(winner).resumed_after >= from);
  // Who came later refuses, or finds that nothing is left to do.
  if (other.code === 0) assert.deepEqual(JSON.parse(other.out), { restored: false });
  else assert.match(other.err, /rebuilt by another process/);
  const [one, two] = [await dumpRedis(whole.redis), await dumpRedis(killed.redis)];
  one.delete('st:meta');
  two.delete('st:meta');
  assert.ok(one.size > learners);
  assert.deepEqual(two, one);
  assert.deepEqual(JSON.parse((await rebuild(killed)).out), { restored: false });
});
