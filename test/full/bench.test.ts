/** The benchmark as a command: its smallest form from start to end, and that it can be stopped. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readResults } from '../../bench/results/results.js';
import { endOf } from '../support/commands/command.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const setup = fileURLToPath(new URL('../../../src/setup.mjs', import.meta.url));
/** Many times what it takes; it ends one that hangs, and what it started. */
const limitMs = 600_000;

/** @param folder takes its temporary files */
function startBench(t: TestContext, folder: string, ...args: string[]): ChildProcess {
  const child = spawn(process.execPath, [setup, 'bench', ...args], {
    cwd: folder,
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: limitMs,
  });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

const leftIn = (folder: string): string[] =>
  readdirSync(folder).filter((name) => name.startsWith('skilltrace-bench-'));

test('the smallest form measures, keeps the books and leaves nothing behind', async (t) => {
  const folder = await tempDir(t);
  const json = join(folder, 'results.json');
  const small = [
    '--only',
    'single',
    '--rounds',
    '1',
    '--seconds',
    '1',
    '--warm-up',
    '1',
    '--connections',
    '8',
  ];
  const report = join(folder, 'report.html');
  const { code, out, err } = await endOf(startBench(t, folder, ...small, '--json', json, '--report', report));
  assert.equal(code, 0, err);
  assert.match(out, /CPU of a single answer, to the echo/);
  const { scenarios, figures } = readResults(json);
  const measurements = scenarios[0]?.measurements ?? [];
  assert.deepEqual(
    measurements.map(({ target }) => target),
    ['echo', 'fastify', 'fastify-outbox', 'skilltrace'],
  );
  for (const { target, throughput } of measurements) assert.ok((throughput?.median ?? 0) > 50, target);
  const service = measurements.find(({ target }) => target === 'skilltrace');
  for (const part of ['front end', 'workers', 'runtime', 'redis', 'pipeline', 'clickhouse'])
    assert.ok(service?.cpu[part] !== undefined, part);
  const ledger = service?.ledger;
  assert.ok(ledger && ledger.acknowledged > 50);
  assert.ok(ledger.inRedis >= ledger.acknowledged);
  assert.ok(ledger.inRedis <= ledger.acknowledged + ledger.unanswered);
  assert.deepEqual([ledger.inClickHouse, ledger.distinctInClickHouse], [ledger.inRedis, ledger.inRedis]);
  assert.ok(figures.every(({ value }) => value.median > 0 && value.rounds === 1));
  assert.deepEqual(leftIn(folder), []);
  assert.ok(readdirSync(folder).includes('report.html'));
});

test('Ctrl-C ends the servers and removes their files', async (t) => {
  const folder = await tempDir(t);
  const bench = startBench(
    t,
    folder,
    '--only',
    'single',
    '--rounds',
    '100',
    '--json',
    join(folder, 'x.json'),
  );
  const ended = endOf(bench);
  const serving = (): boolean =>
    leftIn(folder).some((name) => existsSync(join(folder, name, 'service', 'endpoints.json')));
  await waitFor('the servers', serving);
  const since = performance.now();
  bench.kill('SIGINT');
  const { code, err } = await ended;
  assert.equal(code, 130, err);
  assert.ok(performance.now() - since < 15_000);
  assert.deepEqual(leftIn(folder), []);
});

test('a wrong option is told in a line', async (t) => {
  const folder = await tempDir(t);
  const { code, err } = await endOf(startBench(t, folder, '--only', 'singel'));
  assert.equal(code, 1);
  assert.match(err, /^--only: singel is none of single, /);
});
