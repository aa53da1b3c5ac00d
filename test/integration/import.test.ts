import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import { importLockKey } from '../../src/store/learners/import-store.js';
import { readLearnerStates } from '../../src/store/learners/learner-reads.js';
import { acquireLock } from '../../src/store/redis/commands/lock.js';
import { connectRedis, waitUntilReady } from '../../src/store/redis/connection/client.js';
import { partitionOf } from '../../src/store/redis/keys.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { endOf } from '../support/commands/command.js';
import { answers, runImport, startImport, stored, withoutWarnings } from '../support/commands/imports.js';
import { referenceFile } from '../support/runner/reference.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { startServers } from '../support/servers/servers.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

test('every row is counted or rejected, and a finished file is remembered', {
  timeout: 600_000,
}, async (t) => {
  const servers = await startServers(t);
  const file = join(await tempDir(t), 'answers.csv.gz');
  const text = `${answers(3000, 50)}u1,s1,maybe,i,1\n,s1,1,i,1\nu1,s1\n`;
  await writeFile(file, gzipSync(text));
  const first = await runImport(servers, file, '--json');
  assert.equal(first.code, 0, first.err);
  const summary = JSON.parse(first.out);
  assert.deepEqual(
    [summary.rows, summary.counted, summary.skipped, summary.rejected, summary.stored],
    [3003, 3000, 0, 3, true],
  );
  const rejects = (await readFile(summary.rejects_file, 'utf8')).trim().split('\n');
  assert.deepEqual(
    rejects.map((line) => JSON.parse(line)),
    [
      { line: 3002, reason: 'correct "maybe" must be 1, 0, true or false' },
      { line: 3003, reason: 'user_id is missing' },
      { line: 3004, reason: 'the row has 2 fields, the header has 5' },
    ],
  );
  assert.ok(summary.rejects_file.startsWith(join(servers.env.DATA_DIR as string, 'imports')));
  assert.equal((await stat(summary.rejects_file)).mode & 0o777, 0o600);
  const once = { rows: 3000, learners: 50, correct: 2700, ids: 3000, disordered: 0 };
  assert.deepEqual(await stored(servers), once);

  const second = await runImport(servers, file);
  assert.deepEqual([second.code, second.out], [1, '']);
  assert.match(second.err, /^.* was imported for tenant default before .*--again/);
  assert.equal(second.err.trim().split('\n').length, 1);

  const other = await runImport(servers, file, '--tenant', 'other');
  assert.equal(other.code, 0, other.err);
  assert.match(other.out, /3,000 counted/);
  const again = await runImport(servers, file, '--again');
  assert.equal(again.code, 0, again.err);
  assert.equal((await stored(servers)).rows, 9000);
});

test('rows that are sent together are one commit: none is counted before an earlier one of its learner', {
  timeout: 600_000,
}, async (t) => {
  const servers = await startServers(t);
  const file = join(await tempDir(t), 'one-learner.csv');
  const lines = Array.from({ length: 400 }, (_, i) => `one,s1,1,i${i}`);
  await writeFile(file, `user_id,skill_id,correct,item_id\n${lines.join('\n')}\n`);
  const { code, err } = await runImport(servers, file);
  assert.equal(code, 0, err);
  const redis = connectRedis(servers.env.REDIS_URL as string);
  t.after(() => redis.disconnect());
  await waitUntilReady(redis, 10_000);
  const partition = partitionOf('default', 'one', defaultPartitions);
  const found = await readLearnerStates(redis, { partition, tenant: 'default', userId: 'one' });
  const versions = await selectRows(servers.clickhouse, 'SELECT DISTINCT learner_version AS v FROM attempts');
  assert.deepEqual(versions, [{ v: found?.learner.version }], 'one commit');
  assert.equal(found?.learner.attempts, 400);
});

test('a signal stops it so that it can go on; two at once do not', { timeout: 600_000 }, async (t) => {
  const servers = await startServers(t);
  const file = join(await tempDir(t), 'answers.csv');
  const rows = 12_000;
  await writeFile(file, answers(rows, 300));
  const child = startImport(t, servers.env, file);
  const ended = endOf(child);
  await waitFor('some rows', async () => child.exitCode !== null || (await stored(servers)).rows > 0, 60_000);
  const beside = await runImport(servers, file);
  assert.equal(beside.code, 1, beside.err);
  assert.match(beside.err, /being imported by another process|was imported/);
  child.kill('SIGINT');
  await sleep(100);
  child.kill('SIGINT');
  const { code, err, out } = await ended;
  // On a machine that stood still between the two, the second one is a wish to force.
  if (/second signal/.test(err)) assert.equal(code, 1, err);
  else if (out === '') {
    const told = /^(Stopped; run the same command again to resume|Every row is counted; .*)\n$/;
    assert.match(withoutWarnings(err), told);
    assert.equal(code, 130, err);
  }
  const again = await runImport(servers, file);
  const problems = withoutWarnings(again.err);
  const isDone = again.code === 0 ? problems === '' : again.code === 1 && /was imported/.test(problems);
  assert.ok(isDone, `${code} ${err}, then ${again.code} ${again.err}`);
  // One that was stopped after its last row left rows in the outbox: whoever runs next stores them.
  const another = join(await tempDir(t), 'another.csv');
  await writeFile(another, 'user_id,skill_id,correct,item_id\nother,s1,1,i0\n');
  assert.equal((await runImport(servers, another)).code, 0);
  const figures = await stored(servers);
  assert.deepEqual([figures.rows, figures.ids, figures.disordered], [rows + 1, rows, 0]);
});

test('the lock of somebody else is not taken in its last millisecond', { timeout: 60_000 }, async (t) => {
  const redis = connectRedis(await startTestRedis(t));
  t.after(() => redis.disconnect());
  await waitUntilReady(redis, 10_000);
  for (let i = 0; i < 20; i++) {
    const key = importLockKey(`content-${i}`);
    assert.equal(await acquireLock(redis, key, 'other'), 0);
    await redis.pexpire(key, 3);
    while ((await acquireLock(redis, key, 'mine')) > 0);
    assert.equal(await redis.get(key), 'mine');
  }
});

test('with no service and no servers it starts its own, and leaves none', { timeout: 600_000 }, async (t) => {
  const dir = await tempDir(t);
  const file = join(dir, 'answers.ndjson');
  await writeFile(file, '{"user_id":"a","skill_id":"s","correct":true}\n{"user_id":"a"}\n');
  const env = { DATA_DIR: join(dir, 'data'), REDIS_URL: '', CLICKHOUSE_URL: '' };
  const { code, out, err } = await runImport({ env }, file, '--json');
  assert.equal(code, 0, err);
  const { counted, rejected, stored: isStored } = JSON.parse(out);
  assert.deepEqual([counted, rejected, isStored], [1, 1, true]);
  assert.equal(existsSync(join(env.DATA_DIR, 'endpoints.json')), false);
});

test('help, wrong arguments and damaged files end at once', { timeout: 60_000 }, async (t) => {
  const dir = await tempDir(t);
  const env = { DATA_DIR: join(dir, 'data') };
  const cut = join(dir, 'cut.csv.gz');
  await writeFile(cut, gzipSync(answers(2000, 5)).subarray(0, 4000));
  const help = await runImport({ env }, '--help');
  assert.deepEqual([help.code, help.err], [0, '']);
  assert.match(help.out, /^Usage: npm run import/);
  for (const [args, message] of [
    [[], /exactly one FILE/],
    [['x', '--whatever'], /--whatever/],
    [[join(dir, 'none.csv')], /cannot be read/],
    [[cut], /gzip is damaged or cut off/],
  ] as const) {
    const { code, out, err } = await runImport({ env }, ...args);
    assert.deepEqual([code, out], [1, ''], err);
    assert.match(err, message);
  }
  assert.equal(existsSync(env.DATA_DIR), false, 'nothing was started');
});

const reference = referenceFile('algebra05.csv.gz');

test('a real log: the figures in ClickHouse are those of the file', {
  timeout: 600_000,
  skip: reference === null && 'REFERENCE_DATA names no folder with algebra05.csv.gz',
}, async (t) => {
  const servers = await startServers(t);
  const file = reference ?? '';
  const { code, out, err } = await runImport(servers, file, '--start', '2005-08-01', '--json');
  assert.equal(code, 0, err);
  t.diagnostic(out.trim());
  const [header = '', ...lines] = gunzipSync(readFileSync(file)).toString().trim().split('\n');
  const names = header.split(',');
  const rows = lines.map((line) => line.split(','));
  const column = (name: string) => rows.map((row) => row[names.indexOf(name)]);
  const { rows: count, learners, correct } = await stored(servers);
  assert.deepEqual(
    [count, learners, correct],
    [rows.length, new Set(column('user_id')).size, column('correct').filter((value) => value === '1').length],
  );
});
