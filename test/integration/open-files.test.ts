/** Processes with few or no free file descriptors. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { freshDatabase, startTestRedis } from '../support/servers/embedded.js';
import { environment, serviceProgram } from '../support/servers/service-process.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

/** Runs a program of Node with a limit of open files. */
function runWith(t: TestContext, files: number, program: string, settings: Record<string, string>) {
  const command = `ulimit -n ${files}; exec "$0" --input-type=module -e "$1"`;
  const env = { ...environment(), ...settings };
  const child = spawn('sh', ['-c', command, process.execPath, program], { env });
  const written = { out: '', err: '' };
  for (const name of ['out', 'err'] as const)
    child[`std${name}`].on('data', (text) => {
      written[name] += text;
    });
  const closed = once(child, 'close');
  t.after(async () => {
    child.kill('SIGKILL');
    await closed;
  });
  return { child, written, closed };
}

/** Status of a response, or 0 if the connection is closed without one. */
const getStatus = (port: number, path: string, agent: Agent): Promise<number> =>
  new Promise((resolve) => {
    get({ port, path, agent, headers: { 'X-API-Key': 'k' } }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    }).once('error', () => resolve(0));
  });

test('The service closes connections above its file limit, serves the open ones, and logs it once', async (t) => {
  const { child, written, closed } = runWith(t, 300, serviceProgram, {
    ...{ PORT: '0', LOG_LEVEL: 'warn', API_KEYS: 'k:default:1000000', DATA_DIR: await tempDir(t) },
    ...{ REDIS_URL: await startTestRedis(t), CLICKHOUSE_URL: (await freshDatabase()).clickhouseUrl },
    ...{ AUDIT_INTERVAL_HOURS: '0', FIT_INTERVAL_HOURS: '0' },
  });
  await waitFor('the start', () => /listens on/.test(written.out));
  const port = Number(/:(\d+)\n/.exec(written.out)?.[1]);
  const persistent = new Agent({ keepAlive: true, maxSockets: 1 });
  const path = '/api/v1/mastery/unknown';
  assert.equal(await getStatus(port, path, persistent), 404);
  const idle = Array.from({ length: 400 }, () => connect(port, '127.0.0.1').on('error', () => undefined));
  const release = (): void => {
    for (const socket of idle) socket.destroy();
  };
  t.after(() => {
    release();
    persistent.destroy();
  });
  await waitFor('250 closed connections', () => idle.filter(({ closed }) => closed).length >= 250);
  assert.equal(await getStatus(port, path, persistent), 404, 'an open connection');
  assert.equal(await getStatus(port, '/livez', new Agent()), 0, 'a new connection');
  const lines = written.err.trim().split('\n');
  const [limit, ...others] = lines.map((line) => JSON.parse(line));
  assert.match(limit.msg, /^ulimit -n: the limit is 300 open files, so at most 150 connections are accepted/);
  const [first, ...more] = others.filter(({ msg }) => /connections are rejected/.test(msg));
  assert.match(first.msg, /ulimit -n/);
  assert.deepEqual([first.open, more], [150, []]);
  release();
  await waitFor('free connections', async () => (await getStatus(port, '/livez', new Agent())) === 200);
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const rejected = Number(/^skilltrace_connections_refused_total\{.*\} (\d+)$/m.exec(metrics)?.[1]);
  assert.ok(rejected >= 251, `${rejected}`);
  assert.match(metrics, /^skilltrace_connections_open\{.*\} [1-9]\d?$/m);
  child.kill('SIGTERM');
  assert.deepEqual(await closed, [0, null]);
});

test('A start with too few files exits with 1 and names the command to type', async (t) => {
  const { written, closed } = runWith(t, 100, serviceProgram, { DATA_DIR: await tempDir(t), PORT: '0' });
  assert.deepEqual(await closed, [1, null]);
  const advice =
    /^ulimit -n: the limit of 100 open files is too low; the minimum is \d+\. Run ulimit -n \d+ .*\n$/;
  assert.match(written.err, advice);
});

test('startClickhouse, ensureRedisServer and thread pools report missing file descriptors as the cause', async (t) => {
  const source = (name: string): string => JSON.stringify(import.meta.resolve(`../../src/${name}.js`));
  const program = `
    import { openSync } from 'node:fs';
    import { startClickhouse } from ${source('embedded/start-clickhouse')};
    import { ensureRedisServer } from ${source('embedded/ensure-redis')};
    import { ServingPool } from ${source('compute/thread-pools')};
    let failed;
    const failure = new Promise((resolve) => { failed = resolve; });
    const error = ({ err }, text) => { console.log(text, err.message); failed(); };
    const logger = { debug() {}, info() {}, warn() {}, error };
    const pool = new ServingPool('rewrite', { minThreads: 0, maxThreads: 1 }, logger);
    const print = (error) => console.log(error.message);
    try { for (;;) openSync('/dev/null'); } catch {}
    const accounts = { password: 'a', analystPassword: 'b' };
    await startClickhouse({ dir: process.env.DIR, port: 1, ...accounts, logger }).ready.catch(print);
    await ensureRedisServer(print).catch(print);
    void pool.run({}).catch(print);
    await failure;
    process.exit();`;
  const { written, closed } = runWith(t, 64, program, { DIR: await tempDir(t) });
  await closed;
  assert.equal(written.err, '');
  const cause = 'this process has too many open files; raise ulimit -n and restart (EMFILE)';
  assert.deepEqual(written.out.trim().split('\n'), [
    `embedded ClickHouse cannot be started: ${cause}`,
    `redis-server cannot be run: ${cause}`,
    'cannot start a worker thread Worker initialization failure: EMFILE',
  ]);
});
