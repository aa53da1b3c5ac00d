import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { identifyProcess, isAlive } from '../../src/dir-lock.js';
import { openDataDir, readStoredEndpoints, warnIfReadable } from '../../src/embedded/data-dir.js';
import {
  connectOrStart,
  probeEndpoints,
  resolveEndpoints,
  startEmbeddedServers,
} from '../../src/embedded/servers.js';
import { sendSignal } from '../../src/embedded/supervisor.js';
import { createClosers, StartError } from '../../src/lifecycle.js';
import { createLogger } from '../../src/logger.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { takePort } from '../support/servers/ports.js';
import { tempDir } from '../support/temp.js';

const LIMIT = { timeout: 60_000 };
const logger = createLogger('silent', 'test');

async function openElsewhere(t: TestContext, path: string) {
  const script = fileURLToPath(new URL('../support/servers/data-dir-parent.js', import.meta.url));
  const child = spawn(process.execPath, [script, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  return { child, said: String(line) };
}

async function die(child: ReturnType<typeof spawn>): Promise<void> {
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

const settings = (dataDir: string) => ({
  dataDir,
  redisUrl: null,
  clickhouseUrl: null,
  embeddedRedisPort: 0,
  embeddedClickhousePort: 0,
  embeddedRedisFsync: 'everysec' as const,
});

test('a process is known by its start too, so a reused id is another process', () => {
  const self = identifyProcess(process.pid);
  assert.ok(self !== null);
  assert.equal(isAlive(self), true);
  assert.equal(isAlive({ ...self, startedAt: 'before' }), false);
  assert.equal(identifyProcess(2 ** 22 + 1), null);
});

test('a folder that is open to others is warned of with what to type, whatever its name', async (t) => {
  const dir = join(await tempDir(t), "it's $HOME");
  const lines: string[] = [];
  const log = createLogger('info', 'test', { write: (line) => lines.push(JSON.parse(line).msg) });
  warnIfReadable(dir, log);
  (await openDataDir(dir)).release();
  warnIfReadable(dir, log);
  assert.deepEqual(lines, [], 'neither where it is missing nor where it was made');
  for (const mode of [0o755, 0o750, 0o701, 0o770]) {
    await chmod(dir, mode);
    warnIfReadable(dir, log);
    const command: string = /^DATA_DIR .*; type: (chmod 700 .*)$/.exec(lines.pop() ?? '')?.[1] ?? '';
    assert.equal(spawnSync('sh', ['-c', command]).status, 0, command);
    assert.equal((await stat(dir)).mode & 0o777, 0o700);
  }
});

test('a folder in use is an error that names the process', LIMIT, async (t) => {
  const dir = await tempDir(t);
  const first = await openElsewhere(t, dir);
  assert.equal(first.said, 'owner');
  await assert.rejects(openDataDir(dir), (error) => {
    assert.ok(error instanceof StartError);
    assert.match(error.message, new RegExp(`DATA_DIR.* in use by another instance .*${first.child.pid}\\b`));
    return true;
  });
  await die(first.child);
  (await openDataDir(dir)).release();
});

test('a place where no folder can be made is a plain error at once', LIMIT, async (t) => {
  const dir = await tempDir(t);
  await writeFile(join(dir, 'file'), '');
  await symlink(join(dir, 'nowhere', 'at', 'all'), join(dir, 'dangling'));
  const plain = /^DATA_DIR: .* cannot be (made|written): /;
  // In a process of its own: one that tries for ever hears nothing in between.
  if (process.platform === 'linux') assert.match((await openElsewhere(t, '/proc/xx/yy')).said, plain);
  const names = ['file', 'file/below', 'dangling', 'dangling/below', 'x'.repeat(300), 'y/'.repeat(3000)];
  for (const path of [...names.map((name) => join(dir, name)), '/dev/null'])
    await assert.rejects(
      openDataDir(path),
      (error) => error instanceof StartError && plain.test(error.message),
    );
  const deep = join(dir, 'a/b/c');
  (await openDataDir(deep)).release();
  assert.equal((await stat(deep)).mode & 0o777, 0o700);
});

test('a lock that cannot be counted up, or read, is a plain error', async (t) => {
  const dir = await tempDir(t);
  await writeFile(join(dir, 'lock.100000000000000000000'), 'null');
  await assert.rejects(openDataDir(dir), /^StartError: DATA_DIR: the lock of .* cannot be taken/);
  await mkdir(join(dir, 'lock.200000000000000000000'));
  await assert.rejects(openDataDir(dir), /^StartError: DATA_DIR: .* cannot be read: EISDIR/);
});

test('a released folder is free, also for the same process', async (t) => {
  const dir = await tempDir(t);
  for (let i = 0; i < 3; i++) {
    const owned = await openDataDir(dir);
    await assert.rejects(openDataDir(dir), /in use/);
    owned.release();
  }
});

test('the lock of a reused process id is stale', async (t) => {
  const dir = await tempDir(t);
  const stale = { pid: process.pid, startedAt: 'an earlier life', released: false };
  await writeFile(join(dir, 'lock.7'), JSON.stringify(stale));
  (await openDataDir(dir)).release();
});

test('of many at a stale lock exactly one wins', LIMIT, async (t) => {
  const dir = await tempDir(t);
  for (let round = 0; round < 3; round++) {
    const starters = await Promise.all(Array.from({ length: 6 }, () => openElsewhere(t, dir)));
    const owners = starters.filter(({ said }) => said === 'owner');
    assert.equal(owners.length, 1, starters.map(({ said }) => said).join('\n'));
    await Promise.all(owners.map(({ child }) => die(child)));
  }
});

test('a dead predecessor’s server is waited for, then named', LIMIT, async (t) => {
  const dir = await tempDir(t);
  const server = spawn('sleep', ['60']);
  t.after(() => server.kill('SIGKILL'));
  const first = await openDataDir(dir);
  first.recordServer('redis', server.pid ?? 0);
  first.release();
  await assert.rejects(openDataDir(dir, 200), new RegExp(`in use by the redis of .*${server.pid}\\b`));
  setTimeout(() => server.kill('SIGKILL'), 300);
  (await openDataDir(dir)).release();
});

test('passwords are random, private and stay the same', async (t) => {
  const dir = await tempDir(t);
  const first = await openDataDir(dir);
  first.release();
  const second = await openDataDir(dir);
  second.release();
  assert.deepEqual(second.secrets, first.secrets);
  assert.equal(new Set(Object.values(first.secrets)).size, 3);
  assert.equal((await stat(join(dir, 'secrets.json'))).mode & 0o777, 0o600);
});

test('endpoints.json has the contract’s names and is private', async (t) => {
  const dir = await tempDir(t);
  const owned = await openDataDir(dir);
  assert.equal(readStoredEndpoints(dir), null);
  const endpoints = { redisUrl: 'redis://r', clickhouseUrl: 'http://c', analystUrl: null };
  owned.writeEndpoints(endpoints);
  assert.deepEqual(JSON.parse(await readFile(join(dir, 'endpoints.json'), 'utf8')), {
    redis_url: 'redis://r',
    clickhouse_url: 'http://c',
    analyst_url: null,
  });
  assert.equal((await stat(join(dir, 'endpoints.json'))).mode & 0o777, 0o600);
  assert.deepEqual(readStoredEndpoints(dir), endpoints);
  owned.removeEndpoints();
  assert.equal(readStoredEndpoints(dir), null);
  owned.release();
});

test('endpoints count only while both servers answer', LIMIT, async (t) => {
  const dir = await tempDir(t);
  assert.match(JSON.stringify(await probeEndpoints(dir)), /no service runs/);
  const owned = await openDataDir(dir);
  owned.writeEndpoints({
    redisUrl: 'redis://127.0.0.1:1',
    clickhouseUrl: 'http://127.0.0.1:1',
    analystUrl: null,
  });
  // Without end where it asked again: who refuses is gone.
  const found = await probeEndpoints(dir, Number.POSITIVE_INFINITY);
  assert.match(JSON.stringify(found), /Redis .* does not answer .*ECONNREFUSED/);
  const redisUrl = await startTestRedis(t);
  owned.writeEndpoints({ redisUrl, clickhouseUrl: 'http://127.0.0.1:1', analystUrl: null });
  await assert.rejects(resolveEndpoints(settings(dir)), /ClickHouse .* does not answer/);
  owned.release();
});

test('with both URLs set nothing is embedded, and the addresses are published until the stop', async (t) => {
  const dir = await tempDir(t);
  const closers = createClosers(logger);
  const urls = { redisUrl: 'redis://h:6379', clickhouseUrl: 'http://h:8123/d' };
  assert.deepEqual(await startEmbeddedServers({ ...settings(dir), ...urls }, logger, closers), {
    ...urls,
    analystUrl: null,
  });
  assert.equal(readStoredEndpoints(dir)?.redisUrl, 'redis://h:6379');
  assert.equal(await closers.close(), true);
  assert.equal(readStoredEndpoints(dir), null);
});

test('a pinned port that is taken is an error with the variable’s name', LIMIT, async (t) => {
  const closers = createClosers(logger);
  const pinned = {
    ...settings(await tempDir(t)),
    clickhouseUrl: 'http://h:8123/d',
    embeddedRedisPort: await takePort(t),
  };
  await assert.rejects(
    startEmbeddedServers(pinned, logger, closers),
    /EMBEDDED_REDIS_PORT: port \d+ .* is taken/,
  );
  assert.equal(await closers.close(), true);
});

async function recordedServers(dir: string): Promise<Record<string, { pid: number; startedAt: string }>> {
  return JSON.parse(await readFile(join(dir, 'servers.json'), 'utf8'));
}

test('both servers start, answer, are found and are gone after the stop', LIMIT, async (t) => {
  const dir = await tempDir(t);
  const closers = createClosers(logger);
  t.after(() => closers.close());
  const endpoints = await startEmbeddedServers(settings(dir), logger, closers);
  assert.deepEqual(await probeEndpoints(dir), { endpoints });
  assert.deepEqual(await resolveEndpoints(settings(dir)), endpoints);
  assert.equal(await closers.close(), true);
  const recorded = await recordedServers(dir);
  assert.deepEqual(Object.keys(recorded).sort(), ['clickhouse', 'redis']);
  for (const identity of Object.values(recorded)) assert.equal(isAlive(identity), false);
  assert.match(JSON.stringify(await probeEndpoints(dir)), /no service runs/);
});

test('servers that stand still for a while are waited for, not started beside', LIMIT, async (t) => {
  const dir = await tempDir(t);
  const closers = createClosers(logger);
  const endpoints = await startEmbeddedServers(settings(dir), logger, closers);
  const pids = Object.values(await recordedServers(dir)).map(({ pid }) => pid);
  const tellAll = (signal: NodeJS.Signals) => pids.map((pid) => sendSignal(pid, signal));
  t.after(async () => {
    tellAll('SIGCONT');
    await closers.close();
  });
  tellAll('SIGSTOP');
  assert.match(JSON.stringify(await probeEndpoints(dir, 0)), /does not answer/);
  setTimeout(tellAll, 2_500, 'SIGCONT');
  assert.deepEqual(await connectOrStart(settings(dir), logger, closers), endpoints);
});
