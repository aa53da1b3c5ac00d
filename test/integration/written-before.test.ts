/** What earlier versions of the service left in Redis and ClickHouse is drained, replaced and counted on from. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { ClickHouseClient } from '@clickhouse/client';
import { outboxColumns, rowColumns } from '../../src/contracts/attempt-row.js';
import type { RedisClient } from '../../src/store/redis/client.js';
import { defaultPartitions } from '../../src/store/redis/deployment.js';
import { outboxKey } from '../../src/store/redis/keys.js';
import { connectWarehouse, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createTable } from '../../src/warehouse/clickhouse/table.js';
import { attempts, originColumns } from '../../src/warehouse/schema/attempts.js';
import { migrate, migrations } from '../../src/warehouse/schema/migrations.js';
import { runCommand } from '../support/command.js';
import { freshDatabase, startTestRedis } from '../support/embedded.js';
import { callerOf } from '../support/http.js';
import { type DumpedKey, loadKeys } from '../support/key-dump.js';
import { makeCurrent, makeOlder } from '../support/older-deployment.js';
import { redisOf, startService } from '../support/service.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';
import { storedOnce } from '../support/warehouse.js';

const folder = fileURLToPath(new URL('../../../test/fixtures/0.1', import.meta.url));
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
const stored = 40;
const answers = 60;

/** Event ids are restored from rows that arrived within a day; where they stood before does not matter any more. */
const asOfToday = (key: DumpedKey): DumpedKey =>
  key.key.endsWith(':out') ? { ...key, values: key.values.map(arrivedNow) } : key;
const idsOfBefore = 'st:{p*}:i:*';
/** Known skills were in a set without order, which nothing reads any more: a rebuild finds them in the answers. */
const isReadToday = ({ type }: DumpedKey): boolean => type !== 'set';

/** @param entry id, and field and value of the row */
function arrivedNow([id = '', field = '', row = '']: DumpedKey['values'][number]): string[] {
  const columns = Buffer.from(row, 'base64').toString().split('\t');
  columns[rowColumns.indexOf('received_at')] = (Date.now() / 1000).toFixed(3);
  return [id, field, Buffer.from(columns.join('\t')).toString('base64')];
}

async function loadRedis(t: TestContext): Promise<{ url: string; client: RedisClient }> {
  const url = await startTestRedis(t);
  const client = await redisOf(t, url);
  const keys: DumpedKey[] = JSON.parse(read('redis.json'));
  await loadKeys(client, keys.filter(isReadToday).map(asOfToday));
  return { url, client };
}

/** As the version before drains: an entry is a row, and has its id. */
async function drainAsBefore(redis: RedisClient, clickhouse: ClickHouseClient): Promise<void> {
  const query = 'SELECT partition_id, outbox_ms, outbox_seq FROM attempts';
  const result = await clickhouse.query({ query, format: 'TabSeparated' });
  const there = new Set((await result.text()).split('\n'));
  for (let partition = 0; partition < defaultPartitions; partition++) {
    for (const [id, [, row = '']] of await redis.xrange(outboxKey(partition), '-', '+')) {
      const name = `${partition}\t${id.replace('-', '\t')}`;
      const names = [...outboxColumns, ...rowColumns.slice(0, row.split('\t').length)].join();
      const insert = `INSERT INTO attempts (${names}) FORMAT TabSeparated\n${name}\t${row}\n`;
      if (!there.has(name)) await clickhouse.command({ query: insert });
    }
    await redis.xtrim(outboxKey(partition), 'MAXLEN', 0);
  }
}

/** Half of the rows as schema 3 had them, before the upgrade to that of the version before; the others as that has them. */
async function loadClickhouse(t: TestContext): Promise<string> {
  const { clickhouseUrl } = await freshDatabase();
  const client = connectWarehouse(clickhouseUrl);
  t.after(() => client.close());
  const newer = new Set(originColumns.map(({ name }) => name));
  const older = attempts.columns.filter(({ name }) => !newer.has(name));
  const [first, ...next] = migrations.slice(0, 3);
  assert.ok(first);
  const steps = [[createTable({ ...attempts, columns: older })], ...first.steps];
  await migrate(client, null, [{ ...first, steps }, ...next]);
  const [names = '', ...lines] = read('attempts.tsv').trimEnd().split('\n');
  assert.equal(lines.length, stored);
  const columns = names.split('\t');
  const insert = async (rows: readonly string[], left: ReadonlySet<string>): Promise<void> => {
    const kept = columns.flatMap((name, i) => (left.has(name) ? [] : [i]));
    const cut = (line: string) => kept.map((i) => line.split('\t')[i]).join('\t');
    const query = `INSERT INTO attempts (${cut(names).replaceAll('\t', ', ')}) FORMAT TabSeparated\n${rows.map(cut).join('\n')}\n`;
    await client.command({ query });
  };
  await insert(lines.slice(0, stored / 2), newer);
  assert.deepEqual(await migrate(client, null, migrations.slice(0, 4)), [4]);
  await insert(lines.slice(stored / 2), new Set());
  return clickhouseUrl;
}

test('a deployment as version 0.1 left it goes on', { timeout: 600_000 }, async (t) => {
  const redis = await loadRedis(t);
  const clickhouseUrl = await loadClickhouse(t);
  const clickhouse = connectWarehouse(clickhouseUrl);
  t.after(() => clickhouse.close());
  const start = () => startService(t, { redisUrl: redis.url, clickhouseUrl });
  const env = { REDIS_URL: redis.url, CLICKHOUSE_URL: clickhouseUrl, DATA_DIR: await tempDir(t) };
  const rebuild = (...args: string[]) => runCommand('rebuild', env, ...args);

  await t.test('is left alone until it is drained, its schema too', async () => {
    await assert.rejects(start(), /learners of model version 3, .* npm run rebuild -- --replace/);
    const { code, err } = await rebuild('--replace');
    assert.deepEqual(
      [code, /Redis alone has 60 in outboxes, 2 in journals: start/.test(err)],
      [1, true],
      err,
    );
    const [schema] = await selectRows<{ n: number }>(
      clickhouse,
      'SELECT max(version) AS n FROM schema_migrations',
    );
    assert.equal(schema?.n, 4);
  });

  await t.test('rows that waited are stored once, goals and catalogue too', async () => {
    await drainAsBefore(redis.client, clickhouse);
    await makeCurrent(redis.client);
    const before = await start();
    await storedOnce(clickhouse, answers);
    await waitFor('the journal', async () => {
      const [row] = await selectRows<{ n: number }>(
        clickhouse,
        "SELECT toUInt32((SELECT count() FROM goals WHERE target_score = 1200) + (SELECT count() FROM skill_catalogue WHERE name = 'One')) AS n",
      );
      return row?.n === 2;
    });
    assert.ok(await before.stop());
    await makeOlder(redis.client);
  });

  await t.test('its learners are replaced', async () => {
    assert.ok((await redis.client.keys(idsOfBefore)).length > 0);
    const { code, out, err } = await rebuild('--replace', '--json');
    assert.deepEqual([code, err], [0, ''], out);
    const { learners, new_baselines, notes } = JSON.parse(out);
    assert.deepEqual([learners, new_baselines, notes.length], [2, 1, 1], out);
    assert.deepEqual(await redis.client.keys(idsOfBefore), []);
    assert.equal((await rebuild('--verify')).code, 0);
  });

  const service = await start();
  const caller = callerOf(service, service.key);

  await t.test('states, goal and catalogue are what they were', async () => {
    const expected = JSON.parse(read('mastery.json'));
    for (const [user, skills] of Object.entries<Record<string, unknown>[]>(expected)) {
      const { json } = await caller.get(`/api/v1/mastery/${encodeURIComponent(user)}`);
      // Mastery now has been forgetting since, and without a right answer there is no efficiency any more.
      const compared = (skill: Record<string, unknown>) => {
        const { correct_attempts, efficiency_index } = skill;
        const efficiency = correct_attempts === 0 ? null : efficiency_index;
        return { ...skill, mastery: 0, mastered: false, efficiency_index: efficiency };
      };
      assert.deepEqual(json.data.skills.map(compared), skills.map(compared));
    }
    assert.equal((await caller.get('/api/v1/goals/ada')).json.data.target_score, 1200);
    assert.equal((await caller.get('/api/v1/skills/skill-1')).json.data.name, 'One');
  });

  await t.test('an id of before is known, a new answer counts on, and all are listed', async () => {
    const before = {
      user_id: 'ada',
      skill_id: 'skill-2',
      item_id: 'item-4',
      event_id: 'event-59',
      is_correct: true,
      time_spent_seconds: 79,
      confidence_score: 5,
    };
    const repeated = await caller.track(before);
    assert.deepEqual(
      [repeated.status, repeated.headers['idempotent-replayed']],
      [200, 'true'],
      repeated.text,
    );
    const other = await caller.track({ ...before, time_spent_seconds: 1 });
    assert.equal(other.json.error?.code, 'IDEMPOTENCY_KEY_REUSED');
    assert.equal((await caller.track({ ...before, event_id: 'new' })).status, 200);
    const { json } = await caller.get('/api/v1/learners/ada/attempts');
    assert.deepEqual([json.data.total_attempts, json.data.missing], [46, 0]);
  });
});

test('a record of a newer version is refused by name, and nothing of it is touched', async (t) => {
  const { url, client } = await loadRedis(t);
  await makeCurrent(client);
  const [key = ''] = await client.keys('st:{p*}:l:default:ada');
  const newer = Buffer.from((await client.hgetBuffer(key, 'L')) as Buffer);
  newer[0] = 2;
  await client.hset(key, 'L', newer);
  const service = await startService(t, { redisUrl: url, clickhouseUrl: await loadClickhouse(t) });
  const caller = callerOf(service, service.key);
  const event = { user_id: 'ada', skill_id: 'skill-2', is_correct: true };
  assert.equal((await caller.track(event)).status, 500);
  assert.equal((await caller.track({ ...event, user_id: 'zoë' })).status, 200, 'others go on');
  assert.deepEqual(await client.hgetBuffer(key, 'L'), newer);
});
