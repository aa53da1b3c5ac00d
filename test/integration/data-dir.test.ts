/** DATA_DIR: its lock, its files, and the embedded servers in it. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { identifyProcess, isAlive } from '../../src/dir-lock.js';
import { openDataDir, readStoredEndpoints, warnIfReadable } from '../../src/embedded/data-dir.js';
import {
  connectOrStart,
  probeEndpoints,
  resolveEndpoints,
  startEmbeddedServers,
} from '../../src/embedded/servers.js';
import { sendSignal } from '../../src/embedded/supervisor.js';
import { createClosers } from '../../src/lifecycle.js';
import { createLogger } from '../../src/logger.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { takePort } from '../support/servers/ports.js';
import { tempDir } from '../support/temp.js';

const logger = createLogger('silent', 'test');

/** Opens a folder in another process, which then waits. @returns `owner` or the error in `line` */
async function openInProcess(t: TestContext, path: string) {
  const module = JSON.stringify(import.meta.resolve('../../src/embedded/data-dir.js'));
  const program = `
    const { openDataDir } = await import(${module});
    const opened = openDataDir(process.argv[1], 1000).then(() => setInterval(() => undefined, 60_000));
    console.log(await opened.then(() => 'owner', ({ message }) => message));`;
  const args = ['--input-type=module', '-e', program, path];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const kill = async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  return { line, pid: child.pid, kill };
}

const settings = (dataDir: string) => ({
  ...{ dataDir, redisUrl: null, clickhouseUrl: null, embeddedRedisPort: 0, embeddedClickhousePort: 0 },
  embeddedRedisFsync: 'everysec' as const,
});

const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;

test('isAlive compares the start time, because process ids are reused', () => {
  const self = identifyProcess(process.pid);
  assert.ok(self !== null);
  assert.deepEqual([isAlive(self), isAlive({ ...self, startedAt: 'before' })], [true, false]);
  assert.equal(identifyProcess(2 ** 22 + 1), null);
});

test('warnIfReadable logs a command that makes an open folder private', async (t) => {
  const dir = join(await tempDir(t), "it's $HOME");
  const lines: string[] = [];
  const log = createLogger('info', 'test', { write: (line) => lines.push(JSON.parse(line).msg) });
  warnIfReadable(dir, log);
  (await openDataDir(dir)).release();
  warnIfReadable(dir, log);
  assert.deepEqual(lines, [], 'a missing or private folder');
  for (const mode of [0o755, 0o750, 0o701]) {
    await chmod(dir, mode);
    warnIfReadable(dir, log);
    const command: string = /access DATA_DIR; run: (chmod 700 .*)$/.exec(lines.pop() ?? '')?.[1] ?? '';
    assert.equal(spawnSync('sh', ['-c', command]).status, 0, command);
    assert.equal(await modeOf(dir), 0o700);
  }
});

test('openDataDir rejects a folder in use and names the process, until that process ends', async (t) => {
  const dir = await tempDir(t);
  const first = await openInProcess(t, dir);
  assert.equal(first.line, 'owner');
  const message = new RegExp(`DATA_DIR.* in use by another instance .*${first.pid}\\b`);
  await assert.rejects(openDataDir(dir), { name: 'StartError', message });
  await first.kill();
  for (let i = 0; i < 2; i++) {
    const opened = await openDataDir(dir);
    await assert.rejects(openDataDir(dir), /in use/);
    opened.release();
  }
});

test('openDataDir creates a private folder, or rejects a path where it cannot', async (t) => {
  const dir = await tempDir(t);
  await writeFile(join(dir, 'file'), '');
  await symlink(join(dir, 'nowhere', 'at', 'all'), join(dir, 'dangling'));
  const message = /^DATA_DIR: .* cannot be (created|written): /;
  // In another process, because endless retries would block this one.
  if (process.platform === 'linux') assert.match((await openInProcess(t, '/proc/xx/yy')).line, message);
  const names = ['file', 'file/below', 'dangling', 'dangling/below', 'x'.repeat(300), 'y/'.repeat(3000)];
  for (const path of [...names.map((name) => join(dir, name)), '/dev/null'])
    await assert.rejects(openDataDir(path), { name: 'StartError', message }, path);
  const deep = join(dir, 'a/b/c');
  (await openDataDir(deep)).release();
  assert.equal(await modeOf(deep), 0o700);
});

test('openDataDir replaces the lock of a reused process id and rejects an unusable lock', async (t) => {
  const dir = await tempDir(t);
  const stale = { pid: process.pid, startedAt: 'before', released: false };
  await writeFile(join(dir, 'lock.7'), JSON.stringify(stale));
  (await openDataDir(dir)).release();
  await writeFile(join(dir, 'lock.100000000000000000000'), 'null');
  await assert.rejects(openDataDir(dir), /^StartError: DATA_DIR: cannot lock .*; stop all instances/);
  await mkdir(join(dir, 'lock.200000000000000000000'));
  await assert.rejects(openDataDir(dir), /^StartError: DATA_DIR: cannot read .*: EISDIR/);
});

test('openDataDir gives a stale lock to exactly one of several processes', async (t) => {
  const dir = await tempDir(t);
  for (let round = 0; round < 2; round++) {
    const processes = await Promise.all([1, 2, 3, 4, 5].map(() => openInProcess(t, dir)));
    const [owner, ...others] = processes.filter(({ line }) => line === 'owner');
    assert.ok(owner && others.length === 0, processes.map(({ line }) => line).join('\n'));
    await owner.kill();
  }
});

test('openDataDir waits for the servers of a dead predecessor, then names them', async (t) => {
  const dir = await tempDir(t);
  const server = spawn('sleep', ['600']);
  t.after(() => server.kill('SIGKILL'));
  const first = await openDataDir(dir);
  first.recordServer('redis', server.pid ?? 0);
  first.release();
  await assert.rejects(openDataDir(dir, 200), new RegExp(`in use by the redis of .*${server.pid}\\b`));
  setTimeout(() => server.kill('SIGKILL'), 300);
  (await openDataDir(dir)).release();
});

test('DATA_DIR has private files for the passwords, which never change, and the endpoints', async (t) => {
  const dir = await tempDir(t);
  const first = await openDataDir(dir);
  first.release();
  assert.equal(new Set(Object.values(first.secrets)).size, 3);
  const opened = await openDataDir(dir);
  assert.deepEqual(opened.secrets, first.secrets);
  assert.equal(readStoredEndpoints(dir), null);
  const endpoints = { redisUrl: 'redis://r', clickhouseUrl: 'http://c', analystUrl: null };
  opened.writeEndpoints(endpoints);
  const stored = { redis_url: 'redis://r', clickhouse_url: 'http://c', analyst_url: null };
  assert.deepEqual(JSON.parse(await readFile(join(dir, 'endpoints.json'), 'utf8')), stored);
  for (const name of ['secrets.json', 'endpoints.json']) assert.equal(await modeOf(join(dir, name)), 0o600);
  assert.deepEqual(readStoredEndpoints(dir), endpoints);
  opened.removeEndpoints();
  assert.equal(readStoredEndpoints(dir), null);
  opened.release();
});

test('probeEndpoints names the server of endpoints.json that does not respond', async (t) => {
  const dir = await tempDir(t);
  assert.match(JSON.stringify(await probeEndpoints(dir)), /no service is running/);
  const opened = await openDataDir(dir);
  const clickhouseUrl = 'http://127.0.0.1:1';
  opened.writeEndpoints({ redisUrl: 'redis://127.0.0.1:1', clickhouseUrl, analystUrl: null });
  // A refused connection is not retried.
  const problem = await probeEndpoints(dir, Number.POSITIVE_INFINITY);
  assert.match(JSON.stringify(problem), /Redis .* does not respond .*ECONNREFUSED/);
  opened.writeEndpoints({ redisUrl: await startTestRedis(t), clickhouseUrl, analystUrl: null });
  await assert.rejects(resolveEndpoints(settings(dir)), /ClickHouse .* does not respond/);
  opened.release();
});

test('startEmbeddedServers with both URLs publishes them until the stop and starts no server', async (t) => {
  const dir = await tempDir(t);
  const closers = createClosers(logger);
  const urls = { redisUrl: 'redis://h:6379', clickhouseUrl: 'http://h:8123/d' };
  const endpoints = await startEmbeddedServers({ ...settings(dir), ...urls }, logger, closers);
  assert.deepEqual(endpoints, { ...urls, analystUrl: null });
  assert.equal(readStoredEndpoints(dir)?.redisUrl, 'redis://h:6379');
  assert.equal(await closers.close(), true);
  assert.equal(readStoredEndpoints(dir), null);
});

test('startEmbeddedServers names the variable of a port in use', async (t) => {
  const closers = createClosers(logger);
  const clickhouseUrl = 'http://h:8123/d';
  const dataDir = await tempDir(t);
  const pinned = { ...settings(dataDir), clickhouseUrl, embeddedRedisPort: await takePort(t) };
  const start = startEmbeddedServers(pinned, logger, closers);
  await assert.rejects(start, /EMBEDDED_REDIS_PORT: port \d+ .* is in use/);
  assert.equal(await closers.close(), true);
});

test('startEmbeddedServers starts servers that others find, wait for while they hang, and that end with it', async (t) => {
  const dir = await tempDir(t);
  const closers = createClosers(logger);
  const endpoints = await startEmbeddedServers(settings(dir), logger, closers);
  const text = await readFile(join(dir, 'servers.json'), 'utf8');
  const servers: Record<string, { pid: number; startedAt: string }> = JSON.parse(text);
  const signalAll = (signal: NodeJS.Signals) => {
    for (const { pid } of Object.values(servers)) sendSignal(pid, signal);
  };
  t.after(() => {
    signalAll('SIGCONT');
    return closers.close();
  });
  assert.deepEqual(Object.keys(servers).sort(), ['clickhouse', 'redis']);
  assert.deepEqual(await probeEndpoints(dir), { endpoints });
  assert.deepEqual(await resolveEndpoints(settings(dir)), endpoints);

  signalAll('SIGSTOP');
  assert.match(JSON.stringify(await probeEndpoints(dir, 0)), /does not respond/);
  const resume = setTimeout(signalAll, 2_500, 'SIGCONT');
  t.after(() => clearTimeout(resume));
  assert.deepEqual(await connectOrStart(settings(dir), logger, closers), endpoints);

  assert.equal(await closers.close(), true);
  for (const server of Object.values(servers)) assert.equal(isAlive(server), false);
  assert.match(JSON.stringify(await probeEndpoints(dir)), /no service is running/);
});
