import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Cluster } from 'ioredis';
import { indices } from '../../src/lists.js';
import { oldAnswers, store } from '../support/builders/old-answers.js';
import { runCommand } from '../support/commands/command.js';
import { type Caller, callerOf } from '../support/http/http.js';
import { dumpRedis } from '../support/inspect/redis-dump.js';
import { countOf } from '../support/inspect/warehouse.js';
import { noCluster, startTestCluster } from '../support/servers/redis-cluster.js';
import { clickhouseOf, redisOf, startService } from '../support/servers/service.js';
import { askUntil, waitFor } from '../support/wait.js';

const options = { skip: noCluster, timeout: 600_000 };

/** Moves answers of now to another day. */
async function changeTimeZone(caller: Caller): Promise<void> {
  const time_zone = new Date().getUTCHours() < 12 ? 'Etc/GMT+12' : 'Pacific/Kiritimati';
  assert.equal((await caller.send('PUT', '/api/v1/settings', { time_zone })).status, 202);
  const read = () => caller.get('/api/v1/settings');
  await askUntil('the change', read, ({ json }) => json.data.time_zone_change.status === 'done');
}

test('`npm run` parked, audit, retain and rebuild cover all nodes of a Redis Cluster', options, async (t) => {
  const { url } = await startTestCluster(t);
  const service = await startService(t, { redisUrl: url });
  const redis = (await redisOf(t, url)) as Cluster;
  const clickhouse = clickhouseOf(t, service);
  const caller = callerOf(service, service.key);
  const env = { DATA_DIR: service.dataDir, REDIS_URL: url };
  const run = (name: string, ...args: string[]) => runCommand(name, env, ...args);
  const records = async () => {
    const dumps = await Promise.all(redis.nodes('master').map(dumpRedis));
    return dumps
      .flatMap((dump) => [...dump].filter(([name]) => /:(l|h[01]|u):|:rare$|^st:\{groups\}:[gm]:/.test(name)))
      .sort();
  };
  const learners = indices(24).map((i) => `learner ${i}`);
  const rejected = learners.slice(0, 2);
  const events = learners.flatMap((user_id) =>
    [0, 1].map((i) => ({ user_id, skill_id: `skill ${i}`, is_correct: i > 0, event_id: `e${i}` })),
  );
  for (const user_id of rejected)
    events.push({ user_id, skill_id: 'rejected', is_correct: true, event_id: 'e2' });
  const stored = (count: number): Promise<unknown> =>
    waitFor('rows', async () => (await countOf(clickhouse, 'attempts')) === count);
  const constraint = "ALTER TABLE attempts ADD CONSTRAINT no CHECK skill_id != 'rejected'";
  await waitFor('the table', async () => (await countOf(clickhouse, 'attempts')) === 0);
  await clickhouse.command({ query: constraint });
  assert.equal((await caller.trackAll(events)).status, 200);
  const group = { name: 'Class', user_ids: learners };
  assert.equal((await caller.send('PUT', '/api/v1/groups/class', group)).status, 200);
  const profile = { display_name: 'First learner' };
  assert.equal((await caller.send('PUT', '/api/v1/learners/learner%200/profile', profile)).status, 200);
  await stored(2 * learners.length);
  await waitFor('parked rows', async () => {
    const { out } = await run('parked', 'list', '--json');
    return out.split('\n').length === rejected.length + 1;
  });
  await clickhouse.command({ query: 'ALTER TABLE attempts DROP CONSTRAINT no' });
  assert.equal((await run('parked', 'redrive')).out, `${rejected.length} rows requeued\n`);
  await stored(events.length);
  const audited = await run('audit', '--json');
  assert.deepEqual([audited.code, audited.err], [0, ''], audited.out);

  await store(clickhouse, oldAnswers([1, 2]));
  const retained = await run('retain', '--days', '200');
  assert.deepEqual([retained.code, retained.err], [0, '']);
  assert.match(retained.out, /202601.*deleted\n.*202602.*deleted/);
  await stored(events.length);

  await changeTimeZone(caller);
  await stored(events.length);
  const before = await records();
  await Promise.all(redis.nodes('master').map((node) => node.flushall()));
  await waitFor('the empty Redis', async () => (await fetch(`${service.baseUrl}/readyz`)).status === 503);
  const rebuilt = await run('rebuild', '--json');
  assert.equal(rebuilt.code, 0, rebuilt.out + rebuilt.err);
  const now = new Map(await records());
  for (const [name, lines] of before) {
    // The rebuild adds the skills of learners from the archive.
    const found = name.endsWith(':rare')
      ? now.get(name)?.filter((line) => lines.includes(line))
      : now.get(name);
    assert.deepEqual(found, lines, name);
  }
  const verified = await run('rebuild', '--verify', '--json');
  assert.deepEqual([verified.code, verified.err], [0, ''], verified.out);
  // The rebuild also restores learners from the archive.
  const restored = [...now.keys()].filter((name) => /^st:\{p\d+\}:l:/.test(name)).length;
  assert.ok(restored > learners.length, `${restored} learners`);
  assert.equal(JSON.parse(rebuilt.out).learners, restored);
});
