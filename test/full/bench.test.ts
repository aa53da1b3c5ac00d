import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { BenchResults } from '../../bench/results/results.js';
import { endOf } from '../support/commands/command.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const setup = fileURLToPath(new URL('../../../src/setup.mjs', import.meta.url));
const limitMs = 600_000;

/** @param folder for its temporary files */
function startBench(t: TestContext, folder: string, options: string): ChildProcess {
  const child = spawn(process.execPath, [setup, 'bench', '--only', 'single', ...options.split(' ')], {
    cwd: folder,
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: limitMs,
  });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

const listLeftovers = (folder: string): string[] =>
  readdirSync(folder).filter((name) => name.startsWith('skilltrace-bench-'));

test('`npm run bench` measures all targets, counts each answer and removes its files', async (t) => {
  const folder = await tempDir(t);
  const [json, report] = [join(folder, 'results.json'), join(folder, 'report.html')];
  const options = `--rounds 1 --seconds 1 --warm-up 1 --connections 8 --json ${json} --report ${report}`;
  const { code, out, err } = await endOf(startBench(t, folder, options));
  assert.equal(code, 0, err);
  assert.match(out, /CPU per single answer, relative to echo/);
  const { scenarios, figures }: BenchResults = JSON.parse(readFileSync(json, 'utf8'));
  const measurements = scenarios[0]?.measurements ?? [];
  const targets = measurements.map(({ target }) => target);
  assert.deepEqual(targets, ['echo', 'fastify', 'fastify-outbox', 'skilltrace']);
  for (const { target, throughput } of measurements) assert.ok((throughput?.median ?? 0) > 0, target);
  const service = measurements.find(({ target }) => target === 'skilltrace');
  for (const part of ['front end', 'workers', 'runtime', 'redis', 'pipeline', 'clickhouse'])
    assert.ok(service?.cpu[part] !== undefined, part);
  const ledger = service?.ledger;
  const { acknowledged = 0, ...stored } = ledger ?? {};
  assert.ok(acknowledged > 0);
  assert.deepEqual(Object.values(stored), [acknowledged, acknowledged, acknowledged]);
  assert.ok(figures.every(({ value }) => value.median > 0 && value.values.length === 1));
  assert.deepEqual(listLeftovers(folder), []);
  assert.ok(existsSync(report));
});

test('`npm run bench` stops its servers and removes their files on SIGINT', async (t) => {
  const folder = await tempDir(t);
  const bench = startBench(t, folder, `--rounds 100 --json ${join(folder, 'results.json')}`);
  const ended = endOf(bench);
  await waitFor('the servers', () =>
    listLeftovers(folder).some((name) => existsSync(join(folder, name, 'service', 'endpoints.json'))),
  );
  bench.kill('SIGINT');
  const { code, err } = await ended;
  assert.equal(code, 130, err);
  assert.deepEqual(listLeftovers(folder), []);
});

test('The micro-benchmarks run only those that match the filter', async () => {
  const entry = new URL('../../bench/micro/main.js', import.meta.url).href;
  const script = `import(${JSON.stringify(entry)}).then(({ main }) => main(process.argv[1]))`;
  const run = (filter: string) => endOf(spawn(process.execPath, ['-e', script, '--', filter]));
  const matching = await run('^Event: schema');
  assert.equal(matching.code, 0, matching.err);
  assert.match(matching.out, /\nevent: schema check +[\d.]+ (ns|µs)\/iter/);
  assert.equal(matching.out.match(/\/iter/g)?.length, 1);
  const none = await run('^no such');
  assert.equal(none.code, 1);
  assert.match(none.err, /No micro-benchmark matches \^no such/);
});
