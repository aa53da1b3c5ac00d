/** A crowd of one tenant at the lists of answers: ClickHouse still serves the others. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { newLearner } from '../../src/domain/tracing/learner-states.js';
import { encodeLearner, learnerField } from '../../src/store/learners/learner-codec.js';
import { learnerKey, partitionOf } from '../../src/store/redis/keys.js';
import { callerOf, event } from '../support/http/http.js';
import { clickhouseOf, keysOf, redisOf, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const service = await startService({ after });
const keys = await keysOf({ after }, service);
const answers = 30_000;

before(async () => {
  const redis = await redisOf({ after }, service.redisUrl);
  const key = learnerKey(partitionOf('crowd', 'many', 16), 'crowd', 'many');
  await redis.hset(key, learnerField, encodeLearner({ ...newLearner, version: answers, attempts: answers }));
  await clickhouseOf({ after }, service).command({
    query: `INSERT INTO attempts (tenant, user_id, skill_id, item_id, event_id, is_correct, occurred_at, received_at,
        learner_seq, partition_id, outbox_ms, outbox_seq)
      SELECT 'crowd', 'many', 'skill', '${'i'.repeat(100)}', concat('${'e'.repeat(100)}', toString(number)), 1,
        now64(3) - 1000000, now64(3) - 1000000, number + 1, 99, number, 0 FROM numbers(${answers})`,
  });
});

test('others get their explanations and lists, and health sees ClickHouse, while fifty read lists without a pause', async () => {
  const other = callerOf(service, await keys.add({ tenant: 'other' }));
  await other.track(event({ user_id: 'ada' }));
  const activeDays = async () => (await other.get('/api/v1/velocity/ada')).json.data.active_days;
  await waitFor('the answer in ClickHouse', async () => (await activeDays()) === 1);

  const crowd = callerOf(service, await keys.add({ tenant: 'crowd' }));
  const stop = new AbortController();
  let listed = 0;
  const readers = Array.from({ length: 50 }, async () => {
    while (!stop.signal.aborted) {
      const { status } = await crowd.get('/api/v1/learners/many/attempts?limit=1000');
      assert.ok(status === 200 || status === 503, `${status}`);
      if (status === 200) listed += 1;
    }
  });
  await waitFor('lists', () => listed > 0);
  // Not all: on a machine that is busy with other things any read may be late.
  let good = 0;
  for (let looks = 0; looks < 20 && good < 5; looks++) {
    const { json } = await other.get('/api/v1/health');
    const { status } = await other.get('/api/v1/learners/ada/attempts');
    assert.ok(status === 200 || status === 503, `${status}`);
    const isWell = json.data.checks.clickhouse.status === 'ok';
    if (isWell && status === 200 && (await activeDays()) !== null) good += 1;
  }
  stop.abort();
  await Promise.all(readers);
  assert.equal(good, 5);
});
