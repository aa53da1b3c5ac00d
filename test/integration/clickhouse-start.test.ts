import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { findFreePort } from '../../src/embedded/free-port.js';
import { type ClickhouseOptions, startClickhouse } from '../../src/embedded/start-clickhouse.js';
import { createLogger } from '../../src/logger.js';
import { exitOf, spawnChild } from '../support/servers/clickhouse-child.js';
import { takePort } from '../support/servers/ports.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const LIMIT = { timeout: 60_000 };

async function start(t: TestContext, port: number, onSpawn: ClickhouseOptions['onSpawn'] = () => undefined) {
  const dir = await tempDir(t);
  const logger = createLogger('silent', 'test');
  const server = startClickhouse({ dir, port, password: 'a', analystPassword: 'b', logger, onSpawn });
  t.after(() => server.stop(10_000));
  return server;
}

test('a server that dies while it starts is not ready, but a failed start', LIMIT, async (t) => {
  const server = await start(t, await takePort(t));
  await assert.rejects(server.ready, /^Error: embedded ClickHouse ended before it was ready: exit code 1$/);
});

test('a server whose parent is gone before it serves ends by itself', LIMIT, async (t) => {
  const child = spawnChild(await tempDir(t));
  t.after(() => child.kill('SIGKILL'));
  child.disconnect();
  assert.equal(await exitOf(child), 0);
});

test('of two that start at once both step back', LIMIT, async (t) => {
  if (!existsSync('/proc/self/autogroup')) return t.skip('this system does not share by sessions');
  const niceness = (pid: number) => readFileSync(`/proc/${pid}/autogroup`, 'utf8');
  const pids: number[] = [];
  const ports = [await findFreePort(), await findFreePort()];
  await Promise.all(ports.map((port) => start(t, port, (pid) => pids.push(pid))));
  for (const pid of pids) await waitFor('its session to step back', () => / nice 5$/m.test(niceness(pid)));
  assert.equal(pids.length, 2);
});
