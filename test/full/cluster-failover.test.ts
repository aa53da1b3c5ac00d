import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import { markerKey, partitionOf, partitionPrefix } from '../../src/store/redis/keys.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { startCrowd } from '../support/builders/crowd.js';
import { callerOf, type JsonAnswer } from '../support/http/http.js';
import { reversed } from '../support/scope.js';
import {
  type ClusterNode,
  noCluster,
  startTestCluster,
  type TestCluster,
} from '../support/servers/redis-cluster.js';
import { clickhouseOf, startService } from '../support/servers/service.js';
import { askUntil, waitFor } from '../support/wait.js';

const options = { skip: noCluster, timeout: 600_000 };

async function start(t: TestContext, redisWaitReplicas: number) {
  const scope = reversed(t);
  const cluster = await startTestCluster(scope);
  const service = await startService(scope, { redisUrl: cluster.url, redisWaitReplicas });
  return { cluster, caller: callerOf(service, service.key), clickhouse: clickhouseOf(scope, service) };
}

/** Stored rows as `learner/event rows`, in order. */
async function readRows(clickhouse: ClickHouseClient): Promise<string[]> {
  const rows = await selectRows<{ row: string }>(
    clickhouse,
    `SELECT concat(user_id, '/', event_id, ' ', toString(count())) AS row FROM attempts GROUP BY user_id, event_id`,
  );
  return rows.map(({ row }) => row).sort();
}

const waitForOk = (send: () => Promise<JsonAnswer>): Promise<JsonAnswer> =>
  askUntil('status 200', send, ({ status }) => status === 200);

const learners = Array.from({ length: 32 }, (_, i) => `learner-${i}`);
const partition = (userId: string): number => partitionOf('default', userId, defaultPartitions);
/** On the node that also has queues and models. */
const [first] = learners.filter((userId) => partition(userId) === 3) as [string];
const prefix = partitionPrefix(partition(first));

async function promote({ redis }: ClusterNode, ...args: 'FORCE'[]): Promise<void> {
  await redis.call('CLUSTER', 'FAILOVER', ...args);
  await waitFor('the new master', async () => (await redis.role())[0] === 'master');
}

/** Each resolves when the replica is the master. */
const failovers: Record<string, (cluster: TestCluster) => Promise<void>> = {
  'is killed': async (cluster) => {
    const { master } = await cluster.findNodes(prefix);
    await master.signal('SIGKILL');
    await cluster.failOver(prefix, master);
  },
  hangs: async (cluster) => {
    const { master, replica } = await cluster.findNodes(prefix);
    await master.signal('SIGSTOP');
    await promote(replica, 'FORCE');
  },
  'is replaced by a command': async (cluster) => promote((await cluster.findNodes(prefix)).replica),
};

for (const [event, failOver] of Object.entries(failovers))
  test(`track-answer counts each confirmed answer once when a Redis master ${event}`, options, async (t) => {
    const { cluster, caller, clickhouse } = await start(t, 1);
    const crowd = startCrowd(caller, learners);
    await waitFor('some answers', () => crowd.confirmed.length > 500);
    await failOver(cluster);
    const before = crowd.confirmed.length;
    await waitFor('answers of every learner', () => {
      const served = crowd.confirmed.slice(before).map((name) => name.split('/')[0]);
      return new Set(served).size === learners.length;
    });
    await crowd.stop();
    const expected = crowd.confirmed.map((name) => `${name} 1`).sort();
    await waitFor('the drain', async () => (await readRows(clickhouse)).length >= expected.length);
    assert.deepEqual(await readRows(clickhouse), expected);
    for (const userId of learners) {
      const { json } = await waitForOk(() => caller.get(`/api/v1/mastery/${userId}`));
      const counted = crowd.confirmed.filter((name) => name.startsWith(`${userId}/`)).length;
      assert.equal(json.data.skills[0].total_attempts, counted, userId);
    }
  });

test(
  'track-answer with REDIS_WAIT_REPLICAS=1 confirms only answers that a replica has',
  options,
  async (t) => {
    const { cluster, caller, clickhouse } = await start(t, 1);
    const send = (id: string) =>
      caller.track({ user_id: first, skill_id: 'algebra', is_correct: true, event_id: id });
    await waitForOk(() => send('a'));
    await waitFor('the row', async () => (await readRows(clickhouse)).length === 1);
    const { master, replica } = await cluster.findNodes(prefix);
    await replica.signal('SIGSTOP');
    for (let i = 0; i < 3; i++) {
      const { status, json, headers } = await send('b');
      assert.deepEqual([status, json.error.code], [503, 'UNAVAILABLE']);
      assert.ok(headers['retry-after']);
    }
    assert.deepEqual(await readRows(clickhouse), [`${first}/a 1`]);
    await master.redis.call('CLIENT', 'KILL', 'TYPE', 'replica');
    await master.signal('SIGKILL');
    await replica.signal('SIGCONT');
    await cluster.failOver(prefix, master);
    const { json } = await waitForOk(() => send('b'));
    assert.equal(json.data.total_attempts, 2);
    await waitFor('both rows', async () => (await readRows(clickhouse)).length === 2);
    assert.deepEqual(await readRows(clickhouse), [`${first}/a 1`, `${first}/b 1`]);
  },
);

test('track-answer treats no learner as new while a slot moves between masters', options, async (t) => {
  const { cluster, caller } = await start(t, 0);
  const event = { user_id: first, skill_id: 'algebra', is_correct: true };
  const candidates = Array.from({ length: 1000 }, (_, i) => `stranger-${i}`);
  const stranger = candidates.find((userId) => partition(userId) === partition(first));
  assert.equal((await caller.track(event)).status, 200);
  const { master } = await cluster.findNodes(prefix);
  const other = (await cluster.findNodes(partitionPrefix(0))).master;
  const slot = Number(await master.redis.cluster('KEYSLOT', prefix));
  const [from, to] = await Promise.all([master, other].map(({ redis }) => redis.cluster('MYID')));
  await other.redis.cluster('SETSLOT', slot, 'IMPORTING', String(from));
  await master.redis.cluster('SETSLOT', slot, 'MIGRATING', String(to));
  assert.equal((await caller.track(event)).json.data.total_attempts, 2);
  assert.equal((await caller.track({ ...event, user_id: stranger })).status, 503);
  // The worst order: with the marker alone, every learner looks new on the other node.
  const marker = markerKey(partition(first));
  const migrate = (source: ClusterNode, target: ClusterNode) =>
    source.redis.call('MIGRATE', '127.0.0.1', target.port, marker, 0, 1000, 'AUTH', 'test');
  await migrate(master, other);
  assert.equal((await caller.track(event)).status, 503);
  assert.deepEqual(await other.redis.cluster('GETKEYSINSLOT', slot, 100), [marker]);
  await master.redis.cluster('SETSLOT', slot, 'STABLE');
  await migrate(other, master);
  await other.redis.cluster('SETSLOT', slot, 'STABLE');
  assert.equal((await caller.track(event)).json.data.total_attempts, 3);
});
