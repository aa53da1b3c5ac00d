/** What happens where a process may have few files open, or has no descriptor left. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { freshDatabase, startTestRedis } from '../support/servers/embedded.js';
import { environment, serviceProgram } from '../support/servers/service-process.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

type Settings = Readonly<Record<string, string>>;

/** Runs a program of Node with so many files. */
function runWith(t: TestContext, files: number, program: string, settings: Settings = {}) {
  const command = `ulimit -n ${files}; exec "$0" --input-type=module -e "$1"`;
  const child = spawn('sh', ['-c', command, process.execPath, program], {
    env: { ...environment(), ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const written = { out: '', err: '' };
  child.stdout.on('data', (text) => {
    written.out += text;
  });
  child.stderr.on('data', (text) => {
    written.err += text;
  });
  const closed = once(child, 'close');
  t.after(async () => {
    child.kill('SIGKILL');
    await closed;
  });
  return { child, written, closed };
}

async function serveWith(t: TestContext, files: number) {
  const settings = {
    ...{ PORT: '0', LOG_LEVEL: 'warn', API_KEYS: 'k:default:1000000', DATA_DIR: await tempDir(t) },
    ...{ REDIS_URL: await startTestRedis(t), CLICKHOUSE_URL: (await freshDatabase()).clickhouseUrl },
    ...{ AUDIT_INTERVAL_HOURS: '0', FIT_INTERVAL_HOURS: '0' },
  };
  const running = runWith(t, files, serviceProgram, settings);
  await waitFor('the start', () => /listens on/.test(running.written.out));
  const port = Number(/:(\d+)\n/.exec(running.written.out)?.[1]);
  const lines = () => running.written.err.split('\n').flatMap((line) => (line ? [JSON.parse(line)] : []));
  return { ...running, port, lines };
}

/** Status of the answer; 0 where the connection is closed without one. */
const statusOf = (port: number, path: string, agent: Agent): Promise<number> =>
  new Promise((resolve) => {
    get({ port, path, agent, headers: { 'X-API-Key': 'k' } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    }).once('error', () => resolve(0));
  });

/** Many sockets that say nothing. */
function open(port: number, count: number): Socket[] {
  return Array.from({ length: count }, () => connect(port, '127.0.0.1').on('error', () => undefined));
}

test('more connections than files: they are refused at once and told of, open ones are served', {
  timeout: 120_000,
}, async (t) => {
  const { port, lines, child, closed } = await serveWith(t, 300);
  const kept = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => kept.destroy());
  assert.equal(await statusOf(port, '/api/v1/mastery/nobody', kept), 404);
  const idle = open(port, 400);
  const release = (): void => {
    for (const socket of idle) socket.destroy();
  };
  t.after(release);
  await waitFor('250 to be refused', () => idle.filter(({ closed }) => closed).length >= 250);
  assert.equal(await statusOf(port, '/api/v1/mastery/nobody', kept), 404, 'on an open connection');
  const since = performance.now();
  assert.equal(await statusOf(port, '/livez', new Agent()), 0, 'on a new one');
  assert.ok(performance.now() - since < 9000, 'sooner than a silent connection is closed');
  const told = lines().filter(({ msg }) => /connections are refused/.test(msg));
  assert.deepEqual(
    told.map(({ msg, open }) => [/ulimit -n/.test(msg), open]),
    [[true, 150]],
  );
  assert.match(
    lines()[0].msg,
    /^ulimit -n: only 300 open files are allowed, so that 150 connections are taken/,
  );
  release();
  await waitFor('room for new ones', async () => (await statusOf(port, '/livez', new Agent())) === 200);
  const figures = await fetch(`http://127.0.0.1:${port}/metrics`).then((answer) => answer.text());
  const refused = Number(/^skilltrace_connections_refused_total\{.*\} (\d+)$/m.exec(figures)?.[1]);
  assert.ok(refused >= 251, `${refused}`);
  assert.match(figures, /^skilltrace_connections_open\{.*\} [1-9]\d?$/m);
  child.kill('SIGTERM');
  assert.deepEqual(await closed, [0, null]);
});

test('with too few files nothing is started, and the line says what to type', async (t) => {
  const { written, closed } = runWith(t, 100, serviceProgram, { DATA_DIR: await tempDir(t), PORT: '0' });
  assert.deepEqual(await closed, [1, null]);
  assert.match(
    written.err,
    /^ulimit -n: 100 open files are too few, \d+ are the least; type ulimit -n \d+ .*\n$/,
  );
});

test('a server that cannot be started for want of files is told of as that', async (t) => {
  const module = (name: string): string =>
    JSON.stringify(import.meta.resolve(`../../src/embedded/${name}.js`));
  const program = `
    import { openSync } from 'node:fs';
    import { startClickhouse } from ${module('start-clickhouse')};
    import { ensureRedisServer } from ${module('ensure-redis')};
    import { ServingPool } from ${JSON.stringify(import.meta.resolve('../../src/compute/thread-pools.js'))};
    let failed;
    const failure = new Promise((resolve) => { failed = resolve; });
    const error = ({ err }, text) => { console.log(text, err.message); failed(); };
    const logger = { debug() {}, info() {}, warn() {}, error };
    const pool = new ServingPool('retract', { minThreads: 0, maxThreads: 1 }, logger);
    const common = { dir: process.env.DIR, port: 1, password: 'a', analystPassword: 'b', logger };
    const say = (error) => console.log(error.message);
    try { for (;;) openSync('/dev/null'); } catch {}
    await startClickhouse(common).ready.catch(say);
    await ensureRedisServer(say).catch(say);
    void pool.run({}).catch(say);
    await failure;
    process.exit();`;
  const { written, closed } = runWith(t, 64, program, { DIR: await tempDir(t) });
  await closed;
  assert.equal(written.err, '');
  assert.deepEqual(written.out.trim().split('\n'), [
    'embedded ClickHouse cannot be started: this process has too many open files: start it with a higher ulimit -n (EMFILE)',
    'redis-server cannot be run: this process has too many open files: start it with a higher ulimit -n (EMFILE)',
    'a worker thread cannot be started Worker initialization failure: EMFILE',
  ]);
});
