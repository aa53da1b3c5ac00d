import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { test } from 'node:test';
import { findFreePort } from '../../src/embedded/free-port.js';
import { startClickhouse } from '../../src/embedded/start-clickhouse.js';
import { createLogger } from '../../src/logger.js';
import {
  type ClickHouseChild,
  exitOf,
  spawnChild,
  startClickHouse,
  temporaryFolder,
} from '../support/servers/clickhouse-child.js';
import { takePort } from '../support/servers/ports.js';
import { waitFor } from '../support/wait.js';

const limit = { timeout: 60_000 };
/** Twice as long as it gives itself. */
const stopMs = 10_000;

async function withServer(run: (server: ClickHouseChild, dataDir: string) => Promise<void>): Promise<void> {
  const folder = await temporaryFolder();
  const server = await startClickHouse(folder.path);
  try {
    await run(server, folder.path);
  } finally {
    server.process.kill('SIGKILL');
    await exitOf(server.process);
    await folder.remove();
  }
}

async function post(server: ClickHouseChild, body: string): Promise<string> {
  const response = await server.fetch('/', { method: 'POST', body });
  assert.equal(response.status, 200);
  return response.text();
}

/** Resolves when one query beside the asking one runs, or was answered already. */
async function whenRunning(server: ClickHouseChild, answer: Promise<unknown>): Promise<void> {
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  answer.then(over, over);
  const count = async () => Number(await post(server, 'SELECT count() FROM system.processes'));
  await waitFor('the query', async () => isOver || (await count()) > 1);
}

test('what was inserted before a kill -9 is there after it', limit, async () => {
  await withServer(async (server, dataDir) => {
    await post(server, 'CREATE TABLE kept (a UInt32) ENGINE = MergeTree ORDER BY a');
    for (let index = 0; index < 5; index += 1) await post(server, `INSERT INTO kept FORMAT TSV\n${index}\n`);
    server.process.kill('SIGKILL');
    await exitOf(server.process);
    const next = await startClickHouse(dataDir);
    try {
      assert.equal(await post(next, 'SELECT count() FROM kept'), '5\n');
    } finally {
      assert.equal(await next.stop(), 0);
    }
  });
});

test('its time zone is UTC wherever it runs', limit, async () => {
  await withServer(async (server) => {
    assert.equal(
      await post(server, 'SELECT timezone(), toString(toDateTime(0))'),
      'UTC\t1970-01-01 00:00:00\n',
    );
  });
});

test('SIGTERM and the end of the channel stop it with exit code 0; SIGINT does not', limit, async () => {
  await withServer(async (server) => {
    server.process.kill('SIGINT');
    assert.equal(await post(server, 'SELECT 1'), '1\n');
    server.process.kill('SIGTERM');
    assert.equal(await exitOf(server.process), 0);
  });
  await withServer(async (server) => {
    assert.equal(await server.stop(), 0);
  });
});

test('a query that would run for minutes does not keep it alive', limit, async () => {
  await withServer(async (server) => {
    const endless = post(server, 'SELECT sum(sipHash64(number)) FROM numbers(3000000000000)').then(
      () => 'answered',
      () => 'ended',
    );
    await whenRunning(server, endless);
    const started = Date.now();
    const code = await server.stop();
    assert.ok(Date.now() - started < stopMs);
    // It interrupts the query first; a machine that stands still then lets it come to the last resort.
    assert.ok(code === 0 || server.process.signalCode === 'SIGKILL', `exit code ${code}`);
    assert.equal(await endless, 'ended');
  });
});

test('nor do queries in every lane that cannot be interrupted', { timeout: 60_000 }, async () => {
  await withServer(async (server) => {
    const stuck = 'SELECT sleepEachRow(3) FROM numbers(100) SETTINGS max_block_size = 1';
    const asked = [stuck, stuck, `CREATE TABLE s ENGINE = Memory AS ${stuck}`].map((query) =>
      server.fetch('/', { method: 'POST', body: query }).catch(() => null),
    );
    await new Promise((resolve) => setTimeout(resolve, 300));
    const started = Date.now();
    await server.stop();
    assert.ok(Date.now() - started < stopMs);
    await Promise.all(asked);
  });
});

test('a query that ends in time is answered before the stop', limit, async () => {
  await withServer(async (server) => {
    const answer = post(server, 'SELECT sleep(1)');
    await whenRunning(server, answer);
    server.process.disconnect();
    assert.equal(await answer, '0\n');
    assert.equal(await exitOf(server.process), 0);
  });
});

async function refusal(dataDir: string, port: number): Promise<{ code: number | null; text: string }> {
  const child = spawnChild(dataDir, port);
  let text = '';
  child.stderr?.on('data', (part: Buffer) => {
    text += part.toString('utf8');
  });
  return { code: await exitOf(child), text };
}

test('a data folder in use is refused with one line', limit, async () => {
  await withServer(async (server, dataDir) => {
    const second = await refusal(dataDir, 0);
    assert.equal(second.code, 1);
    assert.match(second.text, /^clickhouse: cannot open the data folder .* in use by another server.*\n$/m);
    assert.equal(await post(server, 'SELECT 1'), '1\n');
  });
});

test('a folder that cannot be made is refused with one line', limit, async () => {
  const refused = await refusal('/etc/passwd/none', 0);
  assert.equal(refused.code, 1);
  assert.match(refused.text, /^clickhouse: .*ENOTDIR.*\n$/);
});

test('a taken port is refused with one line', limit, async (t) => {
  const port = await takePort(t);
  const folder = await temporaryFolder();
  try {
    const refused = await refusal(folder.path, port);
    assert.equal(refused.code, 1);
    assert.match(refused.text, /^clickhouse: .*EADDRINUSE.*\n$/);
  } finally {
    await folder.remove();
  }
});

test('the embedded server steps back behind those that answer requests', limit, async (t) => {
  if (!existsSync('/proc/self/task')) return t.skip('priorities are read from /proc');
  const folder = await temporaryFolder();
  t.after(() => folder.remove());
  let pid = 0;
  const server = startClickhouse({
    ...{ dir: folder.path, port: await findFreePort(), password: 'a', analystPassword: 'b' },
    logger: createLogger('fatal', 'test'),
    onSpawn: (spawned) => {
      pid = spawned;
    },
  });
  t.after(() => server.stop(10_000));
  await server.ready;
  const threads = nicenessOf(pid);
  assert.ok(threads.length > 10, `${threads.length} threads`);
  // As root the engine lifts one watching thread of its own.
  const below = Math.min(19, getPriority() + 5);
  assert.ok(threads.filter((niceness) => niceness === below).length >= threads.length - 1, `${threads}`);
  const session = `/proc/${pid}/autogroup`;
  if (existsSync(session)) assert.match(readFileSync(session, 'utf8'), /nice 5$/m);
});

/** Of each thread of the process; threads may end meanwhile. */
function nicenessOf(pid: number): number[] {
  const lines = execFileSync('ps', ['-L', '-o', 'ni=', '-p', `${pid}`], { encoding: 'utf8' });
  return lines.trim().split('\n').map(Number);
}

test('an answer that a stop interrupts is cut off, never ended like a whole one', limit, async () => {
  await withServer(async (server) => {
    const query = 'SELECT number FROM numbers(10000000000000) FORMAT RowBinary';
    const response = await server.fetch('/', { method: 'POST', body: query });
    assert.equal(response.status, 200);
    const stopped = server.stop();
    await assert.rejects(readThrough(response), /terminated/);
    await stopped;
  });
});

async function readThrough(response: Response): Promise<void> {
  const reader = response.body?.getReader();
  while ((await reader?.read())?.done === false);
}
