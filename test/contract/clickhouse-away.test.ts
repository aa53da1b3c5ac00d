/** ClickHouse away: answers are taken, what Redis knows is told, the rest is null, and what waits is done afterwards. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { awayFromMidnight } from '../support/builders/day.js';
import { erasureDone } from '../support/builders/learner-data.js';
import { callerOf, event } from '../support/http/http.js';
import { velocityFromClickHouse } from '../support/inspect/velocity-fields.js';
import { exitAfterTests } from '../support/servers/linger.js';
import { clickhouseOf, clickhousePid, startServiceAlone } from '../support/servers/service.js';
import { askUntil, waitFor } from '../support/wait.js';

const service = await startServiceAlone({ after });
const clickhouse = clickhouseOf({ after }, service);
const caller = callerOf(service, service.key);
const stranger = callerOf(service, null);
const dayMs = 86_400_000;

exitAfterTests();

async function whileAway(work: () => Promise<void>): Promise<void> {
  const pid = clickhousePid(service);
  process.kill(pid, 'SIGSTOP');
  try {
    await work();
  } finally {
    process.kill(pid, 'SIGCONT');
  }
}

async function rowsIn(table: string, userId: string): Promise<number> {
  const query = `SELECT toUInt32(count()) AS n FROM ${table} WHERE user_id = {userId:String}`;
  const [row] = await selectRows<{ n: number }>(clickhouse, query, { params: { userId } });
  return row?.n ?? 0;
}

const answer = async (user_id: string, daysAgo = 0): Promise<void> => {
  const occurred_at = new Date(Date.now() - daysAgo * dayMs).toISOString();
  assert.equal((await caller.track(event({ user_id, occurred_at }))).status, 200);
};

test('a ClickHouse that hangs is a warning: answers are taken', async () => {
  await whileAway(async () => {
    assert.equal((await caller.track(event({ user_id: 'kept', event_id: 'kept' }))).status, 200);
    const path = '/api/v1/learners/kept/attempts/kept';
    const takenBack = await caller.call({ method: 'DELETE', path });
    assert.deepEqual([takenBack.status, takenBack.headers['retry-after']], [503, '1']);
    assert.equal((await caller.get('/api/v1/mastery/kept')).status, 200, 'not half of it');
    const ready = await stranger.get('/readyz');
    assert.deepEqual([ready.status, ready.json.status], [200, 'ready']);
    assert.match(ready.json.reasons.join(), /ClickHouse/);
    const health = await stranger.get('/api/v1/health');
    assert.deepEqual([health.status, health.json.data.status], [200, 'degraded']);
    assert.equal((await stranger.get('/livez')).status, 200);
  });
  await waitFor('health', async () => (await stranger.get('/api/v1/health')).json.data.status === 'ok');
});

test('an explanation: no steps, everything else, status 200', async () => {
  const path = '/api/v1/mastery/gil/algebra';
  const explain = () => caller.get(`${path}?explain=true`);
  const explained = () => askUntil('the steps', explain, ({ json }) => json.data?.explanation.steps !== null);
  // So long ago that forgetting moves no digit between two reads.
  await answer('gil', 300);
  await waitFor('the answer', async () => (await rowsIn('attempts', 'gil')) === 1);
  const before = (await explained()).json.data;
  await whileAway(async () => {
    const { status, json } = await explain();
    assert.equal(status, 200);
    const { steps, pending_attempts, source_lag_seconds, note, ...rest } = json.data.explanation;
    assert.deepEqual([steps, pending_attempts, source_lag_seconds], [null, null, null]);
    assert.equal(typeof note, 'string');
    assert.deepEqual(rest.next, before.explanation.next);
    assert.deepEqual(rest.parameters, before.explanation.parameters);
    assert.equal(json.data.mastery, before.mastery);
    assert.equal((await caller.get(path)).status, 200);
  });
  assert.equal((await explained()).json.data.explanation.steps.length, 1);
});

test('velocity: what Redis knows, null for the rest, status 200', async () => {
  await awayFromMidnight();
  const velocity = (user: string, query = '') => caller.get(`/api/v1/velocity/${user}${query}`);
  for (const daysAgo of [20, 13, 6, 5]) await answer('kim', daysAgo);
  const settled = async () => (await velocity('kim', '?skill_id=algebra')).json.data;
  const before = await askUntil('all answers', settled, ({ source_lag_seconds: lag }) => lag === 0);
  assert.equal(before.series.length > 0, true);
  await whileAway(async () => {
    // More at once than may read: those above are answered without waiting.
    const answers = await Promise.all(Array.from({ length: 8 }, () => velocity('kim', '?skill_id=algebra')));
    for (const { status, json } of answers) {
      assert.equal(status, 200);
      const { data } = json;
      for (const name of [...velocityFromClickHouse, 'source_lag_seconds'])
        assert.equal(data[name], null, name);
      for (const name of ['velocity_per_attempt', 'momentum_label', 'days', 'skill_id']) {
        assert.equal(data[name], before[name], name);
      }
      assert.deepEqual(data.plateaus, before.plateaus);
    }
    assert.equal((await velocity('nobody')).status, 404);
    // Taken meanwhile, so that ClickHouse is behind when it is back.
    await answer('kim');
  });
  await waitFor('the series', async () => {
    const { data } = (await velocity('kim')).json;
    assert.ok(data.source_lag_seconds === null || data.source_lag_seconds >= 0);
    return data.source_lag_seconds === 0 && data.series.at(-1).attempts === 1;
  });
});

test('statistics of skills: 503, for half of them would look like the whole', async () => {
  await answer('lea');
  await waitFor('the answer', async () => (await rowsIn('attempts', 'lea')) === 1);
  const paths = [
    'skill-statistics',
    'skills/algebra/statistics',
    'skills/algebra/items',
    'skills/none/items',
  ];
  const ask = () => Promise.all(paths.map((path) => caller.get(`/api/v1/${path}`)));
  await whileAway(async () => {
    for (const { status, json, headers } of await ask())
      assert.deepEqual([status, json.error?.code, headers['retry-after']], [503, 'UNAVAILABLE', '1']);
  });
  const settled = (answers: Awaited<ReturnType<typeof ask>>) => answers.every(({ status }) => status !== 503);
  const after = await askUntil('the statistics', ask, settled);
  assert.deepEqual(
    after.map(({ status }) => status),
    [200, 200, 200, 404],
  );
});

test('learners and answers on a skill are 503, not a part that looks like the whole; a class is told', async () => {
  await answer('mia');
  await whileAway(async () => {
    for (const path of ['learners', 'learners?prefix=m', 'mastery/mia/algebra/history']) {
      const { status, headers, json } = await caller.get(`/api/v1/${path}`);
      assert.deepEqual([status, headers['retry-after'], json.error.code], [503, '1', 'UNAVAILABLE'], path);
    }
    assert.equal((await caller.get('/api/v1/mastery/nobody/algebra/history')).status, 404);
    const body = JSON.stringify({ user_ids: ['mia'] });
    const { status, json } = await caller.call({ path: '/api/v1/mastery', body });
    assert.deepEqual([status, json.data.results[0].data.total_attempts], [200, 1]);
  });
  const list = () => caller.get('/api/v1/learners?prefix=mia');
  await askUntil('the list', list, ({ json }) => json.data?.learners.length === 1);
});

test('an erasure that is asked for ends by itself', async () => {
  const userId = 'away';
  await answer(userId);
  let url = '';
  await whileAway(async () => {
    await answer(userId);
    const begun = await caller.call({ method: 'DELETE', path: `/api/v1/learners/${userId}` });
    assert.equal(begun.status, 202);
    url = begun.json.data.status_url;
    await answer(userId);
    const until = performance.now() + 15_000;
    await waitFor('some time without ClickHouse', async () => {
      assert.equal((await caller.get(url)).json.data?.status, 'pending');
      return performance.now() > until;
    });
  });
  await erasureDone(caller, url);
  await waitFor('the new history', async () => (await rowsIn('attempts', userId)) === 1);
  assert.equal(await rowsIn('learner_skill_daily', userId), 1);
});
