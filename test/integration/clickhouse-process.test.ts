/** The embedded ClickHouse as a process: start, stop, kill, priority. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { after, type TestContext, test } from 'node:test';
import { findFreePort } from '../../src/embedded/free-port.js';
import { startClickhouse } from '../../src/embedded/start-clickhouse.js';
import { createLogger } from '../../src/logger.js';
import { type ClickHouseChild, spawnChild, startClickHouse } from '../support/servers/clickhouse-child.js';
import { takePort } from '../support/servers/ports.js';
import { exitOf } from '../support/servers/processes.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

/** The embedded server stops within 5 s. Twice that on a busy machine. */
const maxStopMs = 10_000;
const server = await startClickHouse({ after });

async function post(to: ClickHouseChild, body: string): Promise<string> {
  const response = await to.fetch('/', { method: 'POST', body });
  assert.equal(response.status, 200);
  return response.text();
}

test('The embedded ClickHouse uses UTC in every time zone and ignores SIGINT', async () => {
  server.process.kill('SIGINT');
  const time = await post(server, 'SELECT timezone(), toString(toDateTime(0))');
  assert.equal(time, 'UTC\t1970-01-01 00:00:00\n');
});

test('The embedded ClickHouse prints one line and exits with 1 if it cannot start', async (t) => {
  const port = await takePort(t);
  const cases: [dataDir: string, port: number, line: RegExp][] = [
    [server.dataDir, 0, /^clickhouse: cannot open the data folder .* in use by another server.*\n$/m],
    ['/etc/passwd/none', 0, /^clickhouse: .*ENOTDIR.*\n$/],
    [await tempDir(t), port, /^clickhouse: .*EADDRINUSE.*\n$/],
  ];
  for (const [dataDir, usedPort, line] of cases) {
    const child = spawnChild(dataDir, { port: usedPort });
    let text = '';
    child.stderr?.on('data', (part: Buffer) => {
      text += part.toString('utf8');
    });
    assert.equal(await exitOf(child), 1, dataDir);
    assert.match(text, line);
  }
  assert.equal(await post(server, 'SELECT 1'), '1\n');
});

test('The embedded ClickHouse keeps inserted rows after kill -9, and SIGTERM ends it with code 0', async (t) => {
  await post(server, 'CREATE TABLE rows (a UInt32) ENGINE = MergeTree ORDER BY a');
  for (let index = 0; index < 5; index += 1) await post(server, `INSERT INTO rows FORMAT TSV\n${index}\n`);
  server.process.kill('SIGKILL');
  await exitOf(server.process);
  const next = await startClickHouse(t, server.dataDir);
  assert.equal(await post(next, 'SELECT count() FROM rows'), '5\n');
  next.process.kill('SIGTERM');
  assert.equal(await exitOf(next.process), 0);
});

test('The embedded ClickHouse answers a running query before it stops', async (t) => {
  const stopped = await startClickHouse(t);
  let isAnswered = false;
  const answer = post(stopped, 'SELECT sleep(2)').finally(() => {
    isAnswered = true;
  });
  const running = "SELECT count() FROM system.processes WHERE query LIKE '%sleep(2)%'";
  // The counting query also contains the text.
  await waitFor('the query to run', async () => isAnswered || (await post(stopped, running)) === '2\n');
  stopped.process.disconnect();
  assert.equal(await answer, '0\n');
  assert.equal(await exitOf(stopped.process), 0);
});

test('The embedded ClickHouse stops in time during long queries and cuts off their responses', async (t) => {
  const stopped = await startClickHouse(t);
  // Cannot be interrupted.
  const stuck = 'SELECT sleepEachRow(3) FROM numbers(100) SETTINGS max_block_size = 1';
  const queries = [stuck, `CREATE TABLE s ENGINE = Memory AS ${stuck}`].map((body) =>
    stopped.fetch('/', { method: 'POST', body }).catch(() => null),
  );
  const running = "SELECT count() FROM system.processes WHERE query LIKE '%sleepEachRow(3)%'";
  // The counting query also contains the text.
  await waitFor('the queries to run', async () => (await post(stopped, running)) === '3\n');
  const query = 'SELECT number FROM numbers(10000000000000) FORMAT RowBinary';
  const streamed = await stopped.fetch('/', { method: 'POST', body: query });
  assert.equal(streamed.status, 200);
  const since = performance.now();
  const exit = stopped.stop();
  await assert.rejects(streamed.arrayBuffer(), /terminated/);
  await exit;
  assert.ok(performance.now() - since < maxStopMs);
  await Promise.all(queries);
});

test('The embedded ClickHouse ends if its parent disconnects during the start', async (t) => {
  const child = spawnChild(await tempDir(t));
  t.after(() => child.kill('SIGKILL'));
  child.disconnect();
  assert.equal(await exitOf(child), 0);
});

async function startSupervised(t: TestContext) {
  const accounts = { password: 'a', analystPassword: 'b' };
  const place = { dir: await tempDir(t), port: await findFreePort() };
  const started = startClickhouse({ ...place, ...accounts, logger: createLogger('silent', 'test') });
  t.after(() => started.stop(maxStopMs));
  return { ready: started.ready, pid: started.pid() };
}

test('startClickhouse lowers the priority of all threads, also if two servers start together', async (t) => {
  if (!existsSync('/proc/self/task')) return t.skip('priorities are read from /proc');
  for (const { ready, pid } of [await startSupervised(t), await startSupervised(t)]) {
    const session = `/proc/${pid}/autogroup`;
    if (existsSync(session))
      await waitFor('lower session', () => /nice 5$/m.test(readFileSync(session, 'utf8')));
    await ready;
    const lines = execFileSync('ps', ['-L', '-o', 'ni=', '-p', `${pid}`], { encoding: 'utf8' });
    const threads = lines.trim().split('\n').map(Number);
    assert.ok(threads.length > 10, `${threads.length} threads`);
    // As root the engine raises the priority of one watching thread.
    const below = Math.min(19, getPriority() + 5);
    assert.ok(threads.filter((niceness) => niceness === below).length >= threads.length - 1, `${threads}`);
  }
});
