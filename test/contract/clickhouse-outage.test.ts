/** What callers and the dashboard show while ClickHouse hangs, or is restarted because of an analyst's query. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { allScopes } from '../../src/contracts/access/access.js';
import { readStoredEndpoints } from '../../src/embedded/data-dir.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { awayFromMidnight, timeAgo } from '../support/builders/day.js';
import { askInTurn, erasureDone } from '../support/builders/learner-data.js';
import { callerOf, event, outcomeOf } from '../support/http/http.js';
import { inBrowser } from '../support/pages/browser.js';
import { type Dashboard, openDashboard } from '../support/pages/dashboard.js';
import { clickhouseOf, clickhousePid, keysOf, startServiceAlone } from '../support/servers/service.js';
import { askUntil, waitFor } from '../support/wait.js';

const service = await startServiceAlone({ after });
const clickhouse = clickhouseOf({ after }, service);
const caller = callerOf(service, service.key);
const anonymous = callerOf(service, null);

const { username, password, origin } = new URL(readStoredEndpoints(service.dataDir)?.analystUrl ?? '');
const headers = { authorization: `Basic ${btoa(`${username}:${password}`)}` };

/** Sends a query with a limit in seconds. Status 0: the connection was cut off. */
async function analyst(body: string, limit = 60, signal: AbortSignal | null = null) {
  const since = performance.now();
  const url = `${origin}/?max_execution_time=${limit}`;
  const { status, text } = await fetch(url, { method: 'POST', body, headers, signal })
    .then(async (response) => ({ status: response.status, text: await response.text() }))
    .catch((error: unknown) => ({ status: 0, text: String(error) }));
  return { status, text, seconds: (performance.now() - since) / 1000 };
}

async function whileClickHouseHangs(work: () => Promise<void>): Promise<void> {
  const pid = clickhousePid(service);
  process.kill(pid, 'SIGSTOP');
  try {
    await work();
  } finally {
    process.kill(pid, 'SIGCONT');
  }
}

async function countRows(table: string, userId: string, of = 'count()'): Promise<number> {
  const query = `SELECT toUInt32(${of}) AS n FROM ${table} WHERE user_id = {userId:String}`;
  const [row] = await selectRows<{ n: number }>(clickhouse, query, { params: { userId } });
  return row?.n ?? 0;
}

async function answer(user_id: string, daysAgo = 0): Promise<void> {
  assert.equal((await caller.track(event({ user_id, occurred_at: timeAgo(daysAgo) }))).status, 200);
}

async function countRestarts(reason: string): Promise<number> {
  const { text } = await anonymous.raw({ method: 'GET', path: '/metrics' });
  const name = `clickhouse_restarts_total\\{reason="${reason}",process="all"\\}`;
  return Number(new RegExp(`^skilltrace_${name} (\\d+)$`, 'm').exec(text)?.[1]);
}

test('track-answer accepts answers while ClickHouse hangs, and health reports degraded', async () => {
  await whileClickHouseHangs(async () => {
    assert.equal((await caller.track(event({ user_id: 'ada', event_id: 'first' }))).status, 200);
    const retracted = await caller.send('DELETE', '/api/v1/learners/ada/attempts/first');
    assert.deepEqual([retracted.status, retracted.headers['retry-after']], [503, '1']);
    const { json } = await caller.get('/api/v1/mastery/ada');
    assert.equal(json.data?.skills[0].total_attempts, 1, 'the failed retraction changed the learner');
    const ready = await anonymous.get('/readyz');
    assert.deepEqual([ready.status, ready.json.status], [200, 'ready']);
    assert.match(ready.json.reasons.join(), /ClickHouse/);
    const health = await anonymous.get('/api/v1/health');
    assert.deepEqual([health.status, health.json.data.status], [200, 'degraded']);
    assert.equal((await anonymous.get('/livez')).status, 200);
  });
  await waitFor('health', async () => (await anonymous.get('/api/v1/health')).json.data.status === 'ok');
});

test('Class calls return the figures of Redis while ClickHouse hangs, and null for the others', async () => {
  await answer('noa');
  const group = { name: 'Class', user_ids: ['noa'] };
  assert.equal((await caller.send('PUT', '/api/v1/groups/class', group)).status, 200);
  await whileClickHouseHangs(async () => {
    const skills = await caller.get('/api/v1/groups/class/skills');
    const [skill] = skills.json.data.skills;
    assert.deepEqual(
      [skill.learners, skill.answers, skill.change, skill.hardest_items],
      [1, null, null, null],
    );
    const { json } = await caller.get('/api/v1/groups/class/summary');
    const { with_answers, few_answers, attention, ...others } = json.data;
    assert.deepEqual([with_answers, few_answers, attention], [1, 1, []]);
    for (const name of ['answers_per_day', 'change', 'improved', 'source_lag_seconds'])
      assert.equal(others[name], null, name);
  });
});

test('An explanation has no steps while ClickHouse hangs, and keeps its other fields', async () => {
  const path = '/api/v1/mastery/gil/algebra';
  const explain = () => caller.get(`${path}?explain=true`);
  const explainFully = () =>
    askUntil('the steps', explain, ({ json }) => json.data?.explanation.steps?.length === 1);
  // So old that forgetting changes no digit between two reads.
  await answer('gil', 300);
  const before = (await explainFully()).json.data;
  await whileClickHouseHangs(async () => {
    const { status, json } = await explain();
    assert.equal(status, 200);
    const { steps, pending_attempts, source_lag_seconds, note, next, parameters } = json.data.explanation;
    assert.deepEqual([steps, pending_attempts, source_lag_seconds], [null, null, null]);
    assert.equal(typeof note, 'string');
    const expected = [before.explanation.next, before.explanation.parameters, before.mastery];
    assert.deepEqual([next, parameters, json.data.mastery], expected);
    assert.equal((await caller.get(path)).status, 200);
  });
  await explainFully();
});

const fromRedis = ['user_id', 'skill_id', 'days', 'velocity_per_attempt', 'momentum_label', 'plateaus'];

test('velocity returns the fields of Redis and null for the others while ClickHouse hangs', async () => {
  await awayFromMidnight();
  const velocity = (user: string, query = '') => caller.get(`/api/v1/velocity/${user}${query}`);
  for (const daysAgo of [20, 13, 6, 5]) await answer('kim', daysAgo);
  const read = async () => (await velocity('kim', '?skill_id=algebra')).json.data;
  const before = await askUntil('all answers', read, ({ source_lag_seconds: lag }) => lag === 0);
  assert.ok(before.series.length > 0);
  await whileClickHouseHangs(async () => {
    // More requests than may read ClickHouse at the same time: the others do not wait.
    const requests = Array.from({ length: 8 }, () => velocity('kim', '?skill_id=algebra'));
    for (const { status, json } of await Promise.all(requests)) {
      assert.equal(status, 200);
      const { momentum: _, ...expected } = before;
      for (const [name, value] of Object.entries(expected))
        assert.deepEqual(json.data[name], fromRedis.includes(name) ? value : null, name);
    }
    assert.equal((await velocity('unknown')).status, 404);
    await answer('kim');
  });
  await waitFor('the answer of the outage', async () => {
    const { data } = (await velocity('kim')).json;
    assert.ok(data.source_lag_seconds === null || data.source_lag_seconds >= 0);
    return data.source_lag_seconds === 0 && data.series.at(-1).attempts === 1;
  });
});

test('Statistics, histories and lists of learners return 503 while ClickHouse hangs, instead of partial data', async () => {
  await answer('mia');
  await waitFor('the answer', async () => (await countRows('attempts', 'mia')) === 1);
  const paths = [
    ...['skill-statistics', 'skills/algebra/statistics', 'skills/algebra/items', 'skills/none/items'],
    ...['learners', 'learners?prefix=mia', 'learners/mia/attempts'],
    ...['mastery/mia/algebra/history', 'mastery/unknown/algebra/history'],
  ];
  const get = (path: string) => caller.get(`/api/v1/${path}`);
  await whileClickHouseHangs(async () => {
    const responses = await Promise.all(paths.map(get));
    assert.equal(responses.pop()?.status, 404, 'Redis knows the learners');
    for (const [i, response] of responses.entries()) {
      assert.equal(outcomeOf(response), '503 UNAVAILABLE', paths[i]);
      assert.equal(response.headers['retry-after'], '1', paths[i]);
    }
    const { status, json } = await caller.send('POST', '/api/v1/mastery', { user_ids: ['mia'] });
    assert.deepEqual([status, json.data.results[0].data.total_attempts], [200, 1], 'mastery of a class');
  });
  const statuses: number[] = [];
  for (const path of paths) statuses.push((await askInTurn(() => get(path))).status);
  assert.deepEqual(statuses, [200, 200, 200, 404, 200, 200, 200, 200, 404]);
  assert.equal((await get('learners?prefix=mia')).json.data.learners.length, 1);
});

test('The dashboard shows what Redis knows while ClickHouse hangs, and the rest on "Try again"', {
  ...inBrowser,
  timeout: 240_000,
}, async (t) => {
  const key = await (await keysOf(t, service)).add({ tenant: 'watched', scopes: allScopes });
  const watcher = callerOf(service, key);
  const answers = Array.from({ length: 24 }, (_, i) => event({ user_id: 'ada', is_correct: i % 3 !== 0 }));
  assert.equal((await watcher.trackAll(answers)).status, 200);
  const listed = async () => (await watcher.get('/api/v1/learners')).json.data?.learners.length;
  await waitFor('rows in ClickHouse', async () => (await listed()) === 1);
  const hashes = ['#/learner/ada', '#/class?ids=ada', '#/skills', '#/model', '#/operations/erasures'];
  const pages = await Promise.all(hashes.map(() => openDashboard(t, { ...service, key })));
  await whileClickHouseHangs(async () => {
    await Promise.all(pages.map(({ show }, i) => show(hashes[i] as string, 0)));
    const [learner, group, ...others] = pages as [Dashboard, Dashboard, ...Dashboard[]];
    await learner.page.getByText('24 answers').first().waitFor();
    await learner.page.getByRole('link', { name: 'algebra' }).first().waitFor();
    await group.page.getByRole('link', { name: 'ada' }).first().waitFor();
    for (const { page, assertUsable } of others) {
      await page.getByRole('alert').first().waitFor();
      await assertUsable();
    }
  });
  for (const { page, complaints } of pages) {
    const retry = page.getByRole('button', { name: 'Try again' });
    await waitFor('the missing data', async () => {
      if ((await retry.count()) > 0) await retry.first().click();
      return (await page.getByText('Loading').count()) + (await page.getByRole('alert').count()) === 0;
    });
    assert.deepEqual(complaints, []);
  }
});

test('An erasure that is requested while ClickHouse hangs completes afterwards', async () => {
  const user = 'erased';
  await answer(user);
  let url = '';
  await whileClickHouseHangs(async () => {
    await answer(user);
    const accepted = await caller.send('DELETE', `/api/v1/learners/${user}`);
    assert.equal(accepted.status, 202);
    url = accepted.json.data.status_url;
    await answer(user);
    assert.equal((await caller.get(url)).json.data?.status, 'pending');
  });
  await erasureDone(caller, url);
  await waitFor('the new history', async () => (await countRows('attempts', user)) === 1);
  assert.equal(await countRows('learner_skill_daily', user), 1);
});

test("An analyst's query with expensive rows ends at its limit and when its client hangs up", async () => {
  // 13 ms per row: a block of the default size takes minutes.
  const query =
    "SELECT sum(editDistance(repeat('ab', 2000), concat(repeat('ba', 2000), toString(number)))) FROM numbers(25000)";
  const { text } = await analyst(query, 1);
  assert.match(text, /TIMEOUT_EXCEEDED/);
  await analyst(query, 60, AbortSignal.timeout(500));
  assert.equal((await analyst('SELECT 1')).text, '1\n');
  assert.equal(await countRestarts('analyst_query'), 0);
});

test("An analyst's query that cannot be ended restarts ClickHouse, and no answer is lost", async () => {
  // One row of several minutes. Only the end of the process ends this query.
  const query = `SELECT 'a-learner', arrayMap(i -> editDistance(repeat('ab', 30000),
    concat(repeat('ba', 30000), toString(i))), range(50)) FROM numbers(1)`;
  let isOver = false;
  let sent = 0;
  const answering = (async () => {
    for (; !isOver; sent += 1) {
      const { status } = await caller.track(event({ user_id: 'eve', event_id: `${sent}` }));
      assert.equal(status, 200);
      await sleep(20);
    }
  })();
  const { status, seconds } = await analyst(query, 1);
  assert.equal(status, 0, 'the connection is cut off');
  assert.ok(seconds > 5.5, `${seconds} s`);
  await waitFor('ClickHouse', async () => (await analyst('SELECT 1')).text === '1\n');
  assert.deepEqual([await countRestarts('analyst_query'), await countRestarts('died')], [1, 0]);

  const similar = query.replace('a-learner', 'b').replace('50', '60').toLowerCase();
  const repeated = await analyst(`/* again */ ${similar}`);
  assert.equal(repeated.status, 503);
  assert.match(
    repeated.text,
    /^Code: 202\. .*This query exceeded its time limit and could not be cancelled; try again in \d+ s/,
  );
  assert.equal((await analyst('SELECT 2')).text, '2\n');

  isOver = true;
  await answering;
  const counts = () =>
    Promise.all(['count()', 'uniqExact(event_id)'].map((of) => countRows('attempts', 'eve', of)));
  await waitFor('each answer once', async () => (await counts()).join() === `${sent},${sent}`);
});
