/** The compiled service as a process: start, use, stop, kill, and starts that fail. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { readApiUrl } from '../../src/embedded/data-dir.js';
import { callerOf, event } from '../support/http/http.js';
import type { Scoped } from '../support/scope.js';
import { launchService, runService } from '../support/servers/service-process.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

type Settings = Readonly<Record<string, string>>;

/** Output of all started services. */
const logs: (() => string)[] = [];

const isLog = (line: string): boolean => line.startsWith('{');
const linesOf = (text: string): string[] => text.trimEnd().split('\n');
const warningsOf = (text: string): string[] =>
  linesOf(text).filter((line) => isLog(line) && JSON.parse(line).level >= 40);

async function launch(t: Scoped, settings: Settings, key?: string) {
  const launched = await launchService(t, { LOG_LEVEL: 'info', ...settings });
  logs.push(launched.written);
  await waitFor('the startup message', () => launched.written().includes('\n'));
  const usedKey = key ?? /development API key: (\S+)\)/.exec(launched.written())?.[1] ?? '';
  return { ...launched, key: usedKey, caller: callerOf(launched, usedKey) };
}

const readEndpoints = (dir: string): Record<'redis_url' | 'clickhouse_url' | 'analyst_url', string> =>
  JSON.parse(readFileSync(join(dir, 'endpoints.json'), 'utf8'));

/** Process ids of the embedded servers. */
function readServerPids(dir: string): number[] {
  const text = readFileSync(join(dir, 'servers.json'), 'utf8');
  const servers: Record<string, { pid: number }> = JSON.parse(text);
  return Object.values(servers).map(({ pid }) => pid);
}

/** Zombies only wait for their parent process. */
function isRunning(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', `${pid}`], { encoding: 'utf8' });
  return /^\s*[^Z\s]/.test(stdout);
}

const haveEnded = (pids: readonly number[]): boolean => pids.length === 2 && !pids.some(isRunning);

/** Rows that the analyst account sees. */
async function waitForAttempts(dir: string, count: number): Promise<void> {
  const { username, password, origin, pathname } = new URL(readEndpoints(dir).analyst_url);
  const url = `${origin}/?database=${pathname.slice(1)}&query=SELECT+count()+FROM+attempts`;
  const headers = { 'X-ClickHouse-User': username, 'X-ClickHouse-Key': password };
  await waitFor(`${count} rows`, async () => (await (await fetch(url, { headers })).text()) === `${count}\n`);
}

const listens = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/livez`).then(
    () => true,
    () => false,
  );

const folder = await tempDir({ after });
const others = await tempDir({ after });
chmodSync(folder, 0o755);
const service = await launch({ after }, { DATA_DIR: folder });

test('npm start prints the address, the development key and the dashboard link, and writes private files', () => {
  const { port, key } = service;
  const address = `http://127.0.0.1:${port}`;
  const lines = linesOf(service.written());
  assert.match(lines.filter(isLog).join(), /chmod 700 '/, 'DATA_DIR is open to others');
  const [startup, dashboard, ...others] = lines.filter((line) => !isLog(line));
  assert.equal(startup, `Skilltrace listens on ${address} (development API key: ${key})`);
  assert.equal(dashboard, `Dashboard: ${address}/dashboard#key=${key}`);
  assert.deepEqual(others, []);
  assert.equal(readFileSync(join(folder, 'api-key'), 'utf8').trim(), key);
  assert.equal(readApiUrl(folder), address);
  for (const name of ['api-key', 'endpoints.json', 'api.json'])
    assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600, name);
});

test('The service counts answers, predicts, and stores the rows in the embedded ClickHouse', async () => {
  const { caller } = service;
  assert.equal((await caller.track(event({ user_id: 'ada' }))).status, 200);
  assert.equal((await caller.trackAll([event(), event()])).status, 200);
  assert.equal((await caller.get('/api/v1/mastery/ada')).json.data.skills[0].total_attempts, 1);
  assert.equal((await caller.get('/api/v1/predictions/ada')).status, 200);
  await waitForAttempts(folder, 3);
});

test('A start with a port or folder in use or a wrong setting prints one line and exits with 1', async (t) => {
  const PORT = `${service.port}`;
  const cases: [settings: Settings, line: RegExp][] = [
    [{ PORT }, /^PORT: .*in use/],
    [{ PORT, API_PROCESSES: '2' }, /^PORT: .*in use/],
    [{ DATA_DIR: folder }, /^DATA_DIR: .*in use/],
    [{ ROLE: 'api' }, /REDIS_URL and CLICKHOUSE_URL/],
  ];
  for (const [i, [settings, line]] of cases.entries()) {
    const failed = runService(t, { LOG_LEVEL: 'fatal', DATA_DIR: join(others, `${i}`), ...settings });
    await failed.ended();
    assert.equal(failed.child.exitCode, 1, JSON.stringify(settings));
    assert.match(failed.written(), line);
    assert.equal(failed.written().trim().split('\n').length, 1, failed.written());
  }
  assert.equal((await service.caller.get('/api/v1/mastery/ada')).status, 200, 'the first service still runs');
});

test('ROLE=api and ROLE=pipeline join a running service by its DATA_DIR or by both URLs', async (t) => {
  const { redis_url: REDIS_URL, clickhouse_url: CLICKHOUSE_URL } = readEndpoints(folder);
  const byFolder = await launch(t, { DATA_DIR: folder, ROLE: 'api' }, service.key);
  const urls = { DATA_DIR: others, ROLE: 'api', REDIS_URL, CLICKHOUSE_URL };
  const byUrls = await launch(t, urls, service.key);
  for (const { caller } of [service, byFolder, byUrls])
    assert.equal((await caller.track(event({ user_id: 'shared' }))).status, 200);
  const { json } = await byUrls.caller.get('/api/v1/mastery/shared');
  assert.equal(json.data.skills[0].total_attempts, 3);
  const pipeline = runService(t, { LOG_LEVEL: 'info', DATA_DIR: folder, ROLE: 'pipeline', PORT: '' });
  logs.push(pipeline.written);
  await waitFor('the pipeline', () => pipeline.written().includes('Skilltrace pipeline is running\n'));
  for (const { child, ended } of [byFolder, byUrls, pipeline]) {
    await ended('SIGTERM');
    assert.equal(child.exitCode, 0);
  }
  await waitForAttempts(folder, 6);
});

test('The service restarts servers that were killed, and logs their new process ids', async () => {
  const { child, caller, written } = service;
  for (const pid of readServerPids(folder)) process.kill(pid, 'SIGKILL');
  await Promise.all(Array.from({ length: 20 }, () => caller.track(event())));
  await waitFor('the restart', () => (written().match(/ is running again"/g) ?? []).length === 2);
  await waitFor('an accepted answer', async () => (await caller.track(event())).status === 200);
  assert.match(written(), new RegExp(`"pid":${child.pid},.*"child":${readServerPids(folder)[0]},`));
});

test('SIGINT responds 200 to accepted requests and ends the service and its servers with code 0', async () => {
  const servers = readServerPids(folder);
  assert.equal(servers.filter(isRunning).length, 2);
  const before = warningsOf(service.written());
  const requests = Array.from({ length: 50 }, () => service.caller.track(event()).catch(() => null));
  await Promise.race(requests);
  const since = performance.now();
  await service.ended('SIGINT');
  assert.ok(performance.now() - since < 10_000);
  for (const response of await Promise.all(requests))
    assert.ok(response === null || response.status === 200, `${response?.status}`);
  assert.equal(service.child.exitCode, 0, service.written());
  assert.deepEqual(warningsOf(service.written()), before, 'no warning');
  assert.ok(haveEnded(servers));
  assert.equal(readApiUrl(folder), null);
});

test('API_PROCESSES=2 shares port and quota; after kill -9 all processes end and the next start has the data', async (t) => {
  const DATA_DIR = await tempDir(t);
  const settings = { DATA_DIR, API_KEYS: 'limited:default:40,unlimited:default:1000000' };
  const first = await launch(t, { ...settings, API_PROCESSES: '2' }, 'limited');
  const user_id = 'shared';
  const requests = Array.from({ length: 60 }, () => first.caller.track(event({ user_id })));
  const responses = await Promise.all(requests);
  assert.equal(responses.filter(({ status }) => status === 200).length, 40, 'the quota is exact');
  const prefixes = new Set(responses.map(({ headers }) => headers['x-request-id']?.split('-')[0]));
  // Only Linux distributes connections evenly.
  if (process.platform === 'linux') assert.equal(prefixes.size, 2, 'both processes responded');
  const learningEvent = event({ user_id: 'ada', event_id: 'first' });
  const response = await callerOf(first, 'unlimited').track(learningEvent);
  assert.equal(response.status, 200);

  const servers = readServerPids(DATA_DIR);
  await first.ended('SIGKILL');
  await waitFor('the end of the servers', () => haveEnded(servers));
  await waitFor('the end of the API processes', async () => !(await listens(first.port)));

  const second = await launch(t, settings, 'unlimited');
  const retried = await second.caller.track(learningEvent);
  assert.equal(retried.headers['idempotent-replayed'], 'true');
  assert.deepEqual(retried.json.data, response.json.data);
  assert.equal((await second.caller.get('/api/v1/mastery/shared')).json.data.skills[0].total_attempts, 40);
  await waitForAttempts(DATA_DIR, 41);
  await second.ended('SIGTERM');
  assert.equal(second.child.exitCode, 0);
  assert.ok(haveEnded(readServerPids(DATA_DIR)));
});

test('No log line of any process repeats a key', () => {
  // A killed service may have written part of a line.
  const lines = logs.flatMap((written) => written().split('\n').slice(0, -1)).filter(isLog);
  assert.ok(lines.length > 20, `${lines.length} lines`);
  // Parsing keeps only the last one of repeated keys.
  for (const line of lines) assert.equal(JSON.stringify(JSON.parse(line)), line);
});
