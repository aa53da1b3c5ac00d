/** What holds on one server holds on a Redis Cluster: tests of the ledger and of concurrency, run there once more. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { type TestContext, test } from 'node:test';
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
import { type Ended, endOf } from '../support/commands/command.js';
import { givenClusterName } from '../support/servers/given-cluster.js';
import { exitAfterTests } from '../support/servers/linger.js';
import { type ClusterNode, noCluster, startTestCluster } from '../support/servers/redis-cluster.js';

exitAfterTests();

const options = { skip: noCluster, timeout: 600_000 };

/** A test file in a process of its own, on the given Cluster; with a pattern, those of its tests whose names match. */
function runTest(t: TestContext, name: string, pattern: string, url: string): Promise<Ended> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const file = fileURLToPath(new URL(`../${name}.test.js`, import.meta.url));
  const child = spawn(process.execPath, [`--test-name-pattern=${pattern}`, file], {
    env: { ...env, [givenClusterName]: url },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  return endOf(child);
}

/** Files by what is run of them. The other erasures and takings back use no other commands, and wait for ClickHouse. */
const onCluster = {
  'integration/learner-store': '.',
  'integration/id-sweep': '.',
  'integration/known-skills': '.',
  'integration/concurrency': '.',
  'integration/replay': '.',
  'contract/erasure': '^DELETE .* removes the learner everywhere',
  'contract/class-mastery': '^POST mastery returns for each',
  'contract/key-management': '.',
  'contract/learners': '^GET /learners hides an erased learner',
  'contract/model-versions': '^POST model/rollback activates',
  'contract/next-items': '^Next items (return|of an unknown|accept)',
  'contract/operations': '.',
  'contract/retraction': 'concurrent$|id expires$|parked rows|^The audit',
};

// All that a test may take.
test('one server’s tests', { ...options, timeout: 600_000 }, async (t) => {
  const { url } = await startTestCluster(t);
  for (const [name, pattern] of Object.entries(onCluster)) {
    await t.test(name, async (t) => {
      const { code, out, err } = await runTest(t, name, pattern, url);
      assert.equal(code, 0, out + err);
      assert.match(out, /^(ℹ|#) pass [1-9]/m);
      assert.match(out, /^(ℹ|#) fail 0$/m);
    });
  }
});

test(
  'every node is found and logged in to, from the address of one that is dead and one that is not',
  options,
  async (t) => {
    const cluster = await startTestCluster(t);
    const [, second] = cluster.url.split(',');
    const url = `redis://:test@127.0.0.1:1,${second}`;
    const logger = createLogger('silent', 'test');
    for (const client of [connectRedis(url), connectQueue(url, logger, () => false)]) {
      client.on('error', () => undefined);
      t.after(() => client.disconnect());
      await waitUntilReady(client, 10_000);
      const nodes = 'nodes' in client ? client.nodes() : [];
      assert.equal(nodes.length, 6);
      assert.deepEqual(
        await Promise.all(nodes.map((node) => node.ping())),
        nodes.map(() => 'PONG'),
      );
    }
  },
);

test('whoever waits for a Cluster finds its masters connected, not only the first', options, async (t) => {
  const { url } = await startTestCluster(t);
  // Of two masters a client hears only when it becomes ready.
  const [known] = url.split(',');
  for (let round = 0; round < 5; round++) {
    const client = connectRedis(`redis://:test@127.0.0.1:1,${known}`) as Cluster;
    client.on('error', () => undefined);
    t.after(() => client.disconnect());
    const first = waitUntilReady(client, 10_000);
    while (client.status !== 'ready') await nextTurn();
    await waitUntilReady(client, 10_000);
    assert.deepEqual(
      client.nodes('master').map(({ status }) => status),
      ['ready', 'ready', 'ready'],
    );
    await first;
  }
});

test('a catalogue that is known stays in force while its node is away', options, async (t) => {
  const cluster = await startTestCluster(t);
  const client = connectRedis(cluster.url);
  client.on('error', () => undefined);
  t.after(() => client.disconnect());
  await waitUntilReady(client, 10_000);
  await openDeployment(client, async () => false);
  await writeSkills(
    client,
    'school',
    [{ skillId: 'algebra', setting: defaultSkillSetting, ifRevision: null }],
    1,
    {
      knownSkills: 1000,
    },
  );
  const redis = async () => client;
  const served = createServedModels(redis, { error: ({ err }) => assert.ifError(err) });
  t.after(() => served.close());
  const model = await served.get('school');
  await (await cluster.serving(catalogueRevisionsKey)).master.signal('SIGKILL');
  assert.equal(await served.get('school'), model);
  await assert.rejects(served.get('stranger'), /not available/);
});

test('a node that could forget is told of, whichever it is', options, async (t) => {
  const cluster = await startTestCluster(t);
  for (const { redis } of cluster.nodes) await redis.config('SET', 'appendonly', 'yes', 'maxmemory', '1gb');
  const client = connectRedis(cluster.url);
  t.after(() => client.disconnect());
  await waitUntilReady(client, 10_000);
  assert.deepEqual(await collectRedisWarnings(client), []);
  await cluster.nodes[4]?.redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
  const warnings = await collectRedisWarnings(client);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? '', /allkeys-lru/);
  await cluster.nodes[1]?.redis.config('SET', 'hash-max-listpack-value', '64');
  const [shorter] = (await collectRedisWarnings(client)).filter((one) => !warnings.includes(one));
  assert.match(shorter ?? '', /hash-max-listpack-value 64: .* Set 1024/);
});

test('a node that is slow to connect is heard, one that is gone is not waited for', options, async (t) => {
  const cluster = await startTestCluster(t);
  const [slow, gone] = cluster.nodes.slice(4) as [ClusterNode, ClusterNode];
  await slow.redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
  await slow.signal('SIGSTOP');
  await gone.signal('SIGKILL');
  const client = connectRedis(cluster.url);
  client.on('error', () => undefined);
  t.after(() => client.disconnect());
  await waitUntilReady(client, 10_000);
  const asked = collectRedisWarnings(client);
  await slow.signal('SIGCONT');
  assert.match((await asked).join(), /allkeys-lru/);
});
