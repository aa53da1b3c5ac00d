/** The demo through the engine: what it leaves in ClickHouse, and that nothing of it is left after a reset. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import { namedLearnerIds } from '../../src/lab/demo/school.js';
import { connectRedis, waitUntilReady } from '../../src/store/redis/connection/client.js';
import { xapiMappingsKey } from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { type Ended, runCommand } from '../support/commands/command.js';
import { isLongForm } from '../support/runner/long-form.js';
import { startServers } from '../support/servers/servers.js';

const rowHash = `SELECT toString(sum(cityHash64(tuple(* EXCEPT (received_at, outbox_ms, outbox_seq, learner_version))))) AS hash
FROM attempts WHERE tenant = 'demo'`;

/** A fit needs 20 learners. */
const drawn = isLongForm ? 40 : 4;
const school = drawn + namedLearnerIds.length;

const tables = ['attempts', 'learner_skill_daily', 'skill_daily', 'goal_changes', 'served_forecasts'];
const facts = ['skill_changes', 'model_versions', 'skill_parameters', 'xapi_mappings'];

const title = isLongForm
  ? 'a small school is imported, refused a second time, removed, and imported again just so'
  : 'a small school is imported';

test(title, {
  timeout: 600_000,
}, async (t) => {
  const servers = await startServers(t);
  const { clickhouse } = servers;
  const run = (...args: string[]) => runCommand('demo', servers.env, ...args);
  const make = () => run('--until', '2026-06-30', '--learners', `${drawn}`, '--json');
  const select = async <Row>(query: string): Promise<Row> =>
    (await selectRows<Row>(clickhouse, query))[0] as Row;
  const count = async (table: string): Promise<number> =>
    (await select<{ n: number }>(`SELECT toUInt32(count()) AS n FROM ${table} WHERE tenant = 'demo'`)).n;

  const made = await make();
  assert.equal(made.code, 0, made.err);
  const { answers, learners, goals, forecasts, model_version } = JSON.parse(made.out);
  assert.deepEqual([learners, model_version], [school, isLongForm ? 2 : 0]);
  assert.deepEqual(
    [await count('attempts'), await count('goal_changes'), await count('forecasts')],
    [answers, goals, forecasts],
  );
  const figures = await select(`SELECT toUInt32(uniqExact(section)) AS sections,
    toUInt32(count() - uniqExact(user_id, learner_seq)) AS doubled FROM attempts WHERE tenant = 'demo'`);
  assert.deepEqual(figures, { sections: 2, doubled: 0 });
  const ahead = await select<{ n: number }>(
    `SELECT toUInt32(count()) AS n FROM forecasts AS f JOIN (
       SELECT user_id, learner_seq, occurred_at FROM attempts) AS a USING (user_id, learner_seq)
     WHERE a.occurred_at > f.made_at`,
  );
  assert.equal(ahead.n, 0, 'a forecast rests on answers of before');
  const versions = await selectRows(
    clickhouse,
    'SELECT DISTINCT tenant_model_version AS v FROM forecasts ORDER BY v',
  );
  assert.deepEqual(versions, isLongForm ? [{ v: 0 }, { v: 1 }, { v: 2 }] : [{ v: 0 }]);

  if (!isLongForm) return;
  const again = await make();
  assert.deepEqual([again.code, again.out], [1, '']);
  assert.match(again.err, /^Tenant demo has a demo.*--reset removes it\n$/);
  const { hash } = await select<{ hash: string }>(rowHash);

  await refusesOthers(clickhouse, () => run('--reset'));

  const redis = connectRedis(servers.env.REDIS_URL as string);
  t.after(() => redis.disconnect());
  await waitUntilReady(redis, 10_000);
  await redis.hset(xapiMappingsKey, 'demo', '{}');
  const values = [{ tenant: 'demo', updated_at: '2026-01-01 00:00:00.000', mapping: '{}' }];
  await clickhouse.insert({ table: 'xapi_mappings', format: 'JSONEachRow', values });
  const reset = await run('--reset', '--json');
  assert.deepEqual([reset.code, JSON.parse(reset.out)], [0, { tenant: 'demo', erased: school }], reset.err);
  for (const table of [...tables, ...facts]) assert.equal(await count(table), 0, table);
  assert.equal(await redis.hget(xapiMappingsKey, 'demo'), null);
  const keys = await redis.keys('*');
  assert.deepEqual(
    keys.filter((key) => /demo/.test(key)),
    [],
  );

  // The marks of what was erased would take goals and forecasts, tokens the model.
  assert.equal((await make()).code, 0);
  assert.deepEqual(await select(rowHash), { hash });
  assert.deepEqual([await count('goal_changes'), await count('forecasts')], [goals, forecasts]);
});

/** What is of somebody else keeps a tenant from being emptied. */
async function refusesOthers(clickhouse: ClickHouseClient, reset: () => Promise<Ended>): Promise<void> {
  const values = [{ tenant: 'demo', user_id: 'ada', updated_at: '2026-01-01 00:00:00.000' }];
  await clickhouse.insert({ table: 'goal_changes', format: 'JSONEachRow', values });
  const refused = await reset();
  assert.deepEqual([refused.code, refused.out], [1, '']);
  assert.match(refused.err, /^Tenant demo has more than a demo \(ada\).*--tenant\n$/);
  await clickhouse.command({ query: "DELETE FROM goal_changes WHERE user_id = 'ada'" });
}
