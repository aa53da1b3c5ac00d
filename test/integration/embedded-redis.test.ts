import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { findFreePort, startOnFreePort } from '../../src/embedded/free-port.js';
import { startRedis } from '../../src/embedded/start-redis.js';
import { sendSignal } from '../../src/embedded/supervisor.js';
import { createLogger } from '../../src/logger.js';
import { collectRedisWarnings } from '../../src/store/redis/server/server-info.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { takePort } from '../support/servers/ports.js';
import { groupMembers } from '../support/servers/processes.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const logger = createLogger('fatal', 'test');
const LIMIT = { timeout: 60_000 };

const groupAlive = (pid: number): boolean => groupMembers(pid).length > 0;

function connect(t: TestContext, url: string): Redis {
  const client = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on('error', () => undefined);
  t.after(() => client.disconnect());
  return client;
}

async function startParent(t: TestContext, dir: string) {
  const script = fileURLToPath(new URL('../support/servers/redis-parent.js', import.meta.url));
  const child = spawn(process.execPath, [script, dir], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  const { url, pid } = JSON.parse(String(line));
  return { child, url: String(url), pid: Number(pid) };
}

test('the settings are the ones the service relies on', LIMIT, async (t) => {
  const client = connect(t, await startTestRedis(t));
  const expected = {
    appendonly: 'yes',
    appendfsync: 'everysec',
    'maxmemory-policy': 'noeviction',
    save: '',
    bind: '127.0.0.1',
    'hash-max-listpack-entries': '128',
    'hash-max-listpack-value': '1024',
    'auto-aof-rewrite-min-size': `${256 * 1024 ** 2}`,
  };
  for (const [name, value] of Object.entries(expected)) {
    assert.deepEqual(await client.config('GET', name), [name, value]);
  }
});

test('where settings cost memory it is told, as far as they may be read', LIMIT, async (t) => {
  const client = connect(t, await startTestRedis(t));
  const told = async () => (await collectRedisWarnings(client)).filter((one) => one.includes('hash-max'));
  assert.deepEqual(await told(), []);
  await client.config('SET', 'hash-max-listpack-value', '64');
  assert.match((await told()).join(), /^Redis has hash-max-listpack-value 64: .* Set 1024$/);
  await client.call('ACL', 'SETUSER', 'default', '-config');
  assert.deepEqual(await told(), []);
});

test('a password is needed, and only its owner can read it', LIMIT, async (t) => {
  const dir = await tempDir(t);
  const server = startRedis({ dir, port: await findFreePort(), password: 'secret', fsync: 'always', logger });
  await server.ready;
  const stranger = connect(t, server.url.replace(':secret@', ''));
  await assert.rejects(stranger.ping(), /NOAUTH/);
  assert.equal((await stat(join(dir, 'redis.conf'))).mode & 0o777, 0o600);
  await server.stop(5_000);
});

test('a killed Redis comes back on the same port with its data', LIMIT, async (t) => {
  const dir = await tempDir(t);
  const server = startRedis({ dir, port: await findFreePort(), password: 'test', fsync: 'always', logger });
  await server.ready;
  const client = connect(t, server.url);
  for (const value of ['1', '2']) {
    await client.set(`key${value}`, value);
    const before = server.pid() ?? 0;
    sendSignal(before, 'SIGKILL');
    await waitFor('another process', () => server.pid() !== before);
    assert.equal(await client.get(`key${value}`), value);
    await waitFor('the watcher of the dead server to end', () => !groupAlive(before));
  }
  const last = server.pid() ?? 0;
  await server.stop(5_000);
  await waitFor('its group to end', () => !groupAlive(last));
});

test(
  'kill -9 of the parent ends Redis cleanly within seconds, with the append-only file written',
  LIMIT,
  async (t) => {
    const dir = await tempDir(t);
    const parent = await startParent(t, dir);
    await connect(t, parent.url).set('answer', '42');
    parent.child.kill('SIGKILL');
    const took = await waitFor('Redis to end', () => !groupAlive(parent.pid));
    assert.ok(took < 15_000, `${took} ms`);
    assert.match(await readFile(join(dir, 'redis.log'), 'utf8'), /ready to exit/);

    const again = await startParent(t, dir);
    assert.equal(await connect(t, again.url).get('answer'), '42');
    again.child.kill('SIGKILL');
    await waitFor('Redis to end', () => !groupAlive(again.pid));
  },
);

test('the signals of a terminal do not reach Redis', LIMIT, async (t) => {
  const parent = await startParent(t, await tempDir(t));
  assert.ok(groupMembers(parent.pid).includes(parent.pid), 'it leads a group of its own');
  parent.child.kill('SIGTERM');
  await waitFor('Redis to end', () => !groupAlive(parent.pid));
});

test('a taken port fails the start with the place of the log', LIMIT, async (t) => {
  const dir = await tempDir(t);
  const server = startRedis({ dir, port: await takePort(t), password: 'test', fsync: 'always', logger });
  await assert.rejects(server.ready, /ended before it was ready: exit code 1; see .*redis\.log/);
  await server.stop(1_000);
});

test('a port that somebody takes between choice and start is given up for another', LIMIT, async (t) => {
  const dir = await tempDir(t);
  const tried: number[] = [];
  const url = await startOnFreePort(async (port) => {
    if (tried.push(port) === 1) await takePort(t, port);
    const server = startRedis({ dir, port, password: 'test', fsync: 'always', logger });
    t.after(() => server.stop(5_000));
    await server.ready;
    return server.url;
  });
  assert.equal(tried.length, 2);
  assert.match(url, new RegExp(`:${tried[1]}$`));
  assert.equal(await connect(t, url).ping(), 'PONG');
});

test('a start is repeated twice at most, and not where the port is not the reason', LIMIT, async (t) => {
  let starts = 0;
  const taken = startOnFreePort(async (port) => {
    starts += 1;
    await takePort(t, port);
    throw new Error(`start ${starts}`);
  });
  await assert.rejects(taken, /start 3/);
  const broken = startOnFreePort(async () => {
    starts += 1;
    throw new Error(`start ${starts}`);
  });
  await assert.rejects(broken, /start 4/);
});
