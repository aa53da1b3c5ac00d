import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Cluster } from 'ioredis';
import { defaultSkillSetting } from '../../src/domain/catalogue/catalogue.js';
import { connectQueue } from '../../src/jobs/consumer.js';
import { createLogger } from '../../src/logger.js';
import { writeSkills } from '../../src/store/catalogue/catalogue-store.js';
import { createServedModels } from '../../src/store/catalogue/served-models.js';
import { connectRedis, waitUntilReady } from '../../src/store/redis/connection/client.js';
import { catalogueRevisionsKey } from '../../src/store/redis/keys.js';
import { openDeployment } from '../../src/store/redis/server/deployment.js';
import { collectRedisWarnings } from '../../src/store/redis/server/server-info.js';
import { endOf } from '../support/commands/command.js';
import { givenClusterName } from '../support/servers/embedded.js';
import { noCluster, startTestCluster } from '../support/servers/redis-cluster.js';
import { redisOf } from '../support/servers/service.js';

const options = { skip: noCluster, timeout: 600_000 };

/** Test files that also run on a Cluster, with a pattern of the titles. Other tests use no other Redis commands. */
const onCluster = {
  'integration/learner-store': '.',
  'integration/id-sweep': '.',
  'integration/known-skills': '.',
  'integration/concurrency': '.',
  'integration/replay': '.',
  'contract/erasure': '^DELETE .* removes the learner everywhere',
  'contract/class-mastery': '^POST mastery returns for each',
  'contract/groups': '.',
  'contract/activity': '.',
  'contract/live-history': '.',
  'contract/key-management': '.',
  'contract/learners': '^GET /learners hides an erased learner',
  'contract/model-versions': '^POST model/rollback activates',
  'contract/next-items': '^Next items (return|of an unknown|accept)',
  'contract/operations': '.',
  'contract/settings': '.',
  'contract/retraction': 'concurrent$|id expires$|parked rows|^The audit',
};

test('The stores and endpoints pass their tests on a Redis Cluster', options, async (t) => {
  const { url } = await startTestCluster(t);
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  for (const [name, pattern] of Object.entries(onCluster))
    await t.test(`The tests of ${name} pass on a Redis Cluster`, async (t) => {
      const file = fileURLToPath(new URL(`../${name}.test.js`, import.meta.url));
      const child = spawn(process.execPath, [`--test-name-pattern=${pattern}`, file], {
        env: { ...env, [givenClusterName]: url },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      t.after(() => child.kill('SIGKILL'));
      const { code, out, err } = await endOf(child);
      assert.equal(code, 0, out + err);
      assert.match(out, /^(ℹ|#) pass [1-9]/m);
      assert.match(out, /^(ℹ|#) fail 0$/m);
    });
});

test('connectRedis and connectQueue find and await all nodes if one address is dead', options, async (t) => {
  const [, second] = (await startTestCluster(t)).url.split(',');
  const url = `redis://:test@127.0.0.1:1,${second}`;
  for (const client of [connectRedis(url), connectQueue(url, createLogger('silent', 'test'), () => false)]) {
    client.on('error', () => undefined);
    t.after(() => client.disconnect());
    await waitUntilReady(client, 10_000);
    const nodes = 'nodes' in client ? client.nodes() : [];
    const replies = await Promise.all(nodes.map((node) => node.ping()));
    assert.deepEqual(replies, Array(6).fill('PONG'));
  }
  // waitUntilReady waits for all masters.
  for (let round = 0; round < 5; round++) {
    const client = connectRedis(url) as Cluster;
    client.on('error', () => undefined);
    t.after(() => client.disconnect());
    const ready = waitUntilReady(client, 10_000);
    // The client learns of two masters only when it becomes ready.
    while (client.status !== 'ready') await nextTurn();
    await waitUntilReady(client, 10_000);
    const statuses = client.nodes('master').map(({ status }) => status);
    assert.deepEqual(statuses, ['ready', 'ready', 'ready']);
    await ready;
  }
});

test('ServedModels keeps a known catalogue while its Redis node is down', options, async (t) => {
  const cluster = await startTestCluster(t);
  const client = await redisOf(t, cluster.url);
  await openDeployment(client, async () => false);
  const skill = { skillId: 'algebra', setting: defaultSkillSetting, ifRevision: null };
  await writeSkills(client, 'school', [skill], 1, { knownSkills: 1000 });
  const served = createServedModels(async () => client, { error: ({ err }) => assert.ifError(err) });
  t.after(() => served.close());
  const model = await served.get('school');
  await (await cluster.findNodes(catalogueRevisionsKey)).master.signal('SIGKILL');
  assert.equal(await served.get('school'), model);
  await assert.rejects(served.get('stranger'), /unavailable/);
});

test('collectRedisWarnings checks every node and skips dead ones', options, async (t) => {
  const cluster = await startTestCluster(t);
  const [, second, , , slow, dead] = cluster.nodes;
  for (const { redis } of cluster.nodes) await redis.config('SET', 'appendonly', 'yes', 'maxmemory', '1gb');
  const client = await redisOf(t, cluster.url);
  assert.deepEqual(await collectRedisWarnings(client), []);
  await slow?.redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
  const [policy = '', ...others] = await collectRedisWarnings(client);
  assert.match(policy, /allkeys-lru/);
  assert.deepEqual(others, []);
  await second?.redis.config('SET', 'hash-max-listpack-value', '64');
  const warnings = await collectRedisWarnings(client);
  assert.match(
    warnings.filter((one) => one !== policy).join(),
    /hash-max-listpack-value 64: .* Set it to 1024/,
  );

  await slow?.signal('SIGSTOP');
  await dead?.signal('SIGKILL');
  const collected = collectRedisWarnings(await redisOf(t, cluster.url));
  await slow?.signal('SIGCONT');
  assert.match((await collected).join(), /allkeys-lru/);
});
