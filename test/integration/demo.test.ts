/** `npm run demo` on the servers of a running service. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { namedLearnerIds } from '../../src/lab/demo/school.js';
import { xapiMappingsKey } from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { runCommand, runOnTerminal } from '../support/commands/command.js';
import { countOf } from '../support/inspect/warehouse.js';
import { isLongForm } from '../support/runner/long-form.js';
import { startServers } from '../support/servers/servers.js';
import { redisOf, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

/** A fit needs 20 learners. */
const drawn = isLongForm ? 40 : 1;
const learnerCount = drawn + namedLearnerIds.length;
const options = ['--until', '2026-06-30', '--learners', `${drawn}`];

const tables = ['attempts', 'learner_skill_daily', 'skill_daily', 'goal_changes', 'served_forecasts'];
const facts = ['skill_changes', 'model_versions', 'skill_parameters', 'xapi_mappings', 'group_changes'];
const groupTables = ['group_member_changes', 'learner_profile_changes'];

const rowHash = `SELECT toString(sum(cityHash64(tuple(* EXCEPT (received_at, outbox_ms, outbox_seq, learner_version))))) AS hash
FROM attempts WHERE tenant = 'demo'`;

/** A desktop with a browser that writes its arguments to a file. */
function fakeDesktop(dir: string): Record<string, string> {
  const file = join(dir, 'xdg-open');
  const opened = join(dir, 'opened');
  writeFileSync(file, `#!/bin/sh\nprintf %s "$*" > ${opened}.tmp && mv ${opened}.tmp ${opened}\n`);
  chmodSync(file, 0o700);
  return { PATH: `${dir}:${process.env.PATH}`, DISPLAY: ':0', CI: '', SSH_CONNECTION: '' };
}

test('npm run demo stores a school and opens a link with its key; --reset removes both', async (t) => {
  const { env, clickhouse } = await startServers(t);
  const { REDIS_URL: redisUrl = '', CLICKHOUSE_URL: clickhouseUrl = '', DATA_DIR: dir = '' } = env;
  const { baseUrl } = await startService(t, { redisUrl, clickhouseUrl, dataDir: dir });
  const redis = await redisOf(t, redisUrl);
  const run = (...args: string[]) => runCommand('demo', env, ...args);
  const select = <Row>(query: string): Promise<Row[]> => selectRows<Row>(clickhouse, query);
  const selectHash = () => select<{ hash: string }>(rowHash);
  const count = (table: string) => countOf(clickhouse, `${table} WHERE tenant = 'demo'`);
  const countAll = () => Promise.all(['attempts', 'goal_changes', 'forecasts'].map(count));

  const made = await runOnTerminal('demo', { ...env, ...fakeDesktop(dir) }, ...options);
  assert.equal(made.code, 0, made.err);
  const numberOf = (pattern: RegExp): number => Number(pattern.exec(made.out)?.[1]?.replaceAll(',', ''));
  assert.equal(numberOf(/school of (\d+) learners/), learnerCount);
  const stored = [/([\d,]+) answers on/, /([\d,]+) goal changes/, /([\d,]+) forecasts/].map(numberOf);
  assert.deepEqual(await countAll(), stored);
  assert.match(made.out, isLongForm ? /model version 2, fitted/ : /no model version published/);
  const key = readFileSync(join(dir, 'demo-key'), 'utf8').trim();
  const link = `${baseUrl}/dashboard#key=${key}`;
  assert.ok(made.out.endsWith(`\nDashboard: ${link}\n`), made.out);

  const checks = await select(`SELECT toUInt32(uniqExact(section)) AS sections,
    toUInt32(count() - uniqExact(user_id, learner_seq)) AS doubled FROM attempts WHERE tenant = 'demo'`);
  assert.deepEqual(checks, [{ sections: 2, doubled: 0 }]);
  const later = await countOf(
    clickhouse,
    `forecasts AS f JOIN (SELECT user_id, learner_seq, occurred_at FROM attempts)
    AS a USING (user_id, learner_seq) WHERE a.occurred_at > f.made_at`,
  );
  assert.equal(later, 0, 'a forecast uses a later answer');
  const versions = await select('SELECT DISTINCT tenant_model_version AS v FROM forecasts ORDER BY v');
  assert.deepEqual(versions, isLongForm ? [{ v: 0 }, { v: 1 }, { v: 2 }] : [{ v: 0 }]);

  // Other users of the machine can read program arguments, so a private file passes the key.
  await waitFor('the browser', () => existsSync(join(dir, 'opened')));
  const page = readFileSync(join(dir, 'opened'), 'utf8');
  assert.equal(page, join(dir, 'demo.html'));
  assert.equal(statSync(page).mode & 0o777, 0o600);
  assert.ok(readFileSync(page, 'utf8').includes(`url=${link}"`));
  const request = (path: string) => fetch(`${baseUrl}/api/v1/${path}`, { headers: { 'X-API-Key': key } });
  const fetchSkills = () => request('skills?limit=1');
  const { data } = (await (await fetchSkills()).json()) as { data: { skills: unknown[] } };
  assert.equal(data.skills.length, 1);
  const profile = (await (await request('learners/demo-at-risk/profile')).json()) as {
    data: { display_name: string; attributes: object; groups: { group_id: string }[] };
  };
  assert.deepEqual([profile.data.display_name, profile.data.attributes], ['Ruben Costa', { hints: 'off' }]);
  const groupIds = profile.data.groups.map(({ group_id }) => group_id);
  assert.deepEqual(groupIds, ['class-11-A', 'grade-11', 'school', 'teacher-Rivera']);
  const memberships =
    await select(`SELECT toUInt32(count()) AS members, toUInt32(countIf(joined_at > first_at)) AS late
    FROM group_members JOIN (SELECT user_id, min(occurred_at) AS first_at FROM attempts GROUP BY user_id)
    AS learners USING (user_id) WHERE group_id = 'school'`);
  assert.deepEqual(memberships, [{ members: learnerCount, late: 0 }]);
  const second = await run(...options);
  assert.deepEqual([second.code, second.out], [1, '']);
  assert.ok(second.err.startsWith(`Tenant demo already has a demo, or a part of one (${link}).`), second.err);
  assert.match(second.err, /Run the command with --reset to remove it\n$/);

  const foreign = { tenant: 'demo', user_id: 'ada', updated_at: '2026-01-01 00:00:00.000' };
  await clickhouse.insert({ table: 'goal_changes', format: 'JSONEachRow', values: [foreign] });
  const rejected = await run('--reset');
  assert.deepEqual([rejected.code, rejected.out], [1, '']);
  assert.match(rejected.err, /^Tenant demo has other data than a demo \(ada\).*--tenant\n$/);
  await clickhouse.command({ query: "DELETE FROM goal_changes WHERE user_id = 'ada'" });

  const before = await selectHash();
  await redis.hset(xapiMappingsKey, 'demo', '{}');
  const mapping = { tenant: 'demo', updated_at: '2026-01-01 00:00:00.000', mapping: '{}' };
  await clickhouse.insert({ table: 'xapi_mappings', format: 'JSONEachRow', values: [mapping] });
  const reset = await run('--reset', '--json');
  assert.equal(reset.code, 0, reset.err);
  assert.deepEqual(JSON.parse(reset.out), { tenant: 'demo', erased: learnerCount });
  assert.deepEqual([existsSync(join(dir, 'demo-key')), existsSync(page)], [false, false]);
  for (const table of [...tables, ...facts, ...groupTables]) assert.equal(await count(table), 0, table);
  assert.equal(await redis.hget(xapiMappingsKey, 'demo'), null);
  await waitFor('the revocation of the key', async () => (await fetchSkills()).status === 401);
  assert.deepEqual(await redis.keys('*demo*'), []);

  if (!isLongForm) return;
  // Marks of erasures would drop goals and forecasts, old deduplication tokens the model.
  const again = await run(...options, '--json');
  assert.equal(again.code, 0, again.err);
  const { answers, goals, forecasts, model_version } = JSON.parse(again.out);
  assert.deepEqual([answers, goals, forecasts, model_version], [...stored, 2]);
  assert.deepEqual(await selectHash(), before);
  assert.deepEqual(await countAll(), stored);
});
