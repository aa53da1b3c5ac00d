/** The compiled service as a process: start, use, stop, kill, and the ways in which a start is refused. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readApiUrl } from '../../src/embedded/data-dir.js';
import { type Caller, callerOf, event } from '../support/http/http.js';
import { dataFolder } from '../support/servers/service.js';
import { environment, serviceProgram } from '../support/servers/service-process.js';
import { askUntil, waitFor } from '../support/wait.js';

interface Running {
  readonly child: ChildProcess;
  /** What it has written so far. */
  out(): string;
  errors(): string;
  /** Exit code, or the signal that ended it. */
  exit(): Promise<number | string | null>;
}

type Settings = Readonly<Record<string, string>>;

/** What the running test has started. */
const launched: Running[] = [];

async function endAll(): Promise<void> {
  const ends = launched.splice(0).map(async ({ child, exit }) => {
    child.kill('SIGTERM');
    await exit().catch(() => child.kill('SIGKILL'));
  });
  await Promise.all(ends);
}

function launch(settings: Settings): Running {
  const child = spawn(process.execPath, ['-e', serviceProgram], {
    env: { ...environment(), PORT: '0', LOG_LEVEL: 'warn', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const written = { out: '', errors: '' };
  child.stdout?.on('data', (chunk) => {
    written.out += chunk;
  });
  child.stderr?.on('data', (chunk) => {
    written.errors += chunk;
  });
  // Not 'exit': what it wrote last may come after that.
  let closed = false;
  child.once('close', () => {
    closed = true;
  });
  const exit = async () => {
    await waitFor('the exit', () => closed);
    return child.signalCode ?? child.exitCode;
  };
  const running = { child, out: () => written.out, errors: () => written.errors, exit };
  launched.push(running);
  return running;
}

interface Service extends Running {
  readonly port: number;
  readonly key: string;
  readonly caller: Caller;
}

async function start(settings: Settings, key?: string): Promise<Service> {
  const running = launch(settings);
  await waitFor('the start', () => {
    if (running.child.exitCode !== null) throw new Error(`it ended: ${running.errors()}`);
    return running.out().includes('\n');
  });
  const [, port, made] =
    /^Skilltrace listens on http:\/\/127\.0\.0\.1:(\d+)(?: \(development API key: (\S+)\)\nDashboard: http:\/\/127\.0\.0\.1:\1\/dashboard#key=\2)?\n$/.exec(
      running.out(),
    ) ?? [];
  assert.ok(port !== undefined, running.out());
  const used = key ?? made ?? '';
  return { ...running, port: Number(port), key: used, caller: callerOf({ port: Number(port) }, used) };
}

interface Stored {
  redis_url: string;
  clickhouse_url: string;
  analyst_url: string;
}

const endpointsOf = (dir: string): Stored => JSON.parse(readFileSync(join(dir, 'endpoints.json'), 'utf8'));

/** The embedded servers' process ids, as the service noted them. */
const serversOf = (dir: string): number[] => {
  const stored: Record<string, { pid: number }> = JSON.parse(readFileSync(join(dir, 'servers.json'), 'utf8'));
  return Object.values(stored).map(({ pid }) => pid);
};

/** Zombies wait for their reaper only and do not count. */
function lives(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', `${pid}`], { encoding: 'utf8' });
  return /^\s*[^Z\s]/.test(stdout);
}

const allDead = (pids: readonly number[]): boolean => pids.length === 2 && !pids.some(lives);

async function query(url: string, sql: string): Promise<string> {
  const { username, password, origin, pathname } = new URL(url);
  const response = await fetch(`${origin}/?database=${pathname.slice(1)}&query=${encodeURIComponent(sql)}`, {
    headers: { 'X-ClickHouse-User': username, 'X-ClickHouse-Key': password },
  });
  assert.equal(response.status, 200, await response.clone().text());
  return (await response.text()).trim();
}

const attemptsIn = (dir: string) => query(endpointsOf(dir).analyst_url, 'SELECT count() FROM attempts');

const listens = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/livez`).then(
    () => true,
    () => false,
  );

async function folderOf(t: TestContext): Promise<string> {
  const folder = await dataFolder();
  // Hooks run in the order of their registration: whoever uses the folder ends first.
  t.after(async () => {
    await endAll();
    await folder.remove();
  });
  return folder.path;
}

test('start, post, read, query ClickHouse, SIGTERM', async (t) => {
  const DATA_DIR = await folderOf(t);
  const service = await start({ DATA_DIR });
  assert.equal(readFileSync(join(DATA_DIR, 'api-key'), 'utf8').trim(), service.key);
  assert.equal(readApiUrl(DATA_DIR), `http://127.0.0.1:${service.port}`);
  for (const name of ['api-key', 'endpoints.json', 'api.json'])
    assert.equal(statSync(join(DATA_DIR, name)).mode & 0o777, 0o600);
  assert.equal((await service.caller.track(event({ user_id: 'ada' }))).status, 200);
  assert.equal((await service.caller.trackAll([event(), event()])).status, 200);
  assert.equal((await service.caller.get('/api/v1/mastery/ada')).json.data.skills[0].total_attempts, 1);
  assert.equal((await service.caller.get('/api/v1/predictions/ada')).status, 200);
  await waitFor('three rows', async () => (await attemptsIn(DATA_DIR)) === '3');
  const servers = serversOf(DATA_DIR);
  assert.equal(servers.filter(lives).length, 2);
  const since = performance.now();
  service.child.kill('SIGTERM');
  assert.equal(await service.exit(), 0);
  assert.ok(performance.now() - since < 10_000);
  assert.ok(allDead(servers));
  assert.equal(service.errors(), '', 'nothing to warn of');
  assert.equal(readApiUrl(DATA_DIR), null);
});

/** Milliseconds from the first signal until a second one forced the end, by the service's own log; null without. */
function forcedAfterMs(log: string): number | null {
  const lines: { time: string; msg: string }[] = log
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const timeOf = (start: string) => Date.parse(lines.find(({ msg }) => msg.startsWith(start))?.time ?? '');
  const ms = timeOf('second signal') - timeOf('stopping');
  return Number.isNaN(ms) ? null : ms;
}

/** Presses Ctrl-C twice at once while answers are in flight. */
async function interruptTwice(DATA_DIR: string) {
  const service = await start({ DATA_DIR, LOG_LEVEL: 'info' });
  const servers = serversOf(DATA_DIR);
  const answers = Promise.all(
    Array.from({ length: 50 }, () => service.caller.track(event()).catch(() => null)),
  );
  await sleep(5);
  service.child.kill('SIGINT');
  // Two signals that wait for a process are one.
  await waitFor('the first', () => service.errors().includes('"stopping"'));
  service.child.kill('SIGINT');
  const told = (await answers).flatMap((answer) => (answer === null ? [] : [answer.status]));
  const code = await service.exit();
  const log = service.errors();
  return { code, told, servers, log, forcedAfterMs: forcedAfterMs(log) };
}

test('SIGINT twice within a second is one wish; what is in flight is answered', async (t) => {
  const interrupt = async () => interruptTwice(await folderOf(t));
  // Where the machine stood still in between it was no longer within a second.
  const { code, told, servers, log } = await askUntil(
    'the second signal in time',
    interrupt,
    ({ forcedAfterMs }) => (forcedAfterMs ?? 0) < 900,
  );
  for (const status of told) assert.equal(status, 200);
  assert.equal(code, 0, log);
  assert.ok(allDead(servers));
});

test('kill -9 leaves no server behind, and the next start has the data', async (t) => {
  const DATA_DIR = await folderOf(t);
  const first = await start({ DATA_DIR });
  const one = event({ user_id: 'kept', event_id: 'kept' });
  const answer = await first.caller.track(one);
  assert.equal(answer.status, 200);
  await first.caller.trackAll(Array.from({ length: 500 }, () => event({ user_id: 'many' })));
  const servers = serversOf(DATA_DIR);
  first.child.kill('SIGKILL');
  await waitFor('the end of the servers', () => allDead(servers));
  const second = await start({ DATA_DIR });
  assert.equal(second.key, first.key);
  const again = await second.caller.track(one);
  assert.equal(again.headers['idempotent-replayed'], 'true');
  assert.deepEqual(again.json.data, answer.json.data);
  assert.equal((await second.caller.get('/api/v1/mastery/many')).json.data.skills[0].total_attempts, 500);
  await waitFor('all rows', async () => (await attemptsIn(DATA_DIR)) === '501');
});

test('two starts on one port or one folder, and a bad setting, are clear errors', async (t) => {
  const DATA_DIR = await folderOf(t);
  const others = await folderOf(t);
  chmodSync(DATA_DIR, 0o755);
  const service = await start({ DATA_DIR });
  assert.match(service.errors(), /chmod 700 '/, 'the folder is open to others, which stops nothing');
  const refusals: readonly (readonly [Settings, RegExp])[] = [
    [{ PORT: `${service.port}` }, /^PORT: .*taken/],
    [{ PORT: `${service.port}`, API_PROCESSES: '2' }, /^PORT: .*taken/],
    [{ DATA_DIR }, /^DATA_DIR: .*in use/],
    [{ PORT: 'http' }, /^PORT: .*http.*0 to 65535/],
    [{ ROLE: 'api' }, /REDIS_URL and CLICKHOUSE_URL/],
    [{ REDIS_URL: 'redis://127.0.0.1:1' }, /^REDIS_URL: /],
  ];
  const refuse = async ([settings, message]: (typeof refusals)[number], i: number): Promise<void> => {
    const folder = join(others, `${i}`);
    const refused = launch({ LOG_LEVEL: 'fatal', DATA_DIR: folder, ...settings });
    assert.equal(await refused.exit(), 1, JSON.stringify(settings));
    assert.match(refused.errors(), message);
    assert.equal(refused.errors().trim().split('\n').length, 1, refused.errors());
    assert.equal(refused.out(), '');
  };
  await Promise.all(refusals.map(refuse));
  assert.equal((await service.caller.track(event())).status, 200, 'the first one serves on');
});

test('ROLE=api and ROLE=pipeline beside a running service, by its folder and by both URLs', async (t) => {
  const DATA_DIR = await folderOf(t);
  const service = await start({ DATA_DIR });
  const { redis_url: REDIS_URL, clickhouse_url: CLICKHOUSE_URL } = endpointsOf(DATA_DIR);
  const byFolder = await start({ DATA_DIR, ROLE: 'api' }, service.key);
  const elsewhere = await folderOf(t);
  const byUrls = await start({ DATA_DIR: elsewhere, ROLE: 'api', REDIS_URL, CLICKHOUSE_URL }, service.key);
  const user_id = 'everywhere';
  for (const { caller } of [service, byFolder, byUrls]) {
    assert.equal((await caller.track(event({ user_id }))).status, 200);
  }
  const { json } = await byUrls.caller.get(`/api/v1/mastery/${user_id}`);
  assert.equal(json.data.skills[0].total_attempts, 3);
  const pipeline = launch({ DATA_DIR, ROLE: 'pipeline', PORT: '' });
  await waitFor('the pipeline', () => pipeline.out() === 'Skilltrace pipeline runs\n');
  await waitFor('three rows', async () => (await attemptsIn(DATA_DIR)) === '3');
  for (const { child, exit } of [byFolder, byUrls, pipeline]) {
    child.kill('SIGTERM');
    assert.equal(await exit(), 0);
  }
  assert.equal((await service.caller.track(event({ user_id }))).json.data.total_attempts, 4);
});

test('API_PROCESSES=2 share a port and one truth', async (t) => {
  const DATA_DIR = await folderOf(t);
  const service = await start(
    { DATA_DIR, API_PROCESSES: '2', API_KEYS: 'shared-key:default:40' },
    'shared-key',
  );
  const servers = serversOf(DATA_DIR);
  const answers = await Promise.all(
    Array.from({ length: 60 }, () => service.caller.track(event({ user_id: 'shared' }))),
  );
  assert.equal(answers.filter(({ status }) => status === 200).length, 40, 'the quota is exact');
  const prefixes = new Set(answers.map(({ headers }) => headers['x-request-id']?.split('-')[0]));
  // Only Linux shares connections out evenly.
  if (process.platform === 'linux') assert.equal(prefixes.size, 2, 'both processes answered');
  await waitFor('rows', async () => (await attemptsIn(DATA_DIR)) === '40');
  service.child.kill('SIGTERM');
  assert.equal(await service.exit(), 0);
  assert.ok(allDead(servers));
  assert.equal(await listens(service.port), false);
});

test('kill -9 of the process that started API processes ends them and the servers', async (t) => {
  const DATA_DIR = await folderOf(t);
  const service = await start({ DATA_DIR, API_PROCESSES: '2' });
  const servers = serversOf(DATA_DIR);
  service.child.kill('SIGKILL');
  await waitFor('the end of the servers', () => allDead(servers));
  await waitFor('the end of the API processes', async () => !(await listens(service.port)));
});
