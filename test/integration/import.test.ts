import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { indices } from '../../src/lists.js';
import { importLockKey } from '../../src/store/learners/import-store.js';
import { readLearnerStates } from '../../src/store/learners/learner-reads.js';
import { acquireLock } from '../../src/store/redis/commands/lock.js';
import { partitionOf } from '../../src/store/redis/keys.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { assistments2009 } from '../support/builders/log-formats.js';
import { endOf } from '../support/commands/command.js';
import { answers, runImport, startImport, stored, withoutWarnings } from '../support/commands/imports.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { startServers } from '../support/servers/servers.js';
import { redisOf } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

test('npm run import counts or rejects every row, and counts a finished file again only on --again', async (t) => {
  const servers = await startServers(t);
  const dir = await tempDir(t);
  const file = join(dir, 'answers.csv.gz');
  await writeFile(file, gzipSync(`${answers(1000, 45)}u1,s1,maybe,i,1\n,s1,1,i,1\nu1,s1\n`));
  const first = await runImport(servers, file, '--json');
  assert.equal(first.code, 0, first.err);
  const { rows, counted, skipped, rejected, stored: isStored, rejects_file } = JSON.parse(first.out);
  assert.deepEqual([rows, counted, skipped, rejected, isStored], [1003, 1000, 0, 3, true]);
  const rejects = (await readFile(rejects_file, 'utf8')).trim().split('\n');
  const expected = [
    {
      line: 1002,
      reason: 'correct "maybe" must be 1, 0, true or false; or pass --correct-values and --incorrect-values',
    },
    { line: 1003, reason: 'user_id is missing' },
    { line: 1004, reason: 'the row has 2 fields, the header has 5' },
  ];
  assert.deepEqual(JSON.parse(`[${rejects.join()}]`), expected);
  assert.ok(rejects_file.startsWith(join(servers.env.DATA_DIR as string, 'imports')));
  assert.equal((await stat(rejects_file)).mode & 0o777, 0o600);
  const once = { rows: 1000, learners: 45, correct: 900, ids: 1000, disordered: 0 };
  assert.deepEqual(await stored(servers), once);

  // A commit in several parts could count a row before an earlier one of the same learner.
  const small = join(dir, 'one-learner.csv');
  const lines = indices(400).map((i) => `one,s1,${i % 2},i${i}`);
  await writeFile(small, `user_id,skill_id,correct,item_id\n${lines.join('\n')}\n`);
  const { code, err } = await runImport(servers, small);
  assert.equal(code, 0, err);
  const redis = await redisOf(t, servers.env.REDIS_URL as string);
  const partition = partitionOf('default', 'one', defaultPartitions);
  const found = await readLearnerStates(redis, { partition, tenant: 'default', userId: 'one' });
  assert.equal(found?.learner.attempts, 400);
  const query = "SELECT DISTINCT learner_version AS v FROM attempts WHERE user_id = 'one'";
  assert.deepEqual(await selectRows(servers.clickhouse, query), [{ v: found.learner.version }]);

  const second = await runImport(servers, small);
  assert.deepEqual([second.code, second.out], [1, '']);
  assert.match(second.err, /^.* was imported into tenant default on .*--again.*\n$/);
  const other = await runImport(servers, small, '--tenant', 'other');
  assert.equal(other.code, 0, other.err);
  assert.match(other.out, /400 imported/);
  const again = await runImport(servers, small, '--again');
  assert.equal(again.code, 0, again.err);
  assert.equal((await stored(servers)).rows, 1000 + 3 * 400);

  // Sorted by order_id, and two rows are one answer.
  const assistments = join(dir, 'skill_builder_data.csv');
  await writeFile(assistments, assistments2009);
  const options = ['--tenant', 'public', '--json'];
  const merged = JSON.parse((await runImport(servers, assistments, ...options)).out);
  assert.deepEqual([merged.format, merged.rows, merged.counted], ['assistments-2009', 6, 4]);
  assert.deepEqual([merged.rejected, merged.left_out], [1, { 'skill_id is missing': 1 }]);
  const history = await selectRows<object>(
    servers.clickhouse,
    `SELECT user_id, skill_ids, item_id, is_correct, time_spent_seconds FROM attempts WHERE tenant = 'public'
      ORDER BY user_id, learner_seq`,
  );
  assert.deepEqual(
    history.map((row) => Object.values(row)),
    [
      ['7', ['Mean'], '51', 1, 12.345],
      ['7', ['Mean'], '52', 1, null],
      ['7', ['Écart, mean', 'Mode'], '53', 0, 12.345],
      ['8', ['Mean'], '51', 0, 12.345],
    ],
  );
  assert.match((await runImport(servers, assistments, ...options)).err, /was imported into tenant public/);
  // Other options make it another import.
  const originals = JSON.parse((await runImport(servers, assistments, ...options, '--originals-only')).out);
  assert.deepEqual([originals.counted, originals.rejected], [3, 1]);
  assert.equal(originals.left_out['scaffolding question'], 1);
});

test('npm run import stops on a signal, resumes, and rejects a parallel import of the file', async (t) => {
  const servers = await startServers(t);
  const dir = await tempDir(t);
  const file = join(dir, 'answers.csv');
  const rows = 12_000;
  await writeFile(file, answers(rows, 300));
  const child = startImport(t, servers.env, file);
  const ended = endOf(child);
  await waitFor('some rows', async () => child.exitCode !== null || (await stored(servers)).rows > 0);
  const parallel = await runImport(servers, file);
  assert.equal(parallel.code, 1, parallel.err);
  assert.match(parallel.err, /Another process is importing|was imported/);
  child.kill('SIGINT');
  const { code, err, out } = await ended;
  if (out === '') {
    const message = /^(Stopped; run the same command again to resume|All rows are imported; .*)\n$/;
    assert.match(withoutWarnings(err), message);
    assert.equal(code, 130, err);
  }
  const again = await runImport(servers, file);
  const problems = withoutWarnings(again.err);
  const isDone = again.code === 0 ? problems === '' : again.code === 1 && /was imported/.test(problems);
  assert.ok(isDone, `${code} ${err}, then ${again.code} ${again.err}`);
  // An import that was stopped after its last row leaves rows in the outbox: the next import stores them.
  const another = join(dir, 'another.csv');
  await writeFile(another, 'user_id,skill_id,correct,item_id\nother,s1,1,i0\n');
  assert.equal((await runImport(servers, another)).code, 0);
  const after = await stored(servers);
  assert.deepEqual([after.rows, after.ids, after.disordered], [rows + 1, rows, 0]);
});

test('acquireLock does not acquire a lock in its last millisecond and lose it', async (t) => {
  const redis = await redisOf(t, await startTestRedis(t));
  for (let i = 0; i < 20; i++) {
    const key = importLockKey(`content-${i}`);
    assert.equal(await acquireLock(redis, key, 'other'), 0);
    await redis.pexpire(key, 3);
    while ((await acquireLock(redis, key, 'mine')) > 0);
    assert.equal(await redis.get(key), 'mine');
  }
});

test('npm run import starts Redis and ClickHouse itself if no service runs, but not for an invalid file', async (t) => {
  const dir = await tempDir(t);
  const env = { DATA_DIR: join(dir, 'data'), REDIS_URL: '', CLICKHOUSE_URL: '' };
  const write = async (name: string, content: string | Buffer): Promise<string> => {
    await writeFile(join(dir, name), content);
    return join(dir, name);
  };
  const cut = await write('cut.csv.gz', gzipSync(answers(2000, 5)).subarray(0, 4000));
  const header = 'user_id,skill_id,correct\n';
  const oneClass = await write('wrong.csv', `${header}${'u,s,wrong\n'.repeat(100)}`);
  const unclosed = await write('unclosed.csv', `${header}${'u,s,1\n'.repeat(100)}u,"s,0\n`);
  const encoded = await write('latin1.csv', Buffer.from(`${header}u,s,1\nu,\xe9,1\n`, 'latin1'));
  const help = await runImport({ env }, '--help');
  assert.deepEqual([help.code, help.err], [0, '']);
  assert.match(help.out, /^Usage: npm run import/);
  for (const [path, message] of [
    [join(dir, 'none.csv'), /cannot be read/],
    [cut, /cut\.csv\.gz: the compressed data is damaged or truncated/],
    [oneClass, /all 100 answers are incorrect\. Check the column of the results, or name/],
    [unclosed, /row 102 has an unclosed quote/],
    [encoded, /line 3, column "skill_id" is not valid UTF-8/],
  ] as const) {
    const { code, out, err } = await runImport({ env }, path);
    assert.deepEqual([code, out], [1, ''], err);
    assert.match(err, message);
  }
  const dry = await runImport(
    { env },
    await write('assistments.csv', assistments2009),
    '--dry-run',
    '--json',
  );
  assert.equal(dry.code, 0, dry.err);
  const { warnings, ...described } = JSON.parse(dry.out);
  assert.deepEqual(described, {
    format: 'assistments-2009',
    mapping: {
      ...{ user_id: 'user_id', correct: 'correct', skill_id: 'skill_name', item_id: 'problem_id' },
      ...{ order: 'order_id', response_time_s: 'ms_first_response' },
      ...{ original: 'original', answer_id: 'order_id' },
    },
    ...{ rows: 6, answers: 4, learners: 2, skills: 3, items: 3, several_skills: 1, correct_share: 0.5 },
    ...{ from: null, to: null, left_out: { 'skill_id is missing': 1 } },
  });
  assert.deepEqual(warnings, [
    '1 of 6 rows are invalid. Check the reasons',
    '3 of 3 skills have fewer than 20 answers',
  ]);
  const shown = await runImport({ env }, oneClass, '--dry-run');
  assert.equal(shown.code, 0, shown.err);
  assert.match(
    shown.out,
    /^.*wrong\.csv: format skilltrace \(Skilltrace CSV or NDJSON\)\n\nColumns:\n {2}user_id +user_id\n/,
  );
  assert.equal(shown.out.match(/^ {2}u +s +0/gm)?.length, 10, shown.out);
  assert.match(shown.out, /\n\nContent:\n {2}rows +100\n {2}answers +100, 0 of them on several skills\n/);
  assert.match(
    shown.out,
    /Warning: All answers are incorrect\. Check --correct-values and --incorrect-values\n/,
  );
  assert.equal(existsSync(env.DATA_DIR), false, 'servers were started');

  const file = await write(
    'answers.ndjson',
    '{"user_id":"a","skill_id":"s","correct":true}\n{"user_id":"a"}\n',
  );
  const { code, out, err } = await runImport({ env }, file, '--json');
  assert.equal(code, 0, err);
  const { counted, rejected, stored: isStored } = JSON.parse(out);
  assert.deepEqual([counted, rejected, isStored], [1, 1, true]);
  assert.equal(existsSync(join(env.DATA_DIR, 'endpoints.json')), false, 'servers are left');
});
