/** `npm run export`. ClickHouse reads the files back, and all rows are compared. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync, watch, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { type ExportSpec, type Manifest, openExportFolder } from '../../src/cli/export/export-folder.js';
import { analystTables } from '../../src/contracts/settings/analyst-tables.js';
import { lockDir } from '../../src/dir-lock.js';
import { createClosers, StartError } from '../../src/lifecycle.js';
import { createLogger } from '../../src/logger.js';
import { runStatement, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createTenantReader, tenantTables } from '../../src/warehouse/reads/tenant-tables.js';
import { rollups } from '../../src/warehouse/schema/rollups.js';
import { readRows } from '../support/commands/answer-logs.js';
import { endOf, runCommand, spawnCommand } from '../support/commands/command.js';
import { fileDatabase } from '../support/inspect/warehouse.js';
import { startTestRedis } from '../support/servers/embedded.js';

const tenant = 'A~z.9-_';
const learners = 40;
const each = 30;

const root = await mkdtemp(join(tmpdir(), 'skilltrace-export-'));
after(() => rm(root, { recursive: true, force: true }));
const redisUrl = await startTestRedis({ after });
const { client, clickhouseUrl } = await fileDatabase({ after });
await answer(tenant, learners * each);
await answer('other', 100);
await runStatement(client, 'CREATE TABLE back AS attempts ENGINE = Memory');

/** Inserts answers of January and February. Ids contain characters that need quoting in files. */
async function answer(of: string, count: number, more = ''): Promise<void> {
  await runStatement(
    client,
    `INSERT INTO attempts (tenant, user_id, skill_id, item_id, event_id, is_correct, time_spent_seconds, occurred_at,
      received_at, learner_seq, mastery_after, event_fingerprint, outbox_ms, outbox_seq)
    SELECT {of:String}, concat('é"\\'\\\\,{}', {more:String}, toString(intDiv(number, ${each}))), 's', if(number % 2, '', 'NULL "x", 1'),
      toString(number), number % 3 > 0, if(number % 5, number / 7, NULL), '2026-01-01 00:00:00.123',
      toDateTime64('2026-01-15 00:00:00', 3, 'UTC') + toIntervalDay(number % 30), number % ${each} + 1, rand64() / pow(2, 64),
      bitShiftRight(rand64(), 16), 1, number
    FROM numbers({count:UInt32})`,
    { params: { of, count, more } },
  );
}

const env = { REDIS_URL: redisUrl, CLICKHOUSE_URL: clickhouseUrl, DATA_DIR: join(root, 'data') };
const folderOf = (name: string): string => join(root, name);
const until = ['--until', '2026-06-01'];
const argumentsFor = (out: string, format = 'ndjson', rows = 500): string[] =>
  `--table attempts --tenant ${tenant} --format ${format} --part-rows ${rows} --json --out ${out}`.split(' ');
const run = (...given: Parameters<typeof argumentsFor>) =>
  runCommand('export', env, ...argumentsFor(...given), ...until);
const manifestIn = (folder: string): string => join(folder, 'manifest.json');
const manifestOf = (folder: string): Manifest => JSON.parse(readFileSync(manifestIn(folder), 'utf8'));

async function sumsOf(from: string): Promise<unknown> {
  const query = `SELECT count() AS rows, groupBitXor(cityHash64(*)) AS digest FROM ${from}`;
  const [sums] = await selectRows<object>(client, query);
  return sums;
}
const ofTenant = `attempts WHERE tenant = '${tenant}'`;

/** Inserts the files of a folder into the table `back`. */
async function readBack(folder: string, clause: string): Promise<unknown> {
  await runStatement(client, 'TRUNCATE TABLE back');
  const url = new URL(clickhouseUrl);
  const authorization = `Basic ${btoa(`${url.username}:${url.password}`)}`;
  for (const { file } of manifestOf(folder).parts) {
    const statement = Buffer.from(`INSERT INTO back ${clause}\n`);
    const body = Buffer.concat([statement, readFileSync(join(folder, file))]);
    const at = `${url.origin}${url.pathname}?date_time_input_format=best_effort&format_csv_null_representation=`;
    const response = await fetch(at, { method: 'POST', body, headers: { authorization } });
    assert.equal(response.status, 200, await response.text());
  }
  return sumsOf('back');
}

for (const [format, clause] of [
  ['parquet', 'FORMAT Parquet'],
  ['csv', 'FORMAT CSVWithNames'],
  ['ndjson', 'FORMAT JSONEachRow'],
] as const) {
  test(`npm run export writes whole learners per ${format} file and preserves every column`, async () => {
    const folder = folderOf(format);
    const { code, out, err } = await run(folder, format);
    assert.deepEqual([code, err], [0, '']);
    const { seconds, bytes, ...summary } = JSON.parse(out);
    assert.deepEqual(summary, { rows: 1200, parts: 3, resumed_after_part: 0, waiting_answers: 0 });
    const { parts, rows_before, time_column, key } = manifestOf(folder);
    for (const [i, part] of parts.entries()) {
      assert.deepEqual([part.file, part.rows], [`attempts-0000${i + 1}.${format}`, [480, 480, 240][i]]);
      assert.equal(part.bytes, statSync(join(folder, part.file)).size);
    }
    assert.deepEqual([rows_before, time_column], ['2026-06-01T00:00:00.000Z', 'received_at']);
    assert.deepEqual([parts.length, key], [3, ['user_id', 'learner_seq']]);
    assert.deepEqual(await readBack(folder, clause), await sumsOf(ofTenant));
    const [first] = parts;
    const content = readFileSync(join(folder, first?.file ?? ''));
    for (const column of ['skill_ids', 'masteries_before', 'masteries_after'])
      assert.ok(content.includes(column), `${column} is missing`);
  });

  test(`The import reads the ${format} file of an export`, async () => {
    const rows = await readRows(join(folderOf(format), `attempts-00001.${format}`));
    const answers = rows.flatMap(({ row }) => row.answer ?? []);
    const [first, second] = answers;
    const common = { userId: 'é"\'\\,{}0', skillIds: ['s'], at: Date.UTC(2026, 0, 1, 0, 0, 0, 123) };
    const missing = { fold: null, difficulty: null };
    const one = { ...common, isCorrect: false, itemId: 'NULL "x", 1', seconds: null, order: 1, ...missing };
    assert.deepEqual(first, one);
    assert.deepEqual(second, {
      ...common,
      isCorrect: true,
      itemId: null,
      seconds: 1 / 7,
      order: 2,
      ...missing,
    });
    assert.deepEqual([rows.length, answers.length], [480, 480]);
  });
}

test('npm run export selects rows by arrival time and by tenant', async () => {
  const folder = folderOf('period');
  const period = ['--since', '2026-02-01', '--until', '2026-02-03T00:00:00Z'];
  const ended = await runCommand('export', env, ...argumentsFor(folder), ...period);
  assert.equal(ended.code, 0, ended.err);
  await readBack(folder, 'FORMAT JSONEachRow');
  const condition = "received_at >= '2026-02-01' AND received_at < '2026-02-03'";
  assert.deepEqual(await sumsOf('back'), await sumsOf(`${ofTenant} AND ${condition}`));
  const other = folderOf('other');
  const ofOther = [...argumentsFor(other), ...until, '--tenant', 'other'];
  assert.equal((await runCommand('export', env, ...ofOther)).code, 0);
  const expected = await sumsOf("attempts WHERE tenant = 'other'");
  assert.deepEqual(await readBack(other, 'FORMAT JSONEachRow'), expected);
});

test('npm run export resumes a killed run without duplicates and without later rows', async (t) => {
  const folder = folderOf('killed');
  await mkdir(folder);
  const given = argumentsFor(folder, 'csv', 4 * each);
  const child = spawnCommand(t, 'export', env, ...given);
  const ended = endOf(child);
  // Polling could miss the moment: the run writes ten files.
  const watched = watch(folder, () => {
    if (existsSync(manifestIn(folder)) && manifestOf(folder).parts.length >= 3) child.kill('SIGKILL');
  });
  await ended;
  watched.close();
  const before = manifestOf(folder);
  assert.equal(before.finished_at, null);
  writeFileSync(join(folder, 'part.tmp'), 'half');
  await runStatement(
    client,
    `INSERT INTO attempts (tenant, user_id, learner_seq, received_at)
      SELECT {tenant:String}, concat(user_id, 'x'), 1, now64(3) FROM attempts WHERE tenant = {tenant:String}`,
    { params: { tenant } },
  );
  const again = () => runCommand('export', env, ...given);
  const { code, out, err } = await again();
  assert.equal(code, 0, err);
  const { rows, resumed_after_part } = JSON.parse(out);
  assert.deepEqual([rows, resumed_after_part], [learners * each, before.parts.length]);
  const whole = manifestOf(folder);
  assert.deepEqual(whole.parts.slice(0, before.parts.length), before.parts);
  assert.equal(whole.rows_before, before.rows_before);
  const expected = await sumsOf(`${ofTenant} AND received_at < '2026-06-01'`);
  assert.deepEqual(await readBack(folder, 'FORMAT CSVWithNames'), expected);
  const summary = JSON.parse((await again()).out);
  assert.equal(summary.rows, learners * each, 'a finished export prints the same summary again');
  await runStatement(client, "DELETE FROM attempts WHERE received_at > '2026-06-01'");
});

/** The number of a lock file increases. */
const withoutNumber = (name: string): string => name.replace(/^lock\.\d+$/, 'lock');

test('npm run export does not overwrite other files or another export', async () => {
  const folder = folderOf('refused');
  await mkdir(folder);
  const spec: ExportSpec = {
    ...{ table: 'attempts', format: 'ndjson', tenant, part_rows: 500 },
    ...{ since: null, until: '2026-06-01T00:00:00.000Z' },
  };
  const assertRejected = async (reason: RegExp, changes: Partial<ExportSpec> = {}): Promise<void> => {
    const names = readdirSync(folder).map(withoutNumber);
    const closers = createClosers(createLogger('warn', 'test'));
    const opened = openExportFolder(folder, { ...spec, ...changes }, closers).finally(() => closers.close());
    await assert.rejects(opened, (error) => error instanceof StartError && reason.test(error.message));
    assert.deepEqual(readdirSync(folder).map(withoutNumber), names);
  };
  writeFileSync(join(folder, 'thesis.doc'), 'mine');
  const { code, out, err } = await run(folder);
  assert.deepEqual([code, out, readdirSync(folder)], [1, '', ['thesis.doc']]);
  assert.match(err, /contains thesis\.doc and no export/);
  await rm(join(folder, 'thesis.doc'));
  writeFileSync(join(folder, 'manifest.json'), '{"name":"an app"}');
  await assertRejected(/contains a different export: its table is undefined, not attempts/);
  await rm(join(folder, 'manifest.json'));
  assert.equal((await run(folder)).code, 0);
  await assertRejected(/contains a different export: its format is ndjson, not csv/, { format: 'csv' });
  await assertRejected(/part_rows is 500, not 400/, { part_rows: 400 });
  const lock = lockDir(folder);
  await assertRejected(/is in use by process \d+\./);
  if ('release' in lock) lock.release();
  writeFileSync(join(folder, 'thesis.doc'), 'mine');
  await assertRejected(/contains thesis\.doc, which is not in its manifest/);
  await rm(join(folder, 'thesis.doc'));
  const file = join(folder, 'attempts-00002.ndjson');
  const text = readFileSync(file);
  writeFileSync(file, Buffer.concat([text.subarray(1), text.subarray(0, 1)]));
  await assertRejected(/contains a modified attempts-00002\.ndjson/);
  await rm(file);
  await assertRejected(/lacks attempts-00002\.ndjson/);
});

test('npm run export supports every tenant table that analysts can read, in every format', async () => {
  const query = "SELECT table FROM system.columns WHERE database = currentDatabase() AND name = 'tenant'";
  const withTenant = (await selectRows<{ table: string }>(client, query)).map(({ table }) => table);
  const readable = withTenant.filter((table) => analystTables.includes(table));
  const exported = [...tenantTables.map(({ name }) => name), ...rollups.map(({ table }) => table.name)];
  assert.deepEqual(exported.sort(), readable.sort());
  for (const table of tenantTables) {
    const since = table.time === null ? null : '2000-01-01T00:00:00.000Z';
    const before = new Date().toISOString();
    const reader = createTenantReader(client, { table, tenant, since, before }, AbortSignal.timeout(60_000));
    const last = await reader.findPartEnd(null, 1);
    const { rows, digest } = await reader.fetchPartFacts({ after: null, last });
    const rest = last === null ? { rows: 0 } : await reader.fetchPartFacts({ after: last, last: null });
    const all = await reader.fetchPartFacts({ after: null, last: null });
    assert.equal(rows + rest.rows, all.rows, `${table.name}: ${digest}`);
    for (const format of ['parquet', 'csv', 'ndjson'] as const) {
      const stream = await reader.streamPart({ after: null, last: null }, format);
      const lines = (await buffer(stream)).toString('latin1').split('\n').length - 1;
      if (format === 'csv') assert.ok([0, 1].includes(lines - all.rows), `${table.name}: ${lines} lines`);
      if (format === 'ndjson') assert.equal(lines, all.rows, table.name);
    }
  }
});
