/** Learners whose first answers were dropped for their age are rebuilt as they were. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { rowColumns } from '../../src/contracts/attempt-row.js';
import { planRetention, retainAnswers } from '../../src/services/retain-answers.js';
import { endOf, startCommand } from '../support/command.js';
import { callerOf } from '../support/http.js';
import { exitAfterTests } from '../support/linger.js';
import { partsOf } from '../support/old-answers.js';
import { dumpRedis } from '../support/redis-dump.js';
import { clickhouseOf, redisOf, startBareRedis, startService } from '../support/service.js';
import { waitFor } from '../support/wait.js';
import { countOf } from '../support/warehouse.js';

const redisServer = await startBareRedis({ after });
const service = await startService({ after }, { redisUrl: redisServer.url });
const clickhouse = clickhouseOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);
const { trackAll, get } = callerOf(service, service.key);

exitAfterTests();

const learners = Array.from({ length: 20 }, (_, i) => `learner "${i}" \\ ü`);
let made = 0;

/** A learner's answers on some skills and many items, in batches of different lengths. */
async function answer(userId: string, count: number): Promise<void> {
  for (let left = count; left > 0; ) {
    const events = Array.from({ length: Math.min(left, 1 + (made % 7)) }, () => {
      made += 1;
      return {
        user_id: userId,
        skill_id: `skill ${made % 5}`,
        item_id: `item ${(made * 37) % 200}`,
        is_correct: made % 3 > 0,
        time_spent_seconds: 10 + (made % 50),
        event_id: `event ${made}`,
      };
    });
    const { status, text } = await trackAll(events);
    assert.equal(status, 200, text);
    left -= events.length;
  }
}

const stored = (count: number): Promise<unknown> =>
  waitFor('answers in ClickHouse', async () => (await countOf(clickhouse, 'attempts')) === count);

/** The learner's first half, and of every second one all, arrived a hundred days before. */
const arrivedLongAgo = `if(cityHash64(user_id) % 2 = 0, 1e9, 30)`;

async function makeOld(): Promise<void> {
  const columns = ['partition_id', 'outbox_ms', 'outbox_seq', ...rowColumns].join(', ');
  await clickhouse.command({
    query: `INSERT INTO attempts (${columns})
      SELECT * REPLACE (received_at - INTERVAL 100 DAY AS received_at)
      FROM (SELECT ${columns} FROM attempts WHERE learner_seq <= ${arrivedLongAgo})`,
  });
  await clickhouse.command({
    query: `DELETE FROM attempts WHERE received_at > now() - INTERVAL 50 DAY AND learner_seq <= ${arrivedLongAgo}`,
  });
}

/** Records and items; event ids of dropped answers are not remembered that long. */
async function records(): Promise<[string, string[]][]> {
  const dump = await dumpRedis(redis);
  return [...dump].filter(([name]) => /^st:\{p\d+\}:(l|h0|h1):/.test(name)).sort();
}

test('a rebuild after retention gives the same bytes', { timeout: 300_000 }, async (t) => {
  for (const userId of learners) await answer(userId, 60);
  await stored(60 * learners.length);
  const before = await records();
  assert.ok(before.length >= 2 * learners.length, `${before.length} keys`);
  await makeOld();
  await stored(60 * learners.length);
  const month = new Date(Date.now() - 60 * 86_400_000);
  const through = month.getUTCFullYear() * 100 + month.getUTCMonth() + 1;
  const parts = partsOf(clickhouse, redis, 10_000);
  const dropped = await retainAnswers(parts, await planRetention(parts, through));
  assert.ok(dropped.length > 0);
  const left = await countOf(clickhouse, 'attempts');
  assert.ok(left > 0 && left <= 30 * learners.length, `${left} rows are left`);

  await redisServer.kill();
  await redisServer.start();
  const env = { DATA_DIR: service.dataDir, REDIS_URL: redisServer.url };
  const { code, out, err } = await endOf(startCommand(t, 'rebuild', env, '--json'));
  assert.deepEqual([code, err], [0, ''], out);
  const result = JSON.parse(out);
  assert.deepEqual([result.learners, result.answers, result.broken_learners], [learners.length, left, 0]);
  assert.deepEqual(await records(), before);
  await waitFor('the service', async () => (await get('/api/v1/skills')).status === 200);
  await answer(learners[0] as string, 3);
  await stored(left + 3);
});
