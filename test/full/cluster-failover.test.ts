/** A Redis Cluster loses a master: what was confirmed stays, and the rest goes on. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClickHouseClient } from '@clickhouse/client';
import { markerKey, partitionOf, partitionPrefix } from '../../src/store/redis/keys.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { startCrowd } from '../support/builders/crowd.js';
import { callerOf } from '../support/http/http.js';
import { exitAfterTests } from '../support/servers/linger.js';
import {
  type ClusterNode,
  noCluster,
  startTestCluster,
  type TestCluster,
} from '../support/servers/redis-cluster.js';
import { clickhouseOf, type Scoped, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

exitAfterTests();

const options = { skip: noCluster, timeout: 600_000 };

async function start(t: TestContext, redisWaitReplicas: number) {
  const scope = lastFirst(t);
  const cluster = await startTestCluster(scope);
  const service = await startService(scope, { redisUrl: cluster.url, redisWaitReplicas });
  return { cluster, caller: callerOf(service, service.key), clickhouse: clickhouseOf(scope, service) };
}

/** The service has to end before the Cluster does. */
function lastFirst(t: TestContext): Scoped {
  const ends: (() => unknown)[] = [];
  t.after(async () => {
    for (const end of ends.reverse()) await end();
  });
  return { after: (end) => ends.push(end) };
}

interface StoredAnswer {
  /** As the crowd names it. */
  readonly name: string;
  readonly rows: number;
}

const storedAnswers = (clickhouse: ClickHouseClient): Promise<StoredAnswer[]> =>
  selectRows<StoredAnswer>(
    clickhouse,
    `SELECT concat(user_id, '/', event_id) AS name, toUInt32(count()) AS rows FROM attempts GROUP BY name`,
  );

const learners = Array.from({ length: 32 }, (_, i) => `learner-${i}`);
const partition = (userId: string): number => partitionOf('default', userId, defaultPartitions);
/** On the node of the queues and of the models, too. */
const [first] = learners.filter((userId) => partition(userId) === 3) as [string];

interface Pair {
  readonly master: ClusterNode;
  readonly replica: ClusterNode;
}

/** Each resolves when the replica has taken over. */
const ends: Record<string, (pair: Pair, cluster: TestCluster, prefix: string) => Promise<unknown>> = {
  killed: async ({ master }, cluster, prefix) => {
    await master.signal('SIGKILL');
    await cluster.failOver(prefix, master);
  },
  'that hangs': async ({ master, replica }) => {
    await master.signal('SIGSTOP');
    await takeOver(replica, 'FORCE');
  },
  'replaced by a command': ({ replica }) => takeOver(replica),
};

async function takeOver({ redis }: ClusterNode, ...how: 'FORCE'[]): Promise<void> {
  await redis.call('CLUSTER', 'FAILOVER', ...how);
  await waitFor('the new master', async () => (await redis.role())[0] === 'master');
}

for (const [how, end] of Object.entries(ends)) {
  test(
    `a master ${how}, under load: nothing confirmed is lost, nothing is counted twice`,
    options,
    async (t) => {
      const { cluster, caller, clickhouse } = await start(t, 1);
      const crowd = startCrowd(caller, learners);
      await waitFor('some answers', () => crowd.confirmed.length > 500);
      const prefix = partitionPrefix(partition(first));
      await end(await cluster.serving(prefix), cluster, prefix);
      const before = crowd.confirmed.length;
      const goesOn = () => new Set(crowd.confirmed.slice(before).map((name) => name.split('/')[0])).size;
      await waitFor('every learner to be served again', () => goesOn() === learners.length);
      await crowd.stop();
      t.diagnostic(`${crowd.confirmed.length} confirmed, ${crowd.refused()} refused`);

      await waitFor(
        'the drain',
        async () => (await storedAnswers(clickhouse)).length >= crowd.confirmed.length,
      );
      const stored = await storedAnswers(clickhouse);
      assert.deepEqual(stored.map(({ name }) => name).sort(), [...crowd.confirmed].sort());
      assert.ok(stored.every(({ rows }) => rows === 1));
      for (const userId of learners) {
        const { json } = await untilServed(() => caller.get(`/api/v1/mastery/${userId}`));
        const counted = crowd.confirmed.filter((name) => name.startsWith(`${userId}/`)).length;
        assert.equal(json.data.skills[0].total_attempts, counted, userId);
      }
    },
  );
}

test(
  'an answer that no replica has is not confirmed, nor is its repetition, nor is it stored',
  options,
  async (t) => {
    const { cluster, caller, clickhouse } = await start(t, 1);
    const send = (id: string) =>
      caller.track({ user_id: first, skill_id: 'algebra', is_correct: true, event_id: id });
    const ids = async () => (await storedAnswers(clickhouse)).map(({ name }) => name);
    await untilServed(() => send('a'));
    await waitFor('the row', async () => (await ids()).length === 1);
    const prefix = partitionPrefix(partition(first));
    const { master, replica } = await cluster.serving(prefix);
    await replica.signal('SIGSTOP');
    for (let i = 0; i < 3; i++) {
      const { status, json, headers } = await send('b');
      assert.deepEqual([status, json.error.code], [503, 'UNAVAILABLE']);
      assert.ok(headers['retry-after']);
    }
    assert.deepEqual(await ids(), [`${first}/a`]);
    await master.redis.call('CLIENT', 'KILL', 'TYPE', 'replica');
    await master.signal('SIGKILL');
    await replica.signal('SIGCONT');
    await cluster.failOver(prefix, master);
    const again = await untilServed(() => send('b'));
    assert.equal(again.json.data.total_attempts, 2);
    await waitFor('both rows', async () => (await ids()).length === 2);
    assert.deepEqual(
      (await storedAnswers(clickhouse)).map(({ rows }) => rows),
      [1, 1],
    );
  },
);

async function untilServed<Answer extends { status: number }>(ask: () => Promise<Answer>): Promise<Answer> {
  for (let i = 0; i < 300; i++) {
    const answer = await ask();
    if (answer.status === 200) return answer;
    await sleep(100);
  }
  throw new Error('not answered within 300 tries');
}

test(
  'while a slot moves key by key nobody begins anew, and who needs what has moved is refused',
  options,
  async (t) => {
    const { cluster, caller } = await start(t, 0);
    const event = { user_id: first, skill_id: 'algebra', is_correct: true };
    const stranger = Array.from({ length: 1000 }, (_, i) => `stranger-${i}`).find(
      (userId) => partition(userId) === partition(first),
    );
    assert.equal((await caller.track(event)).status, 200);
    const prefix = partitionPrefix(partition(first));
    const { master } = await cluster.serving(prefix);
    const other = (await cluster.serving(partitionPrefix(0))).master;
    const slot = Number(await master.redis.cluster('KEYSLOT', prefix));
    const [from, to] = await Promise.all([master, other].map(({ redis }) => redis.cluster('MYID')));
    await other.redis.cluster('SETSLOT', slot, 'IMPORTING', String(from));
    await master.redis.cluster('SETSLOT', slot, 'MIGRATING', String(to));
    // All that it needs is where it was. What is not there may have moved: so nobody is new.
    assert.equal((await caller.track(event)).json.data.total_attempts, 2);
    assert.equal((await caller.track({ ...event, user_id: stranger })).status, 503);
    // The worst order: with the mark alone, the new node looks like one where every learner is new.
    const mark = markerKey(partition(first));
    const move = (from: ClusterNode, to: ClusterNode) =>
      from.redis.call('MIGRATE', '127.0.0.1', to.port, mark, 0, 1000, 'AUTH', 'test');
    await move(master, other);
    assert.equal((await caller.track(event)).status, 503);
    assert.deepEqual(await other.redis.cluster('GETKEYSINSLOT', slot, 100), [mark]);
    await master.redis.cluster('SETSLOT', slot, 'STABLE');
    await move(other, master);
    await other.redis.cluster('SETSLOT', slot, 'STABLE');
    assert.equal((await caller.track(event)).json.data.total_attempts, 3);
  },
);
