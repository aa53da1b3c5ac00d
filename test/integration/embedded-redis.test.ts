/** The embedded Redis and the choice of its port. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { Redis } from 'ioredis';
import { findFreePort, startOnFreePort } from '../../src/embedded/free-port.js';
import { startRedis } from '../../src/embedded/start-redis.js';
import { sendSignal } from '../../src/embedded/supervisor.js';
import { createLogger } from '../../src/logger.js';
import { collectRedisWarnings } from '../../src/store/redis/server/server-info.js';
import type { Scoped } from '../support/scope.js';
import { takePort } from '../support/servers/ports.js';
import { groupMembers } from '../support/servers/processes.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const logger = createLogger('fatal', 'test');

function connect(t: Scoped, url: string): Redis {
  const client = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on('error', () => undefined);
  t.after(() => client.disconnect());
  return client;
}

async function start(t: TestContext, port: number) {
  const dir = await tempDir(t);
  const server = startRedis({ dir, port, password: 'secret', fsync: 'always', logger });
  t.after(() => server.stop(5_000));
  return { ...server, dir };
}

/** Starts Redis in another process, which can be killed. */
async function startInProcess(t: TestContext, dir: string) {
  const source = (name: string) => JSON.stringify(import.meta.resolve(`../../src/${name}.js`));
  const program = `
    const { findFreePort } = await import(${source('embedded/free-port')});
    const { startRedis } = await import(${source('embedded/start-redis')});
    const logger = (await import(${source('logger')})).createLogger('warn', 'parent');
    const [, dir] = process.argv;
    const server = startRedis({ dir, port: await findFreePort(), password: 'test', fsync: 'everysec', logger });
    await server.ready;
    console.log(JSON.stringify({ url: server.url, pid: server.pid() }));
    setInterval(() => undefined, 60_000);`;
  const args = ['--input-type=module', '-e', program, dir];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const { url, pid }: { url: string; pid: number } = JSON.parse(line);
  return { child, pid, client: connect(t, url) };
}

test('A start of the embedded Redis on a taken port names its log file', async (t) => {
  const { ready } = await start(t, await takePort(t));
  await assert.rejects(ready, /exit code 1; see .*redis\.log/);
});

const waitForEnd = (pid: number) => waitFor('the end of the group', () => groupMembers(pid).length === 0);

test('The embedded Redis has a private password, persistence and compact hashes', async (t) => {
  const server = await start(t, await findFreePort());
  await server.ready;
  const anonymous = connect(t, server.url.replace(':secret@', ''));
  await assert.rejects(anonymous.ping(), /NOAUTH/);
  assert.equal((await stat(join(server.dir, 'redis.conf'))).mode & 0o777, 0o600);
  const client = connect(t, server.url);
  const expected = {
    ...{ appendonly: 'yes', appendfsync: 'always', 'maxmemory-policy': 'noeviction', save: '' },
    ...{ bind: '127.0.0.1', 'hash-max-listpack-entries': '128', 'hash-max-listpack-value': '1024' },
    'auto-aof-rewrite-min-size': `${256 * 1024 ** 2}`,
  };
  for (const [name, value] of Object.entries(expected))
    assert.deepEqual(await client.config('GET', name), [name, value]);

  const getWarnings = async () =>
    (await collectRedisWarnings(client)).filter((line) => /hash-max/.test(line));
  assert.deepEqual(await getWarnings(), []);
  await client.config('SET', 'hash-max-listpack-value', '64');
  assert.match((await getWarnings()).join(), /^Redis has hash-max-listpack-value 64: .* Set it to 1024\.$/);
  await client.call('ACL', 'SETUSER', 'default', '-config');
  assert.deepEqual(await getWarnings(), [], 'CONFIG is not allowed');
});

test('A killed embedded Redis restarts on the same port with its data', async (t) => {
  const server = await start(t, await findFreePort());
  await server.ready;
  const client = connect(t, server.url);
  await client.set('key', 'value');
  const before = server.pid() ?? 0;
  sendSignal(before, 'SIGKILL');
  await waitFor('another process', () => server.pid() !== before);
  assert.equal(await client.get('key'), 'value');
  await waitForEnd(before);
  const last = server.pid() ?? 0;
  await server.stop(5_000);
  await waitForEnd(last);
});

test('The embedded Redis leads a process group and ends cleanly when its parent ends', async (t) => {
  const dir = await tempDir(t);
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    const { child, pid, client } = await startInProcess(t, dir);
    assert.ok(groupMembers(pid).includes(pid), 'Redis does not lead a group');
    if (signal === 'SIGKILL') await client.set('answer', '42');
    else assert.equal(await client.get('answer'), '42');
    child.kill(signal);
    const ms = await waitForEnd(pid);
    assert.ok(ms < 15_000, `${ms} ms`);
    assert.match(await readFile(join(dir, 'redis.log'), 'utf8'), /ready to exit/);
  }
});

test('startOnFreePort chooses another port, at most twice, if a program takes the port', async (t) => {
  const ports: number[] = [];
  const url = await startOnFreePort(async (port) => {
    if (ports.push(port) === 1) await takePort(t, port);
    const server = await start(t, port);
    await server.ready;
    return server.url;
  });
  assert.equal(ports.length, 2);
  assert.match(url, new RegExp(`:${ports[1]}$`));

  let starts = 0;
  const fail = async (port: number, isTaken: boolean): Promise<never> => {
    starts += 1;
    if (isTaken) await takePort(t, port);
    throw new Error(`start ${starts}`);
  };
  const startFailing = (isTaken: boolean) => startOnFreePort((port) => fail(port, isTaken));
  await assert.rejects(startFailing(true), /start 3/);
  await assert.rejects(startFailing(false), /start 4/);
});
