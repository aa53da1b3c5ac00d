/** The engine has no Keeper, so the tests use one shard without replication. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import { Session } from 'chdb';
import { encodeRetractionRow } from '../../src/contracts/journal/journal.js';
import { defaultAnalystLimits } from '../../src/contracts/settings/analyst-limits.js';
import { createBridge } from '../../src/embedded/clickhouse/http.js';
import { startLanes } from '../../src/embedded/clickhouse/query-lanes.js';
import { findFreePort } from '../../src/embedded/free-port.js';
import { applyRetention, planRetention } from '../../src/services/retention/apply-retention.js';
import { acceptedCountsKey, acceptedField } from '../../src/store/redis/keys.js';
import { connectWarehouse, selectRows, syncReplicas } from '../../src/warehouse/clickhouse/client.js';
import { buildDeleteFrom } from '../../src/warehouse/clickhouse/ddl.js';
import { createAttemptWarehouse } from '../../src/warehouse/ingest/attempt-warehouse.js';
import { createJournalWarehouse } from '../../src/warehouse/ingest/journal-warehouse.js';
import { createCorrectionWarehouse } from '../../src/warehouse/maintenance/correction-warehouse.js';
import { buildSchemaStatements, createSchema } from '../../src/warehouse/schema/create-schema.js';
import { attemptRow, encodedRows } from '../support/builders/attempt-rows.js';
import { daysSinceThen, everyView, partsOf } from '../support/builders/old-answers.js';
import { auditsOf } from '../support/commands/audits.js';
import { allOnce, counts } from '../support/inspect/warehouse.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';

const cluster = 'learning';
const statements = buildSchemaStatements(cluster).flat();
/** ClickHouse's error code without Keeper. */
const noKeeper = '225';
const limit = { timeout: 600_000 };

/** One shard on this server, and the macros of replicated tables. */
const serverConfig = (tcpPort: number): string => `<clickhouse>
  <tcp_port>${tcpPort}</tcp_port>
  <macros><shard>01</shard><replica>a</replica></macros>
  <remote_servers replace="1"><${cluster}><shard>
    <internal_replication>true</internal_replication>
    <replica><host>127.0.0.1</host><port>${tcpPort}</port></replica>
  </shard></${cluster}></remote_servers>
</clickhouse>`;

async function startServer(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'skilltrace-cluster-'));
  const config = join(dir, 'config.xml');
  await writeFile(config, serverConfig(await findFreePort()));
  const engine = new Session(join(dir, 'data'), { connectionArgs: [`--config-file=${config}`] });
  await engine.queryAsync('CREATE DATABASE learning');
  const lanes = startLanes(join(dir, 'data'), {
    killQuery: () => {},
    reportOverrun: () => {},
    crash: (error) => assert.fail(error),
  });
  const accounts = [{ name: 'u', password: 'p', readonly: false }];
  const server = createBridge({
    lanes,
    accounts,
    database: 'learning',
    overruns: [],
    analystLimits: defaultAnalystLimits,
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(async () => {
    server.closeAllConnections();
    server.close();
    await lanes.close();
    engine.close();
    await rm(dir, { recursive: true, force: true, maxRetries: 10 });
  });
  return `http://u:p@127.0.0.1:${(server.address() as AddressInfo).port}/learning`;
}

const onThisServer = (query: string): string => query.replaceAll(` ON CLUSTER ${cluster}`, '');

function unreplicated(query: string): string {
  if (query.startsWith('SYSTEM SYNC REPLICA')) return 'SELECT 1';
  return onThisServer(query)
    .replaceAll(/Replicated(\w*MergeTree)\([^)]*\)/g, '$1')
    .replaceAll(/\breplicated_deduplication_window/g, 'non_replicated_deduplication_window');
}

const withoutReplication = (client: ClickHouseClient): ClickHouseClient =>
  new Proxy(client, {
    get: (target, name) => {
      if (name === 'command')
        return (params: Parameters<ClickHouseClient['command']>[0]) =>
          target.command({ ...params, query: unreplicated(params.query) });
      return Reflect.get(target, name).bind(target);
    },
  });

test('The warehouse works on a ClickHouse cluster', limit, async (t) => {
  const url = await startServer(t);
  const client = connectWarehouse(url, cluster);
  t.after(() => client.close());
  const single = withoutReplication(client);

  await t.test('Every schema statement is valid and has ON CLUSTER', async () => {
    const others = [`${buildDeleteFrom('daily_skill', cluster)} WHERE 1`];
    const command = async ({ query }: { query: string }) => void others.push(query);
    await syncReplicas({ command } as unknown as ClickHouseClient, 'attempts', cluster);
    for (const query of [...statements, ...others]) {
      const [row] = await selectRows<{ text: string }>(client, 'SELECT formatQuery({query:String}) AS text', {
        params: { query },
      });
      assert.match(row?.text ?? '', new RegExp(`ON CLUSTER ${cluster}`), query);
    }
  });

  await t.test('A replicated table needs only Keeper', async () => {
    const replicated = statements.filter((query) => query.includes('ENGINE = Replicated'));
    const distributed = statements.filter((query) => query.includes('ENGINE = Distributed'));
    assert.equal(replicated.length, distributed.length);
    for (const query of replicated) {
      assert.match(query, /^CREATE TABLE IF NOT EXISTS \w+_local ON CLUSTER learning /);
      assert.doesNotMatch(query, /non_replicated/);
      await assert.rejects(client.command({ query: onThisServer(query) }), { code: noKeeper });
    }
  });

  await t.test('AttemptWarehouse stores a repeated block once and repairs rollups', async () => {
    await createSchema(single, cluster);
    assert.equal(await createSchema(single, cluster), false);
    const warehouse = createAttemptWarehouse(single, cluster);
    const rows = Array.from({ length: 50 }, (_, i) => attemptRow(i));
    for (const token of ['one', 'one']) await warehouse.insert([encodedRows(rows)], token);
    assert.deepEqual(await counts(single), allOnce(50));
    assert.deepEqual(await selectRows(client, 'SELECT toUInt32(count()) AS rows FROM attempts_local'), [
      { rows: 50 },
    ]);
    const ranges = [{ partition: 0, from: '1-0', to: '1-49', rows: 50 }];
    assert.equal(await warehouse.countStored(ranges), 50);
    assert.deepEqual(await warehouse.repairRollups(ranges), []);
    await client.command({ query: 'ALTER TABLE daily_skill_local DELETE WHERE 1' });
    assert.deepEqual(await warehouse.repairRollups(ranges), ['daily_skill']);
    assert.deepEqual(await counts(single), allOnce(50));
  });

  await t.test('CorrectionWarehouse removes rows from a number on, and whole learners', async () => {
    const corrections = createCorrectionWarehouse(single, cluster);
    const userId = 'learner-7';
    const below = { ms: 1.8e12, seq: 0 };
    const learner = { tenant: 'default', userId, partition: 0, below, goalAt: 0 };
    const warehouse = createAttemptWarehouse(single, cluster);
    const more = Array.from({ length: 3 }, (_, i) => attemptRow(7, { learnerSeq: 2 + i }));
    await warehouse.insert([encodedRows(more, 1000)], 'more');
    assert.deepEqual(await counts(single), allOnce(53));
    await corrections.remove([{ ...learner, fromSeq: 3 }]);
    assert.deepEqual(await counts(single), allOnce(51));
    const whole = [{ ...learner, fromSeq: 0 }];
    assert.equal(Object.values((await corrections.countRemovals(whole))[0]?.answers ?? {})[0], 2);
    await corrections.remove(whole);
    assert.deepEqual(await counts(single), allOnce(49));
    const answer = { tenant: 'default', userId, eventId: 'gone', skillId: 'skill', learnerSeq: 2 };
    const row = encodeRetractionRow({ ...answer, receivedAt: 1.7e12, firstAnswer: '' });
    await createJournalWarehouse(single).insert('taken_back', [Buffer.from(`${1.75e12}\t${row}`)]);
    await corrections.removeLateRows(whole);
    const [remaining = {}] = await corrections.countRemaining(whole);
    assert.deepEqual([...new Set(Object.values(remaining))], [0]);
  });

  await t.test('The retention archives a month, and an audit finds no mismatch', async (t) => {
    const redis = await redisOf(t, await startTestRedis(t));
    const accepted = acceptedField('default', Date.UTC(2026, 0, 15) / 86_400_000);
    await redis.hset(acceptedCountsKey(0), accepted, 49);
    const audited = async () => {
      const { mismatches, notCompared, totals } = await auditsOf(
        redis,
        single,
        cluster,
      )({ days: daysSinceThen() });
      return { mismatches, notCompared, stored: totals.stored };
    };
    assert.deepEqual(await audited(), { mismatches: [], notCompared: [], stored: 49 });
    const parts = partsOf(single, redis, 0, cluster);
    const before = await everyView(single);
    assert.deepEqual(await applyRetention(parts, await planRetention(parts, 202601)), [202601]);
    assert.deepEqual(await everyView(single), before);
    assert.deepEqual(await selectRows(client, 'SELECT toUInt32(count()) AS rows FROM attempts'), [
      { rows: 0 },
    ]);
    assert.deepEqual(await audited(), { mismatches: [], notCompared: [], stored: 0 });
  });

  await t.test('createSchema rejects the tables of a single server, and the reverse', async (t) => {
    await assert.rejects(createSchema(single, null), /belong to a cluster/);
    await client.command({ query: 'CREATE DATABASE before' });
    const other = new URL(url);
    other.pathname = '/before';
    const before = connectWarehouse(other.href, cluster);
    t.after(() => before.close());
    await createSchema(before);
    await assert.rejects(createSchema(withoutReplication(before), cluster), /were created without a cluster/);
  });
});
